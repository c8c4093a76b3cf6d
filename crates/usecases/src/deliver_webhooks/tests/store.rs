//! An in-memory store of queues: the rules of claims without a database.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use kernel::{SellerId, StoreError};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use uuid::Uuid;
use webhooks::{
    AddressPolicy, AttemptRecord, Capacity, ClaimedQueues, DeliveryId, Due, DueQueue, Examined, Lease,
    Outcome, Phase, Progress, QueueKey, Refill, Refilled, Release, SubscriptionQueue, SubscriptionQueues,
    WebhookEvent, WebhookSecret, WebhookUrl,
};

use crate::test_support::now;

/// The duration of each store call.
const ROUND_TRIP: Duration = Duration::from_millis(2);

/// How long it takes to put those of a claim to sleep.
const PUT_TO_SLEEP: Duration = Duration::from_millis(100);

/// How many queues one claim examines.
const QUEUES_OF_A_CLAIM: usize = 128;

pub(super) fn secret() -> WebhookSecret {
    WebhookSecret::from_random(&[9; 32])
}

#[derive(Default)]
struct StoredQueue {
    fence: Option<Uuid>,
    failing: bool,
    due: Vec<Due>,
    /// Those of `due` that a worker was given and has not returned.
    in_hand: Vec<DeliveryId>,
    /// Attempts whose end was recorded.
    ended: usize,
    /// Turns since it was put at the back.
    turn: usize,
    /// The number of its application's owner, if it differs from the queue's own.
    owner: Option<u128>,
    /// The number of the receiver, likewise.
    receiver: Option<u128>,
    paused_until: Option<Instant>,
}

impl StoredQueue {
    /// Gives out due deliveries, beside the running ones: three first attempts for each repeated one,
    /// beginning with a first one.
    fn lease(&mut self, running: &[DeliveryId], capacity: u16, repeats: u16) -> Vec<Due> {
        self.postpone(running);
        let in_hand = &self.in_hand;
        let waiting = || self.due.iter().filter(move |due| !in_hand.contains(&due.id));
        let firsts = waiting()
            .filter(|due| due.progress.attempt == 0)
            .take(capacity.into());
        let repeated = waiting()
            .filter(|due| due.progress.attempt > 0)
            .take(repeats.min(capacity).into());
        let firsts = (1..).map(|n| 2 * n).zip(firsts);
        let repeated = (1..).map(|n| 6 * n - 3).zip(repeated);
        let mut placed: Vec<_> = firsts
            .chain(repeated)
            .map(|(place, due): (usize, _)| (place, due.id))
            .collect();
        placed.sort_by_key(|(place, _)| *place);
        let ids = placed.into_iter().map(|(_, id)| id);
        let ids: Vec<_> = ids.take(capacity.into()).collect();
        self.in_hand.extend(&ids);
        let leased = |id| self.due.iter().find(|due| due.id == id).unwrap().clone();
        ids.into_iter().map(leased).collect()
    }

    fn owner(&self, number: u128) -> SellerId {
        Uuid::from_u128(self.owner.unwrap_or(number)).into()
    }

    fn url(&self, number: u128) -> WebhookUrl {
        let url = format!("https://queue{}.example/", self.receiver.unwrap_or(number));
        WebhookUrl::parse(url, AddressPolicy::Public).unwrap()
    }

    /// All its deliveries are due: nobody holds it.
    fn due(&self, owner: SellerId) -> DueQueue {
        let first_attempts = self.due.iter().filter(|due| due.progress.attempt == 0).count();
        DueQueue {
            owner,
            failing: self.failing,
            first_attempts: u16::try_from(first_attempts).unwrap(),
            repeats: u16::try_from(self.due.len() - first_attempts).unwrap(),
        }
    }

    /// What the worker no longer has in hand waits again.
    fn postpone(&mut self, running: &[DeliveryId]) {
        self.in_hand.retain(|id| running.contains(id));
    }
}

#[derive(Default)]
struct State {
    queues: BTreeMap<u128, StoredQueue>,
    unavailable: bool,
    /// A queue that another transaction has locked.
    locked: Option<u128>,
    /// Leases under which a call is under way.
    calling: BTreeSet<Lease>,
    calls: usize,
    turns: usize,
    next_id: u128,
    suspended: usize,
    delivered: usize,
    failures: Vec<(Outcome, Phase)>,
}

impl State {
    fn is_locked(&self, lease: &Lease) -> bool {
        self.locked == Some(lease.queue.subscription.uuid().as_u128())
    }

    fn leased(&mut self, lease: &Lease) -> Option<&mut StoredQueue> {
        let queue = self.queues.get_mut(&lease.queue.subscription.uuid().as_u128());
        queue.filter(|queue| queue.fence == Some(lease.fence))
    }
}

#[derive(Default)]
pub(super) struct Store {
    state: Mutex<State>,
    changed: Notify,
}

