//! The product's `worker`, as a separate process over a test's database.

use std::{
    process::{Child, Stdio},
    sync::{Arc, Mutex},
};

use rustix::process::Signal;

use crate::{
    ServerOptions, TestDatabase,
    server::{field, follow, send},
};

/// A running worker. Dropping it kills it.
#[derive(Debug)]
pub struct TestWorker {
    child: Child,
    log: Arc<Mutex<String>>,
}

impl TestWorker {
    /// Starts the program. Tests observe it by the database and by its requests.
    pub fn start(options: &ServerOptions, database: &TestDatabase) -> Self {
        Self::over(options, database.url())
    }

    pub(crate) fn over(options: &ServerOptions, url: &str) -> Self {
        Self::spawn(options, url, Stdio::null)
    }

    fn spawn(options: &ServerOptions, url: &str, output: fn() -> Stdio) -> Self {
        let mut command = options.command("worker", url);
        command.env("SELLER_API__WORKER__BIND", "127.0.0.1:0");
        command.stdin(Stdio::null()).stdout(output()).stderr(output());
        Self {
            child: command.spawn().expect("the program starts"),
            log: Arc::default(),
        }
    }

    /// Starts the program and waits until it listens. Also returns the URL of its probes.
    pub async fn listening(options: &ServerOptions, database: &TestDatabase) -> (Self, String) {
        let mut worker = Self::spawn(options, database.url(), Stdio::piped);
        let (said, mut heard) = tokio::sync::mpsc::unbounded_channel();
        follow(&mut worker.child, &worker.log, move |line| {
            if let Some(address) = field(line, "probes") {
                // The receiver takes only the first address.
                drop(said.send(address));
            }
        });
        let address = heard.recv().await.expect("the worker says where it listens");
        (worker, format!("http://{address}"))
    }

    /// The log so far; empty unless [`Self::listening`] started the worker.
    pub fn log(&self) -> String {
        self.log.lock().expect("the log is whole").clone()
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        send(&self.child, signal);
    }

    /// Terminates the process (SIGTERM) and returns its exit code.
    pub async fn terminate(mut self) -> Option<i32> {
        self.signal(Signal::TERM);
        let waited = tokio::task::spawn_blocking(move || self.child.wait());
        waited
            .await
            .expect("the thread ended")
            .expect("the process ended")
            .code()
    }

    /// Kills the process (SIGKILL) and waits until it has exited.
    pub fn kill(&mut self) {
        self.child.kill().expect("the signal is sent");
        self.child.wait().expect("the process ended");
    }
}

impl Drop for TestWorker {
    fn drop(&mut self) {
        // The process may have exited already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
