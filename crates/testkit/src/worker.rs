//! The product's `worker`, as a separate process over a test's database.

use std::ops::{Deref, DerefMut};

use crate::{Process, ServerOptions, TestDatabase};

#[derive(Debug)]
pub struct TestWorker(Process);

impl TestWorker {
    /// Starts the program. Tests observe it by the database and by its requests.
    pub fn start(options: &ServerOptions, database: &TestDatabase) -> Self {
        Self::over(options, database.url())
    }

    pub(crate) fn over(options: &ServerOptions, url: &str) -> Self {
        let mut command = options.command("worker", url);
        // No public listener has this address: at a port that one of them had before, answers would be
        // checked as the API's.
        Self(Process::start(
            command.env("SELLER_API__WORKER__BIND", "127.0.0.2:0"),
        ))
    }

    /// Starts the program and waits until it listens. Also returns the URL of its probes.
    pub async fn listening(options: &ServerOptions, database: &TestDatabase) -> (Self, String) {
        let mut worker = Self::start(options, database);
        let [probes] = worker.addresses(["probes"]).await;
        (worker, probes)
    }

    /// Waits until the process exits and returns its exit code.
    pub async fn exit_code(self) -> Option<i32> {
        self.0.exit_code().await
    }
}

impl Deref for TestWorker {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.0
    }
}

impl DerefMut for TestWorker {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.0
    }
}