impl Store {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Queues a delivery that has had this many attempts.
    pub(super) fn add(&self, queue: u128, attempt: u8) -> DeliveryId {
        let mut state = self.state();
        state.next_id += 1;
        let id = Uuid::from_u128(state.next_id).into();
        state.queues.entry(queue).or_default().due.push(Due {
            id,
            event: WebhookEvent::OrderPaid,
            body: Arc::from(format!("{id}").into_bytes()),
            due_at: now(),
            progress: Progress { attempt, lost: 0 },
        });
        id
    }

    /// Other workers have delivered everything.
    pub(super) fn deliver_elsewhere(&self) {
        for queue in self.state().queues.values_mut() {
            queue.due.clear();
        }
    }

    /// Puts this many suspended queues of one owner before all others.
    pub(super) fn suspend_before_others(&self, queues: usize) {
        self.state().suspended = queues;
    }

    /// How many deliveries of the queue would be lost if its worker crashed now.
    pub(super) fn in_hand(&self, queue: u128) -> usize {
        self.state().queues[&queue].in_hand.len()
    }

    pub(super) fn set_failing(&self, queue: u128) {
        self.state().queues.entry(queue).or_default().failing = true;
    }

    /// Assigns the queue to an application of this owner, who may have others.
    pub(super) fn set_owner(&self, queue: u128, owner: u128) {
        self.state().queues.entry(queue).or_default().owner = Some(owner);
    }

    /// From now on, the queue's deliveries go to this receiver.
    pub(super) fn set_receiver(&self, queue: u128, receiver: u128) {
        self.state().queues.entry(queue).or_default().receiver = Some(receiver);
    }

    /// The attempts so far of each pending delivery of the queue.
    pub(super) fn pending(&self, queue: u128) -> Vec<u8> {
        let state = self.state();
        let due = state.queues[&queue].due.iter();
        due.map(|due| due.progress.attempt).collect()
    }

    /// Another worker takes the queue over.
    pub(super) fn take_over(&self, queue: u128) {
        self.state().queues.entry(queue).or_default().fence = Some(Uuid::max());
    }

    pub(super) fn set_unavailable(&self, unavailable: bool) {
        self.state().unavailable = unavailable;
    }

    pub(super) fn set_locked(&self, queue: Option<u128>) {
        self.state().locked = queue;
    }

    pub(super) fn calls(&self) -> usize {
        self.state().calls
    }

    pub(super) fn delivered(&self) -> usize {
        self.state().delivered
    }

    /// How many queues are leased.
    pub(super) fn leases(&self) -> usize {
        let state = self.state();
        state
            .queues
            .values()
            .filter(|queue| queue.fence.is_some())
            .count()
    }

    pub(super) fn failures(&self) -> Vec<(Outcome, Phase)> {
        self.state().failures.clone()
    }

    async fn until(&self, reached: impl Fn(&State) -> bool) {
        loop {
            let changed = self.changed.notified();
            if reached(&self.state()) {
                return;
            }
            changed.await;
        }
    }

    /// Waits until no delivery is pending.
    pub(super) async fn finished(&self) {
        self.until(|state| state.queues.values().all(|queue| queue.due.is_empty()))
            .await;
    }

    /// How many attempts of the queue have ended.
    pub(super) fn ended(&self, queue: u128) -> usize {
        self.state().queues.get(&queue).map_or(0, |queue| queue.ended)
    }

    /// Waits until this many attempts of the queue have ended.
    pub(super) async fn until_ended(&self, queue: u128, count: usize) {
        self.until(|state| state.queues.get(&queue).is_some_and(|queue| queue.ended >= count))
            .await;
    }

    async fn call(&self) -> Result<MutexGuard<'_, State>, StoreError> {
        sleep(ROUND_TRIP).await;
        self.answer()
    }

    fn answer(&self) -> Result<MutexGuard<'_, State>, StoreError> {
        let mut state = self.state();
        state.calls += 1;
        if state.unavailable {
            Err(StoreError::Unavailable("unavailable".into()))
        } else {
            Ok(state)
        }
    }

    /// No other call under way has these leases: neither would wait for the other.
    async fn call_alone(
        &self,
        leases: impl Iterator<Item = Lease> + Clone,
    ) -> Result<MutexGuard<'_, State>, StoreError> {
        for lease in leases.clone() {
            assert!(self.state().calling.insert(lease), "two calls of {lease:?}");
        }
        sleep(ROUND_TRIP).await;
        for lease in leases {
            self.state().calling.remove(&lease);
        }
        self.answer()
    }
}

