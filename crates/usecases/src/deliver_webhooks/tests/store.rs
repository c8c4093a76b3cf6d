//! An in-memory store of queues: setup and queries for tests.

mod queues;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use kernel::StoreError;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use uuid::Uuid;
use webhooks::{DeliveryId, Due, NextStep, Outcome, WebhookEvent, WebhookSecret};

/// The duration of each store call.
const ROUND_TRIP: Duration = Duration::from_millis(2);

pub(super) fn secret() -> WebhookSecret {
    WebhookSecret::from_random(&[9; 32])
}

#[derive(Default)]
struct Kept {
    fence: Option<Uuid>,
    failing: bool,
    due: Vec<Due>,
    /// The deliveries counted as in hand of its lease holder.
    in_hand: Vec<DeliveryId>,
    delivered: usize,
    /// Turns since it was put at the back.
    turn: usize,
    /// Its application's number, if it differs from the queue's own.
    application: Option<u128>,
    /// The end of its pause.
    rests: Option<Instant>,
}

#[derive(Default)]
struct Inner {
    queues: BTreeMap<u128, Kept>,
    away: bool,
    calls: usize,
    turns: usize,
    next_id: u128,
    held_back: usize,
    failures: Vec<(Outcome, NextStep)>,
    times: Vec<Instant>,
}

#[derive(Default)]
pub(super) struct Store {
    inner: Mutex<Inner>,
    changed: Notify,
}

impl Store {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// Queues this many deliveries and returns the first one's id.
    pub(super) fn queue(&self, queue: u128, count: usize) -> DeliveryId {
        let ids: Vec<_> = (0..count).map(|_| self.add(queue, 0, 0)).collect();
        ids[0]
    }

    pub(super) fn queue_lost(&self, queue: u128, lost: u8) {
        self.add(queue, 0, lost);
    }

    pub(super) fn queue_after(&self, queue: u128, attempt: u8) -> DeliveryId {
        self.add(queue, attempt, 0)
    }

    /// Puts this many suspended queues before all others.
    pub(super) fn holds_back(&self, queues: usize) {
        self.inner().held_back = queues;
    }

    /// How many deliveries of the queue would be lost if its worker crashed now.
    pub(super) fn would_lose(&self, queue: u128) -> usize {
        self.inner().queues[&queue].in_hand.len()
    }

    fn add(&self, queue: u128, attempt: u8, lost: u8) -> DeliveryId {
        let mut inner = self.inner();
        inner.next_id += 1;
        let id = Uuid::from_u128(inner.next_id).into();
        inner.queues.entry(queue).or_default().due.push(Due {
            id,
            event: WebhookEvent::OrderPaid,
            body: Arc::from(format!("{id}").into_bytes()),
            attempt,
            lost,
        });
        id
    }

    pub(super) fn fails(&self, queue: u128) {
        self.inner().queues.entry(queue).or_default().failing = true;
    }

    /// Assigns the queue to this application, which may have others.
    pub(super) fn belongs_to(&self, queue: u128, application: u128) {
        self.inner().queues.entry(queue).or_default().application = Some(application);
    }

    /// The pending deliveries of the queue, each with its attempts so far.
    pub(super) fn waiting_in(&self, queue: u128) -> Vec<u8> {
        self.inner().queues[&queue]
            .due
            .iter()
            .map(|due| due.attempt)
            .collect()
    }

    /// Another worker takes the queue over.
    pub(super) fn takes_over(&self, queue: u128) {
        self.inner().queues.entry(queue).or_default().fence = Some(Uuid::max());
    }

    pub(super) fn goes_away(&self, away: bool) {
        self.inner().away = away;
    }

    pub(super) fn calls(&self) -> usize {
        self.inner().calls
    }

    pub(super) fn delivered(&self) -> usize {
        self.inner().queues.values().map(|queue| queue.delivered).sum()
    }

    pub(super) fn held(&self) -> usize {
        self.inner()
            .queues
            .values()
            .filter(|queue| queue.fence.is_some())
            .count()
    }

    pub(super) fn failures(&self) -> Vec<(Outcome, NextStep)> {
        self.inner().failures.clone()
    }

    /// When the `nth` success was recorded.
    pub(super) fn time_of(&self, nth: usize) -> Instant {
        self.inner().times[nth - 1]
    }

    async fn until(&self, reached: impl Fn(&Inner) -> bool) {
        loop {
            let changed = self.changed.notified();
            if reached(&self.inner()) {
                return;
            }
            changed.await;
        }
    }

    pub(super) async fn finished(&self) {
        self.until(|inner| inner.queues.values().all(|queue| queue.due.is_empty()))
            .await;
    }

    pub(super) async fn delivered_of(&self, queue: u128, count: usize) {
        self.until(|inner| {
            inner
                .queues
                .get(&queue)
                .is_some_and(|queue| queue.delivered >= count)
        })
        .await;
    }

    /// Waits until each delivery of the queue has had an attempt.
    pub(super) async fn attempted_in(&self, queue: u128) {
        self.until(|inner| {
            let queue = inner.queues.get(&queue);
            queue.is_some_and(|queue| queue.due.iter().all(|due| due.attempt > 0))
        })
        .await;
    }

    async fn call(&self) -> Result<MutexGuard<'_, Inner>, StoreError> {
        sleep(ROUND_TRIP).await;
        let mut inner = self.inner();
        inner.calls += 1;
        if inner.away {
            Err(StoreError::Unavailable("away".into()))
        } else {
            Ok(inner)
        }
    }
}
