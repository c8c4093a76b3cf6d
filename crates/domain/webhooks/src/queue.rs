//! Queues: the deliveries of one subscription, as a worker leases and processes them.

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use kernel::SellerId;
use oauth::ClientId;
use uuid::Uuid;

use crate::{DeliveryId, Outcome, Phase, Progress, SigningSecrets, SubscriptionId, WebhookEvent, WebhookUrl};

/// The key of a queue: each subscription has one queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueKey {
    pub seller: SellerId,
    pub subscription: SubscriptionId,
}

/// A worker's lease of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lease {
    pub queue: QueueKey,
    /// The fencing token: a random id per claim. If another worker takes the queue over, it has another
    /// fence, and calls under this one have no effect.
    pub fence: Uuid,
}

/// The result of a claim.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimedQueues {
    /// Claimed queues with their due deliveries.
    pub queues: Vec<SubscriptionQueue>,
    pub healthy: Examined,
    /// None if no attempt could start in failing queues: then they are not looked for.
    pub failing: Option<Examined>,
}

/// What a claim saw of the healthy queues, or of the failing ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Examined {
    /// The owners of all queues that had their turn: also of those that were put to sleep.
    pub owners: BTreeSet<SellerId>,
    /// True if not all due queues were examined, one got no capacity, or some were put to sleep, since these
    /// may have hidden others: another claim may find more. If false, there is more only once something
    /// becomes due or free.
    pub more: bool,
}

/// A queue with its due deliveries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionQueue {
    pub lease: Lease,
    /// The subscription's application, and its owner.
    pub client_id: ClientId,
    pub owner: SellerId,
    pub url: WebhookUrl,
    /// The keys of their signatures, at the time of the claim.
    pub secrets: SigningSecrets,
    /// True if its last attempts failed.
    pub failing: bool,
    pub deliveries: Vec<Due>,
    /// True if more of them are due.
    pub more: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    pub id: DeliveryId,
    pub event: WebhookEvent,
    /// The body, the same on every attempt.
    pub body: Arc<[u8]>,
    /// When this attempt was due.
    pub due_at: DateTime<Utc>,
    pub progress: Progress,
}

/// The recorded end of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRecord {
    /// The lease under which the delivery was given out.
    pub lease: Lease,
    pub delivery: DeliveryId,
    /// What `next` was decided on: its progress when it was given out.
    pub from: Progress,
    pub outcome: Outcome,
    /// The duration in whole milliseconds, not negative.
    pub duration_ms: i32,
    pub next: Progress,
    /// A delay counts from the database's current time.
    pub phase: Phase,
}

/// A queue that its worker releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Release {
    pub lease: Lease,
    /// Whether the queue counts as failing from now on; None leaves it unchanged.
    pub failing: Option<bool>,
    /// How long the queue is paused before it is due again, whatever waits in it; zero for no pause.
    pub pause: TimeDelta,
}

/// A leased queue that has capacity again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refill {
    pub lease: Lease,
    /// Its deliveries that the worker still has in hand.
    pub running: Vec<DeliveryId>,
    /// How many more can start now; 0 only reports what is running.
    pub capacity: u16,
    /// Of these, at most this many repeated attempts.
    pub repeats: u16,
}

/// Further due deliveries of a leased queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refilled {
    /// The lease, extended to its full duration.
    pub lease: Lease,
    /// The URL, which may have changed since the claim.
    pub url: WebhookUrl,
    /// The keys of their signatures, at the time of the refill.
    pub secrets: SigningSecrets,
    /// The due deliveries, at most the capacity.
    pub deliveries: Vec<Due>,
}