#[async_trait]
impl SubscriptionQueues for Store {
    async fn claim(&self, fence: Uuid, mut capacity: Capacity) -> Result<ClaimedQueues, StoreError> {
        let mut claimed = ClaimedQueues::default();
        let suspended = Uuid::max().into();
        let are_before = {
            let mut state = self.call().await?;
            let are_before = state.suspended > 0 && capacity.left(suspended, false) > 0;
            let asleep = if are_before { QUEUES_OF_A_CLAIM } else { 0 };
            state.suspended = state.suspended.saturating_sub(asleep);
            are_before
        };
        if are_before {
            sleep(PUT_TO_SLEEP).await;
            claimed.healthy.owners.insert(suspended);
            claimed.healthy.more = true;
            return Ok(claimed);
        }
        let mut state = self.state();
        let now = Instant::now();
        let waits = |queue: &StoredQueue| {
            let paused = queue.paused_until.is_some_and(|until| until > now);
            queue.fence.is_none() && !queue.due.is_empty() && !paused
        };
        let queues = state.queues.iter_mut();
        let mut waiting: Vec<_> = queues.filter(|(_, queue)| waits(queue)).collect();
        waiting.sort_by_key(|(_, queue)| queue.turn);
        // As many healthy and failing ones each, of owners that are not full.
        let most = [capacity.all.attempts, capacity.failing.attempts];
        let most = most.map(|most| usize::from(most).min(QUEUES_OF_A_CLAIM));
        let mut examined = [0, 0];
        waiting.retain(|(number, queue)| {
            let kind = usize::from(queue.failing);
            let is_examined =
                examined[kind] < most[kind] && capacity.left(queue.owner(**number), queue.failing) > 0;
            examined[kind] += usize::from(is_examined);
            is_examined
        });
        claimed.healthy.more = examined[0] == most[0];
        claimed.failing = (most[1] > 0).then(|| Examined {
            more: examined[1] == most[1],
            ..Examined::default()
        });
        for (number, queue) in waiting {
            let owner = queue.owner(*number);
            let due = queue.due(owner);
            let kind = if queue.failing {
                claimed.failing.as_mut().unwrap()
            } else {
                &mut claimed.healthy
            };
            let Some(share) = capacity.share(&due) else {
                kind.more = true;
                continue;
            };
            let deliveries = queue.lease(&[], share.attempts, share.repeats);
            queue.fence = Some(fence);
            kind.owners.insert(owner);
            let queue_key = QueueKey {
                seller: Uuid::from_u128(*number).into(),
                subscription: Uuid::from_u128(*number).into(),
            };
            claimed.queues.push(SubscriptionQueue {
                lease: Lease {
                    queue: queue_key,
                    fence,
                },
                client_id: owner.uuid().into(),
                owner,
                url: queue.url(*number),
                secrets: secret().into(),
                failing: queue.failing,
                deliveries,
                more: share.more,
            });
        }
        Ok(claimed)
    }

    async fn refill(&self, refills: &[Refill]) -> Result<Vec<Refilled>, StoreError> {
        let mut state = self.call_alone(refills.iter().map(|refill| refill.lease)).await?;
        let refill = |refill: &Refill| {
            if state.is_locked(&refill.lease) {
                return None;
            }
            let queue = state.leased(&refill.lease)?;
            let deliveries = queue.lease(&refill.running, refill.capacity, refill.repeats);
            let lease = refill.lease;
            let url = queue.url(lease.queue.subscription.uuid().as_u128());
            Some(Refilled {
                lease,
                url,
                secrets: secret().into(),
                deliveries,
            })
        };
        Ok(refills.iter().filter_map(refill).collect())
    }

    async fn record(
        &self,
        records: &[AttemptRecord],
        released: &[Release],
    ) -> Result<BTreeSet<Lease>, StoreError> {
        let leases = records.iter().map(|record| record.lease);
        let leases: BTreeSet<_> = leases
            .chain(released.iter().map(|release| release.lease))
            .collect();
        let mut state = self.call_alone(leases.iter().copied()).await?;
        let locked: BTreeSet<_> = leases
            .into_iter()
            .filter(|lease| state.is_locked(lease))
            .collect();
        for record in records.iter().filter(|record| !locked.contains(&record.lease)) {
            let Some(queue) = state.leased(&record.lease) else {
                continue;
            };
            let before = queue.due.len();
            let is_recorded = |due: &Due| (due.id, due.progress) == (record.delivery, record.from);
            queue.due.retain(|due| !is_recorded(due));
            assert_eq!(queue.due.len() + 1, before, "recorded twice");
            queue.in_hand.retain(|id| *id != record.delivery);
            queue.ended += 1;
            if record.phase == Phase::Delivered {
                state.delivered += 1;
            } else {
                state.failures.push((record.outcome.clone(), record.phase));
            }
        }
        for release in released.iter().filter(|release| !locked.contains(&release.lease)) {
            state.turns += 1;
            let turn = state.turns;
            let Some(queue) = state.leased(&release.lease) else {
                continue;
            };
            queue.fence = None;
            queue.postpone(&[]);
            queue.turn = turn;
            queue.failing = release.failing.unwrap_or(queue.failing);
            queue.paused_until = Some(Instant::now() + release.pause.to_std().unwrap());
        }
        drop(state);
        self.changed.notify_waiters();
        Ok(locked)
    }

    async fn reconcile(&self) -> Result<usize, StoreError> {
        Ok(0)
    }
}
