//! A worker delivers webhooks: it claims lanes, sends what is due in them, and records how that ended.
//!
//! - It claims only what can start now, so memory is bounded by its slots, and what it has not begun others may begin.
//! - One claim, one settlement and one top-up are under way at most. What ends meanwhile gathers and goes with the next
//!   settlement: the busier the worker, the fewer statements a delivery costs.
//! - No connection is held while a receiver is waited for.
//! - Nobody waits in a slot for anything but a receiver. What the sender cannot begin now was no attempt: it is in hand no
//!   more, and its lane rests a moment before it is due again.

mod holdings;
#[cfg(test)]
mod tests;
mod worker;

use async_trait::async_trait;
use kernel::{Randomness, StoreError};
use webhooks::{Conclusion, Lanes, RetrySchedule, WebhookSender};

use worker::Worker;

/// How much a worker does at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slots {
    /// Attempts in all, at least 1. Lanes that fail get half of them at most.
    pub attempts: u16,
    /// Attempts of one lane, at least 1.
    pub per_lane: u16,
    /// Attempts of one lane that fails, at least 1.
    pub per_failing_lane: u16,
    /// Attempts of all lanes of one application, at least 1. Its subscriptions at however many sellers may turn silent in one
    /// moment, and all of their lanes are new or sound until their first attempts have timed out.
    pub per_application: u16,
    /// Of them at most so many in lanes that fail, at least 1: the application's other lanes do not wait for those.
    pub failing_per_application: u16,
}

impl Slots {
    /// The usual shares of so many attempts at a time: a quarter for one application.
    #[must_use]
    pub fn of(attempts: u16) -> Self {
        Self {
            attempts,
            per_application: (attempts / 4).max(1),
            failing_per_application: (attempts / 8).max(1),
            ..Self::default()
        }
    }
}

impl Default for Slots {
    fn default() -> Self {
        Self {
            attempts: 512,
            per_lane: 12,
            per_failing_lane: 2,
            per_application: 128,
            failing_per_application: 64,
        }
    }
}

/// Tells the worker when to look for work: at an interval of 100 ms, and at once at a hint that something was queued.
#[async_trait]
pub trait Pulse: Send + Sync {
    /// The next moment to look.
    async fn beat(&self);
}

/// Hears of what the worker does, for logs and meters.
pub trait Observer: Send + Sync {
    /// An attempt has ended.
    fn ended(&self, conclusion: &Conclusion);
    /// The store failed; what was to be done is tried again.
    fn failed(&self, error: StoreError);
}

/// What delivering needs.
#[derive(Clone, Copy)]
pub struct Dispatch<'a> {
    /// Where lanes are claimed.
    pub lanes: &'a dyn Lanes,
    /// Who sends.
    pub sender: &'a dyn WebhookSender,
    /// For fences and jitter.
    pub randomness: &'a dyn Randomness,
    /// When to look for work.
    pub pulse: &'a dyn Pulse,
    /// Who hears of it.
    pub observer: &'a dyn Observer,
    /// When what failed is tried again.
    pub schedule: RetrySchedule,
    /// How much is done at once.
    pub slots: Slots,
}

impl std::fmt::Debug for Dispatch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dispatch")
            .field("schedule", &self.schedule)
            .field("slots", &self.slots)
            .finish_non_exhaustive()
    }
}

/// Delivers until `asked_to_stop`; then it begins nothing more, and is done when what is running has ended and is recorded.
pub async fn deliver_webhooks<'a>(
    dispatch: Dispatch<'a>,
    asked_to_stop: impl Future<Output = ()> + Send + 'a,
) {
    Worker::new(dispatch, asked_to_stop).work().await;
}
