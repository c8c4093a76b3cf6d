//! The sandbox as a separate process over a data directory.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::{Answer, Client};
use tokio::process::{Child, Command};

use crate::{Finished, documented, run, text};

const START_TIMEOUT: Duration = Duration::from_mins(1);

/// A running sandbox. Dropping it kills the process.
#[derive(Debug)]
pub struct Sandbox {
    child: Child,
    output: PathBuf,
    /// The content of `credentials.json`.
    pub credentials: Value,
}

impl Sandbox {
    /// The arguments of a sandbox with this data directory, on free ports.
    pub fn arguments(data_dir: &Path) -> [&str; 7] {
        let folder = data_dir.to_str().expect("a folder whose name is text");
        [
            "sandbox",
            "--port",
            "0",
            "--backoffice-port",
            "0",
            "--data-dir",
            folder,
        ]
    }

    /// Asserts that a start fails: it exits with this code, and its output names the folder.
    pub async fn refused(program: &str, data_dir: &Path, code: i32) -> Finished {
        let arguments = Self::arguments(data_dir);
        let refused = run(program, &arguments, &[]).await.ended(code);
        let [.., folder] = arguments;
        assert!(refused.stderr.contains(folder), "{}", refused.output());
        refused
    }

    /// Starts a sandbox in a folder.
    pub async fn open(program: &str, folder: &Path) -> Self {
        Self::start(program, &folder.join(".sandbox"), &[], &[]).await
    }

    /// A string of the credentials.
    #[track_caller]
    pub fn text(&self, name: &str) -> String {
        text(&self.credentials, name)
    }

    /// Starts the sandbox on free ports and waits until it is ready.
    pub async fn start(
        program: &str,
        data_dir: &Path,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let output = data_dir.with_extension("log");
        let file = std::fs::File::create(&output).expect("a file for the output");
        let mut command = Command::new(program);
        command.args(Self::arguments(data_dir)).args(arguments);
        command
            .env_remove("DATABASE_URL")
            .envs(environment.iter().copied())
            .kill_on_drop(true);
        command
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file);
        // The file of an earlier start names ports that another process may use by now.
        let credentials = data_dir.join("credentials.json");
        let before = read(&credentials);
        let child = command.spawn().expect("the program starts");
        let mut sandbox = Self {
            child,
            output,
            credentials: Value::Null,
        };
        sandbox.credentials = sandbox.ready(&credentials, before.as_ref()).await;
        sandbox
    }

    async fn ready(&mut self, file: &Path, before: Option<&Value>) -> Value {
        let (client, began) = (Client::new(), Instant::now());
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the sandbox ended with {status}:\n{}", self.output());
            }
            let in_time = began.elapsed() < START_TIMEOUT;
            assert!(in_time, "the sandbox does not become ready:\n{}", self.output());
            if let Some(credentials) = read(file).filter(|credentials| Some(credentials) != before) {
                let [public, office] = ["base_url", "backoffice_url"].map(|name| text(&credentials, name));
                documented::watch(&public, &office);
                let url = format!("{}/readyz", text(&credentials, "backoffice_url"));
                let answer = client.get(&url).try_send().await;
                if answer.is_ok_and(|answer| answer.status == 200) {
                    return credentials;
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub fn output(&self) -> String {
        std::fs::read_to_string(&self.output).expect("the output is read")
    }

    pub fn id(&self) -> u32 {
        self.child.id().expect("the sandbox runs")
    }

    /// Sends an authenticated GET to the API.
    pub async fn get(&self, token: &str, path: &str) -> Answer {
        let url = format!("{}{path}", self.text("base_url"));
        Client::new().get(&url).bearer(token).send().await
    }

    /// Sends a signal, waits for the exit and returns the exit code; `None` if the signal killed the process.
    pub async fn end(mut self, signal: rustix::process::Signal) -> Option<i32> {
        let id = i32::try_from(self.id())
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(id.expect("a process id"), signal).expect("the signal is sent");
        let ended = tokio::time::timeout(START_TIMEOUT, self.child.wait()).await;
        ended
            .unwrap_or_else(|_| panic!("the sandbox does not end:\n{}", self.output()))
            .unwrap()
            .code()
    }
}

fn read(file: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(file).ok()?;
    Some(
        serde_json::from_str(&text)
            .unwrap_or_else(|e| panic!("the file is whole whenever it is there ({e}): {text}")),
    )
}
