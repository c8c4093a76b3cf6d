//! Work that outlives its request, and work that panics.
//!
//! The HTTP library drops a handler when its client disconnects. A write must not stop half-way, so it runs
//! as a separate task. The process waits for these tasks before it ends.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::task::{Context, Waker};

use futures_util::FutureExt;
use thiserror::Error;
use tokio::runtime::Handle;
use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use crate::request_span;

/// Wakes a server when the thread has run the tasks of other connections that are ready, and has looked for
/// what arrived there: otherwise one whose answers need no wait would keep the thread as long as requests are
/// there.
pub fn wake_after_others(server: &Waker) {
    let turn = pin!(yield_now());
    let _pending = turn.poll(&mut Context::from_waker(server));
}

/// Runs work on the process's runtime and tracks the running tasks. Clones share their tasks.
#[derive(Clone, Debug)]
pub struct Tasks {
    runtime: Handle,
    running: TaskTracker,
    stopping: CancellationToken,
}

/// The work ended without a result, with the reason. The code that awaits the work logs it and answers 500.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("panicked: {0}")]
pub struct Panicked(String);

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
    ) -> impl Future<Output = Result<T, Panicked>> + Send + use<T, W> {
        let work = work.instrument(request_span::current());
        let task = self.running.spawn_on(work, &self.runtime);
        async {
            task.await.map_err(|ended| match ended.try_into_panic() {
                Ok(panic) => Panicked::of(panic.as_ref()),
                Err(ended) => Panicked(ended.to_string()),
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

impl Panicked {
    fn of(panic: &(dyn Any + Send)) -> Self {
        let literal = panic.downcast_ref::<&'static str>().copied();
        let message = literal.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self(message.unwrap_or("no message").to_owned())
    }
}

/// Runs work to its end; a panic becomes an error.
///
/// The work's own state is dropped. State that it shares with other requests must stay consistent after a
/// panic.
pub async fn catch_panic<T, E: From<Panicked>>(work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let caught = AssertUnwindSafe(work).catch_unwind().await;
    caught.unwrap_or_else(|panic| Err(Panicked::of(panic.as_ref()).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_returns_its_result_or_its_panic() {
        let tasks = Tasks::new(Handle::current());
        assert_eq!(tasks.run(async { 17 }).await, Ok(17));
        assert_eq!(catch_panic(async { Ok::<_, Panicked>(17) }).await, Ok(17));
        let panicked = tasks.run(async { panic!("half-way") }).await;
        assert_eq!(panicked, Err::<(), _>(Panicked("half-way".to_owned())));
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
