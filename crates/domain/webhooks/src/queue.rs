//! Queues: the deliveries of one subscription, as a worker holds and works through them.

use std::sync::Arc;

use chrono::TimeDelta;
use kernel::SellerId;
use oauth::ClientId;
use uuid::Uuid;

use crate::{DeliveryId, NextStep, Outcome, SubscriptionId, WebhookEvent, WebhookSecret, WebhookUrl};

/// How often a delivery may be lost with its worker without a loss counting as a failed attempt.
pub const LOSSES_FORGIVEN: u8 = 2;

/// Which queue: each subscription is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueKey {
    /// Whose subscription.
    pub seller: SellerId,
    /// The subscription.
    pub subscription: SubscriptionId,
}

/// A queue in the hands of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lease {
    /// Which queue.
    pub queue: QueueKey,
    /// What the queue was claimed under: a claim's own random id. Whoever took the queue over has another one, and what is
    /// done under this one then changes nothing.
    pub fence: Uuid,
}

/// How much a worker can start now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capacity {
    /// Attempts in all; at least 1.
    pub attempts: u16,
    /// Of them at most so many for queues that fail; may be 0.
    pub failing_attempts: u16,
    /// Attempts of one queue.
    pub per_queue: u16,
    /// Attempts of one queue that fails.
    pub per_failing_queue: u16,
    /// Attempts of all queues of one application, those that are under way included; at least 1.
    pub per_application: u16,
    /// Of them at most so many in queues that fail, those that are under way included; at least 1.
    pub failing_per_application: u16,
    /// What is under way, each application once.
    pub under_way: Vec<ApplicationLoad>,
}

/// How much of an application is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApplicationLoad {
    /// Which application.
    pub client_id: ClientId,
    /// Attempts in all of its queues.
    pub attempts: u16,
    /// Those of them in queues that fail.
    pub failing: u16,
}

/// What a claim has come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// Queues, each with what is due in it.
    pub queues: Vec<SubscriptionQueue>,
    /// How many queues were due and may not be worked on, and are due no more. Others may have waited behind them.
    pub suspended: usize,
    /// Not all queues that are due were looked at, or there was no capacity for one of them: another claim may find more. Where it is
    /// false, only what becomes due or free later is to be had.
    pub more: bool,
}

/// A queue with what is to be done in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionQueue {
    /// The claim on it.
    pub lease: Lease,
    /// Whose subscription it is.
    pub client_id: ClientId,
    /// Where its deliveries go.
    pub url: WebhookUrl,
    /// What they are signed with.
    pub secret: WebhookSecret,
    /// True when its last attempts failed.
    pub failing: bool,
    /// What is due.
    pub deliveries: Vec<Due>,
}

/// A delivery that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// Which delivery.
    pub id: DeliveryId,
    /// What happened.
    pub event: WebhookEvent,
    /// Its bytes, the same on every attempt.
    pub body: Arc<[u8]>,
    /// How many attempts of it have ended, 0 to 5.
    pub attempt: u8,
    /// How often it has been lost together with its worker without that having counted as an attempt yet.
    pub lost: u8,
}

impl Due {
    /// True when it was lost once too often: the loss is a failed attempt, and nothing is sent now. A body that kills its
    /// worker thus comes to an end like any other.
    pub const fn has_failed_by_loss(&self) -> bool {
        self.lost > LOSSES_FORGIVEN
    }
}

/// The end of an attempt, as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRecord {
    /// The queue, under the claim that gave the delivery out.
    pub lease: Lease,
    /// Which delivery.
    pub delivery: DeliveryId,
    /// How many attempts had ended when it was given out: the one that ended now has the next number.
    pub attempt: u8,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took, in whole milliseconds, not below 0.
    pub duration_ms: i32,
    /// What becomes of the delivery. Delays count from the database's present.
    pub next: NextStep,
}

/// A queue that its worker gives back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Release {
    /// The claim that ends.
    pub lease: Lease,
    /// Whether the queue fails from now on; nothing where nothing new is known.
    pub failing: Option<bool>,
    /// How long the queue rests before it is due again, whatever waits in it; zero for not at all.
    pub rest: TimeDelta,
}

/// A queue that is held, in which there is capacity again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refill {
    /// The claim on it.
    pub lease: Lease,
    /// Its deliveries that are still in the worker's hands.
    pub running: Vec<DeliveryId>,
    /// How many more can start now; 0 where the store is only to hear what is running.
    pub capacity: u16,
    /// How many of those may be repeated attempts.
    pub repeats: u16,
}

/// What else is due in a queue that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refilled {
    /// The claim, which holds from now on as long as a new one would.
    pub lease: Lease,
    /// What is due, as many as there was capacity for.
    pub deliveries: Vec<Due>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_is_forgiven_two_losses_and_fails_by_the_third() {
        let lost = |lost| Due {
            id: Uuid::nil().into(),
            event: WebhookEvent::OrderPaid,
            body: Arc::from(*b"{}"),
            attempt: 0,
            lost,
        };
        let failed = [0, 1, 2, 3, u8::MAX].map(|times| lost(times).has_failed_by_loss());
        assert_eq!(failed, [false, false, false, true, true]);
    }
}
