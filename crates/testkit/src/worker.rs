//! The real program, `worker`, as a process of its own over a test's database.

use std::{
    process::{Child, Stdio},
    sync::{Arc, Mutex},
};

use rustix::process::Signal;

use crate::{
    ServerOptions, TestDatabase,
    server::{field, follow, send},
};

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

    /// Starts the program and waits until it listens; the address is that of its probes, as a URL.
    pub async fn listening(options: &ServerOptions, database: &TestDatabase) -> (Self, String) {
        let mut worker = Self::spawn(options, database.url(), Stdio::piped);
        let (said, mut heard) = tokio::sync::mpsc::unbounded_channel();
        follow(&mut worker.child, &worker.log, move |line| {
            if let Some(address) = field(line, "probes") {
                // Whoever waited has the first one.
                drop(said.send(address));
            }
        });
        let address = heard.recv().await.expect("the worker says where it listens");
        (worker, format!("http://{address}"))
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
        send(&self.child, signal);
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
