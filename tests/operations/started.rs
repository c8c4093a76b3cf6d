//! Starts the program with the exact arguments of a deployment file.

use std::{process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testkit::{Client, TestDatabase, sealing_key};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::{PROGRAM, configured::ConfigFile};

const PATIENCE: Duration = Duration::from_secs(30);

/// A running process that listens.
#[derive(Debug)]
pub(crate) struct Started {
    child: Child,
    /// The address of its probes, `address:port`.
    pub(crate) probes: String,
}

impl Started {
    /// Starts the program with these arguments over a separate database. Only the file's path, the ports and
    /// the secrets differ from the deployment.
    pub(crate) async fn with(words: &[String], file: &ConfigFile, database: &TestDatabase) -> Self {
        let mut child = command(words, file, database)
            .spawn()
            .expect("the program starts");
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let listening = async {
            let mut heard = String::new();
            while let Some(line) = lines.next_line().await.unwrap() {
                let event = serde_json::from_str::<Value>(&line).unwrap_or_default();
                let fields = &event["fields"];
                if fields["message"] == "listening" {
                    let probes = fields["backoffice"]
                        .as_str()
                        .or_else(|| fields["probes"].as_str());
                    return probes.expect("an address").to_owned();
                }
                heard.push_str(&line);
                heard.push('\n');
            }
            panic!("{words:?} ends before it listens:\n{heard}")
        };
        let probes = timeout(PATIENCE, listening).await.expect("it listens in time");
        // Keeps reading, so that the process never blocks on a full pipe.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { child, probes }
    }

    /// The status of the answer to a GET on this path.
    pub(crate) async fn status(&self, path: &str) -> u16 {
        let url = format!("http://{}{path}", self.probes);
        Client::new().get(&url).send().await.status
    }

    /// Waits until a path is answered 200.
    pub(crate) async fn becomes_good(&self, path: &str) {
        blackbox::until(path, async || self.status(path).await == 200).await;
    }

    /// Stops it as every service manager does.
    pub(crate) async fn end(mut self) {
        let id = i32::try_from(self.child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), Signal::TERM).unwrap();
        let ended = timeout(PATIENCE, self.child.wait())
            .await
            .expect("it ends in time");
        assert_eq!(ended.unwrap().code(), Some(0));
    }
}

/// Runs the program with these arguments to its end; asserts success.
pub(crate) async fn ends_well(words: &[String], file: &ConfigFile, database: &TestDatabase) {
    let ended = command(words, file, database).output();
    let ended = timeout(PATIENCE, ended).await.expect("it ends in time").unwrap();
    assert!(
        ended.status.success(),
        "{words:?}: {}",
        String::from_utf8_lossy(&ended.stderr)
    );
}

/// The argument after `--config` is the file's path in the deployment.
fn command(words: &[String], file: &ConfigFile, database: &TestDatabase) -> Command {
    let named = words.iter().position(|word| word == "--config");
    let named = named.expect("every process is told of its configuration") + 1;
    let mut words = words.to_vec();
    words[named] = file.path.display().to_string();
    let mut command = Command::new(PROGRAM);
    command
        .args(words)
        .env_clear()
        .env("SELLER_API__DATABASE__URL", database.url())
        .env("SELLER_API__DATABASE__DIRECT_URL", database.url())
        .env("SELLER_API__KEYS__SEALING", sealing_key())
        .env("SELLER_API__SERVER__BIND", "127.0.0.1:0")
        .env("SELLER_API__SERVER__BACKOFFICE_BIND", "127.0.0.1:0")
        .env("SELLER_API__SERVER__DRAIN", "0s")
        .env("SELLER_API__WORKER__BIND", "127.0.0.1:0")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}
