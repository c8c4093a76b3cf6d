//! A store of lanes in memory: what a test puts in, and what it asks of it afterwards.

mod lanes;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use kernel::StoreError;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use uuid::Uuid;
use webhooks::{DeliveryId, Due, Fate, Outcome, WebhookEvent, WebhookSecret};

/// How long the store takes for anything.
const ROUND_TRIP: Duration = Duration::from_millis(2);

pub(super) fn secret() -> WebhookSecret {
    WebhookSecret::from_random(&[9; 32])
}

#[derive(Default)]
struct Kept {
    fence: Option<Uuid>,
    failing: bool,
    due: Vec<Due>,
    /// What its owner is taken to have in hand.
    in_hand: Vec<DeliveryId>,
    delivered: usize,
    /// Turns since it went to the back of the queue.
    turn: usize,
    /// The number of the application that it belongs to, where that is not the lane's own.
    application: Option<u128>,
    /// Until when it rests.
    rests: Option<Instant>,
}

#[derive(Default)]
struct Inner {
    lanes: BTreeMap<u128, Kept>,
    away: bool,
    calls: usize,
    turns: usize,
    next_id: u128,
    held_back: usize,
    failures: Vec<(Outcome, Fate)>,
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

    /// Queues so many deliveries, and returns the first one's id.
    pub(super) fn queue(&self, lane: u128, count: usize) -> DeliveryId {
        let ids: Vec<_> = (0..count).map(|_| self.add(lane, 0, 0)).collect();
        ids[0]
    }

    pub(super) fn queue_lost(&self, lane: u128, lost: u8) {
        self.add(lane, 0, lost);
    }

    pub(super) fn queue_after(&self, lane: u128, attempt: u8) -> DeliveryId {
        self.add(lane, attempt, 0)
    }

    /// So many lanes are due before all others and may not be worked on.
    pub(super) fn holds_back(&self, lanes: usize) {
        self.inner().held_back = lanes;
    }

    /// How many deliveries of the lane would be lost if its worker died now.
    pub(super) fn would_lose(&self, lane: u128) -> usize {
        self.inner().lanes[&lane].in_hand.len()
    }

    fn add(&self, lane: u128, attempt: u8, lost: u8) -> DeliveryId {
        let mut inner = self.inner();
        inner.next_id += 1;
        let id = Uuid::from_u128(inner.next_id).into();
        inner.lanes.entry(lane).or_default().due.push(Due {
            id,
            event: WebhookEvent::OrderPaid,
            body: Arc::from(format!("{id}").into_bytes()),
            attempt,
            lost,
        });
        id
    }

    pub(super) fn fails(&self, lane: u128) {
        self.inner().lanes.entry(lane).or_default().failing = true;
    }

    /// The lane belongs to this application, together with others.
    pub(super) fn belongs_to(&self, lane: u128, application: u128) {
        self.inner().lanes.entry(lane).or_default().application = Some(application);
    }

    /// How many deliveries wait in the lane, each with its attempts so far.
    pub(super) fn waiting_in(&self, lane: u128) -> Vec<u8> {
        self.inner().lanes[&lane]
            .due
            .iter()
            .map(|due| due.attempt)
            .collect()
    }

    /// Somebody else holds the lane from now on.
    pub(super) fn takes_over(&self, lane: u128) {
        self.inner().lanes.entry(lane).or_default().fence = Some(Uuid::max());
    }

    pub(super) fn goes_away(&self, away: bool) {
        self.inner().away = away;
    }

    pub(super) fn calls(&self) -> usize {
        self.inner().calls
    }

    pub(super) fn delivered(&self) -> usize {
        self.inner().lanes.values().map(|lane| lane.delivered).sum()
    }

    pub(super) fn held(&self) -> usize {
        self.inner()
            .lanes
            .values()
            .filter(|lane| lane.fence.is_some())
            .count()
    }

    pub(super) fn failures(&self) -> Vec<(Outcome, Fate)> {
        self.inner().failures.clone()
    }

    /// When the delivery was recorded that was so many successes' last.
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
        self.until(|inner| inner.lanes.values().all(|lane| lane.due.is_empty()))
            .await;
    }

    pub(super) async fn delivered_of(&self, lane: u128, count: usize) {
        self.until(|inner| inner.lanes.get(&lane).is_some_and(|lane| lane.delivered >= count))
            .await;
    }

    /// Until each delivery of the lane has had an attempt.
    pub(super) async fn attempted_in(&self, lane: u128) {
        self.until(|inner| {
            let lane = inner.lanes.get(&lane);
            lane.is_some_and(|lane| lane.due.iter().all(|due| due.attempt > 0))
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
