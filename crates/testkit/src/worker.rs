//! The real program, `worker`, as a process of its own over a test's database.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Stdio},
    sync::{Arc, Mutex},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{ServerOptions, TestDatabase};

/// A running worker. It is killed with the value.
#[derive(Debug)]
pub struct TestWorker {
    child: Child,
    log: Arc<Mutex<String>>,
}

impl TestWorker {
    /// Starts the program. What it does is seen in the database and in what it sends.
    pub fn start(options: &ServerOptions, database: &TestDatabase) -> Self {
        Self::over(options, database.url())
    }

    /// Starts the program over the database at `url`.
    pub(crate) fn over(options: &ServerOptions, url: &str) -> Self {
        let mut command = options.command("worker", url);
        command
            .env("SELLER_API__WORKER__BIND", "127.0.0.1:0")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn().expect("the program starts");
        let log = Arc::default();
        Self { child, log }
    }

    /// Starts the program and waits until it listens; the address is that of its probes, as a URL.
    pub async fn listening(options: &ServerOptions, database: &TestDatabase) -> (Self, String) {
        let mut command = options.command("worker", database.url());
        command
            .env("SELLER_API__WORKER__BIND", "127.0.0.1:0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let log = Arc::<Mutex<String>>::default();
        let (said, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let streams: [Box<dyn std::io::Read + Send>; 2] = [
            Box::new(child.stdout.take().expect("stdout is piped")),
            Box::new(child.stderr.take().expect("stderr is piped")),
        ];
        for stream in streams {
            let (said, log) = (said.clone(), Arc::clone(&log));
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    let event = serde_json::from_str::<serde_json::Value>(&line).unwrap_or_default();
                    let probes = event.pointer("/fields/probes");
                    if let Some(address) = probes.and_then(serde_json::Value::as_str) {
                        drop(said.send(address.to_owned()));
                    }
                    let mut log = log.lock().expect("the log is whole");
                    log.push_str(&line);
                    log.push('\n');
                }
            });
        }
        drop(said);
        let address = heard.recv().await.expect("the worker says where it listens");
        (Self { child, log }, format!("http://{address}"))
    }

    /// All that a worker has logged so far that was started by [`Self::listening`].
    pub fn log(&self) -> String {
        self.log.lock().expect("the log is whole").clone()
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(id.expect("a process id"), signal).expect("the signal is sent");
    }

    /// Asks the process to end (SIGTERM), and gives its exit code.
    pub async fn terminate(mut self) -> Option<i32> {
        self.signal(Signal::TERM);
        let waited = tokio::task::spawn_blocking(move || self.child.wait());
        waited
            .await
            .expect("the thread ended")
            .expect("the process ended")
            .code()
    }

    /// Kills the process (SIGKILL) and waits until it is gone.
    pub fn kill(&mut self) {
        self.child.kill().expect("the signal is sent");
        self.child.wait().expect("the process ended");
    }
}

impl Drop for TestWorker {
    fn drop(&mut self) {
        // Already gone is fine.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
