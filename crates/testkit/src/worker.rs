//! The real program, `worker`, as a process of its own over a test's database.

use std::process::{Child, Stdio};

use crate::{ServerOptions, TestDatabase};

/// A running worker. It is killed with the value.
#[derive(Debug)]
pub struct TestWorker {
    child: Child,
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
        Self { child }
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
