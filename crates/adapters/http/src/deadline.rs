//! How long a request may wait for the database (D16).

use std::time::Duration;

use kernel::StoreError;
use thiserror::Error;
use tokio::time::{Instant, timeout_at};

/// From the head of a request on, what is spent on reading its body not counted. A little under the 3 s that are
/// promised, so that the answer has time to be written.
const ANSWER_WITHIN: Duration = Duration::from_millis(2_800);

/// The instant at which a request is given up.
#[derive(Clone, Copy)]
pub(crate) struct Deadline(Instant);

/// The store did not answer by the deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the store did not answer in time")]
pub(crate) struct Overdue;

impl Deadline {
    /// The deadline of a request that arrived then.
    pub(crate) fn of_arrival(at: Instant) -> Self {
        Self(at + ANSWER_WITHIN)
    }

    /// The same, later by what a client took to send its body.
    pub(crate) fn later_by(self, reading: Duration) -> Self {
        Self(self.0 + reading)
    }

    /// The same, but at least this far ahead.
    pub(crate) fn no_sooner_than(self, ahead: Duration) -> Self {
        Self(self.0.max(Instant::now() + ahead))
    }

    /// Waits for `work`, which must come to no harm when it is dropped.
    pub(crate) async fn hold<T>(self, work: impl Future<Output = T>) -> Result<T, Overdue> {
        timeout_at(self.0, work).await.map_err(|_| Overdue)
    }

    /// Waits for somebody else than the store, who answers in a bounded time: it is later by as long as that takes.
    pub(crate) async fn pause<T>(&mut self, work: impl Future<Output = T>) -> T {
        let began = Instant::now();
        let done = work.await;
        self.0 += began.elapsed();
        done
    }
}

impl From<Overdue> for StoreError {
    fn from(overdue: Overdue) -> Self {
        Self::Unavailable(Box::new(overdue))
    }
}
