//! Limits how long a request may wait for the database (D16).

use std::time::Duration;

use kernel::StoreError;
use tokio::time::{Instant, timeout_at};

/// The instant at which a request is dropped.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    /// Counted from the head of a request, without the time that the client takes to send its body. A little
    /// less than the promised 3 s, so that there is time to write the answer.
    pub const REQUEST_TIMEOUT: Duration = Duration::from_millis(2_800);

    const AFTER_TURN: Duration = Duration::from_millis(300);

    pub fn new(from: Instant, within: Duration) -> Self {
        Self(from + within)
    }

    /// The deadline of a request that arrived at `received_at`.
    pub fn of_request(received_at: Instant) -> Self {
        Self::new(received_at, Self::REQUEST_TIMEOUT)
    }

    #[must_use]
    pub fn extended_by(self, time: Duration) -> Self {
        Self(self.0 + time)
    }

    /// Zero once it has passed.
    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// How long a request may wait for its turn at a share or row: whoever waits to the very end is told neither which was taken
    /// nor whose fault that is.
    pub fn for_turn(self) -> Duration {
        self.remaining().saturating_sub(Self::AFTER_TURN)
    }

    /// Waits for `work`, which must be safe to drop.
    pub async fn run<T>(self, work: impl Future<Output = T>) -> Result<T, StoreError> {
        let overdue = |_| StoreError::Unavailable("the store did not respond in time".into());
        timeout_at(self.0, work).await.map_err(overdue)
    }

    /// Waits for anything but the store; its time must be limited elsewhere. Moves the deadline by the time
    /// that it takes.
    pub async fn pause<T>(&mut self, work: impl Future<Output = T>) -> T {
        let began = Instant::now();
        let done = work.await;
        self.0 += began.elapsed();
        done
    }
}
