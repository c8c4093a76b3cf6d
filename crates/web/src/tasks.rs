//! Work that outlives its request.
//!
//! The HTTP library drops a handler when its client disconnects. A write must not stop half-way, so it runs
//! as a separate task. The process waits for these tasks before it ends.

use std::any::Any;

use thiserror::Error;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use crate::request_span;

/// Runs work on the process's runtime and tracks the running tasks. Clones share their tasks.
#[derive(Clone, Debug)]
pub struct Tasks {
    runtime: Handle,
    running: TaskTracker,
    stopping: CancellationToken,
}

/// The task ended without a result, with the reason. The code that awaits the task logs it and answers 500.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the task panicked: {0}")]
pub struct TaskPanicked(String);

impl Tasks {
    /// Tasks on this runtime, which must be multi-threaded and live as long as the process serves.
    pub fn new(runtime: Handle) -> Self {
        Self {
            runtime,
            running: TaskTracker::new(),
            stopping: CancellationToken::new(),
        }
    }

    /// Runs `work` to its end, starting now, even if the returned future is dropped. Its spans are children
    /// of the span of its request.
    pub fn run<T: Send + 'static, W: Future<Output = T> + Send + 'static>(
        &self,
        work: W,
    ) -> impl Future<Output = Result<T, TaskPanicked>> + Send + use<T, W> {
        let work = work.instrument(request_span::current());
        let task = self.running.spawn_on(work, &self.runtime);
        async {
            task.await.map_err(|ended| {
                TaskPanicked(ended.try_into_panic().map_or_else(
                    |ended| ended.to_string(),
                    |panic| panic_message(panic.as_ref()).to_owned(),
                ))
            })
        }
    }

    /// Ends every wait on [`Self::stopping`]. Call it when the process is asked to stop, before the servers
    /// are stopped.
    pub fn stop(&self) {
        self.stopping.cancel();
    }

    /// Resolves when the process is asked to stop, for requests that wait for an event. Running tasks go on.
    pub async fn stopping(&self) {
        self.stopping.cancelled().await;
    }

    /// Waits until all tasks have ended. Call it when no new requests are accepted.
    pub async fn drained(&self) {
        self.running.close();
        self.running.wait().await;
    }
}

/// The message of a panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let literal = panic.downcast_ref::<&'static str>().copied();
    literal
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_returns_its_result_or_its_panic() {
        let tasks = Tasks::new(Handle::current());
        assert_eq!(tasks.run(async { 17 }).await, Ok(17));
        let panicked = tasks.run(async { panic!("half-way") }).await;
        assert_eq!(panicked, Err::<(), _>(TaskPanicked("half-way".to_owned())));
    }

    #[tokio::test]
    async fn waiting_work_sees_that_the_process_stops() {
        let tasks = Tasks::new(Handle::current());
        let waiting = tasks.clone();
        let running = tokio::spawn(async move { waiting.stopping().await });
        tasks.stop();
        running.await.unwrap();
        tasks.stopping().await;
    }
}
