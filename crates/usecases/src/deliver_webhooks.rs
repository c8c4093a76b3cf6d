//! The webhook worker: it claims queues (one queue of deliveries per subscription), sends due deliveries, and
//! records the outcomes.
//!
//! - It claims only deliveries that it can start now. The number of slots bounds its memory, and other
//!   workers can take the rest.
//! - At most one recording runs at a time, one claim and one refill; no claim begins during a refill. Attempts
//!   that end meanwhile go into the next recording: the busier the worker, the fewer statements per delivery.
//! - It holds no database connection while it waits for a receiver.
//! - A slot only ever waits for a receiver. A delivery that the sender cannot begin now does not count as an
//!   attempt: its queue is paused for a moment before it is due again.

mod in_flight;
mod leased_queue;
mod pauses;
#[cfg(test)]
mod tests;
mod worker;

use futures_util::future::BoxFuture;
use kernel::{Randomness, StoreError};
use webhooks::{AttemptRecord, Message, RetrySchedule, SubscriptionQueues, WebhookSender};

use worker::Worker;

/// Concurrency limits of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slots {
    /// Attempts in all, at least 1. Failing queues get at most half of them.
    pub attempts: u16,
    /// Attempts of one queue, at least 1.
    pub per_queue: u16,
    /// Attempts of one queue that fails, at least 1.
    pub per_failing_queue: u16,
    /// Attempts of all queues of one owner's applications, at least 1. All their receivers may stop answering at the same
    /// time, and no queue counts as failing until its first attempts have timed out. Failing queues get at most half of
    /// them, so that the others do not wait for them.
    pub per_owner: u16,
}

impl Slots {
    pub const DEFAULT_ATTEMPTS: u16 = 512;

    /// The default shares of this number of attempts: a quarter for one owner.
    #[must_use]
    pub fn of(attempts: u16) -> Self {
        Self {
            attempts,
            per_queue: 12,
            per_failing_queue: 2,
            per_owner: (attempts / 4).max(1),
        }
    }
}

/// For logs and metrics.
pub trait Observer: Send + Sync {
    /// An attempt has ended. It had no message if its delivery was lost with its worker.
    fn ended(&self, record: &AttemptRecord, message: Option<&Message>);
    fn claimed(&self, queues: usize);
    /// A call to the store succeeded.
    fn succeeded(&self);
    /// The store failed; the call is retried.
    fn failed(&self, error: StoreError);
}

/// The worker's ports and limits.
#[derive(Clone, Copy)]
pub struct Dispatch<'a> {
    pub queues: &'a dyn SubscriptionQueues,
    pub sender: &'a dyn WebhookSender,
    /// For fencing tokens and jitter.
    pub randomness: &'a dyn Randomness,
    /// Waits until this process has queued a delivery.
    pub queued: &'a (dyn Fn() -> BoxFuture<'a, ()> + Send + Sync),
    /// Waits for 100 ms: the longest wait of a delivery that another process has queued.
    pub beat: &'a (dyn Fn() -> BoxFuture<'a, ()> + Send + Sync),
    pub observer: &'a dyn Observer,
    pub schedule: RetrySchedule,
    pub slots: Slots,
}

/// Delivers until `stop` resolves. Then it claims nothing more and returns once all attempts, those of a
/// claim under way included, have ended and are recorded.
pub async fn deliver_webhooks<'a>(dispatch: Dispatch<'a>, stop: impl Future<Output = ()> + Send + 'a) {
    Worker::new(dispatch, stop).run().await;
}
