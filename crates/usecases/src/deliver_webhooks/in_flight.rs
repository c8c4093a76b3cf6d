//! The leased queues of a worker, their deliveries in hand, and the remaining capacity.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use kernel::SellerId;
use webhooks::{
    AttemptFailure, AttemptRecord, Attempted, Capacity, ClaimedQueues, DeliveryId, Due, Lease, Load, Message,
    Outcome, Progress, Refill, Refilled, Release, SubscriptionQueue,
};

use super::Slots;
use super::leased_queue::{InHand, LeasedQueue, Outlook, StoreCall, left};
use super::pauses::{PAUSE, Pauses};
use super::worker::Recording;

/// One queue gets at most 1/`FAIR_SHARE` of the free slots.
const FAIR_SHARE: u16 = 8;

/// 1/`RESERVE` of the slots is reserved for owners with little in hand.
const RESERVE: u16 = 8;

/// An owner gets at most 1/`PART_OF_RESERVE` of the free reserve.
const PART_OF_RESERVE: u16 = 8;

/// How many attempts each owner gets at first. Their number doubles while there is room for all.
const FIRST_PER_OWNER: u16 = 4;

/// An attempt to begin.
pub(super) struct Start {
    pub(super) lease: Lease,
    pub(super) delivery: DeliveryId,
    /// The state in which the delivery was given out.
    pub(super) from: Progress,
    /// None if the delivery was lost too often: nothing is sent.
    pub(super) message: Option<Message>,
}

impl Start {
    /// The outcome of an attempt that was lost with its worker.
    pub(super) const fn lost() -> Attempted {
        Attempted {
            outcome: Outcome::Failed(AttemptFailure::WorkerLost),
            duration: Duration::ZERO,
        }
    }
}

/// What is known of an owner with postponed attempts.
#[derive(Default)]
struct Postponed {
    /// How many attempts the next claim may add: as many as have ended since the last one, and any number once a beat.
    room: u16,
    /// Whether one was postponed since the last beat.
    again: bool,
}

/// The leased queues of a worker, and the attempts whose end is not recorded yet.
pub(super) struct InFlight {
    slots: Slots,
    /// Ordered, so that the same calls have the same results.
    queues: BTreeMap<Lease, LeasedQueue>,
    ended: Vec<AttemptRecord>,
    /// Rounds of refills so far.
    rounds: u64,
    pauses: Pauses,
    /// Owners with postponed attempts. Their queues would be leased and postponed one after another, however many they are.
    postponed: BTreeMap<SellerId, Postponed>,
    /// Owners of the queues that the last claims have found. Claims pass over them until one finds all that there is:
    /// otherwise owners of many due queues come before all whose queues become due later.
    served: BTreeSet<SellerId>,
    /// How many attempts an owner may have in hand and still get more. It begins low, and falls while slots run out before
    /// all owners have had their turn: otherwise the first ones take them all, for as long as their receivers do not respond.
    per_owner: u16,
    /// The capacity of the claim under way.
    claiming: Option<Capacity>,
}

impl InFlight {
    pub(super) fn new(slots: Slots) -> Self {
        Self {
            slots,
            queues: BTreeMap::new(),
            ended: Vec::new(),
            rounds: 0,
            pauses: Pauses::default(),
            postponed: BTreeMap::new(),
            served: BTreeSet::new(),
            per_owner: FIRST_PER_OWNER.min(slots.per_owner),
            claiming: None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// How much can start now. A slot is free only once the end of its attempt is recorded, so nothing piles
    /// up while the store is unavailable. The fewer slots are free, the fewer one queue gets, so many queues
    /// that fail at the same time leave some to others. The last slots, and the last of the half that failing
    /// queues may use, are reserved for owners with almost nothing in hand.
    fn capacity(&self) -> Option<Capacity> {
        let under_way = self.loads();
        let slots = self.slots;
        let (used, failing) = (self.in_hand(false), self.in_hand(true));
        let (attempts, per_owner) = open_slots(slots.attempts, used, self.per_owner);
        let (failing_attempts, failing_per_owner) =
            open_slots((slots.attempts / 2).max(1), failing, self.per_owner.div_ceil(2));
        (attempts > 0).then(|| Capacity {
            attempts,
            failing_attempts: failing_attempts.min(attempts),
            per_queue: (attempts / FAIR_SHARE).clamp(1, slots.per_queue.max(1)),
            per_failing_queue: slots.per_failing_queue,
            per_owner,
            failing_per_owner,
            under_way,
            passed_over: BTreeSet::new(),
        })
    }

    fn in_hand(&self, failing: bool) -> usize {
        let queues = self.queues.values().filter(|queue| !failing || queue.fails());
        queues.map(|queue| queue.in_hand.len()).sum()
    }

    /// The free slots beyond the reserve.
    fn open(&self) -> usize {
        let slots = self.slots.attempts;
        left(slots - slots / RESERVE, self.in_hand(false)).into()
    }

    /// The capacity of a claim: half of the last slots, so that a later claim finds some for other queues, and little or none
    /// for owners whose queues it passes over.
    pub(super) fn begin_claim(&mut self) -> Option<Capacity> {
        let half_of_few = |slots: u16, left: u16| {
            if left <= slots / RESERVE {
                left.div_ceil(2)
            } else {
                left
            }
        };
        let slots = self.slots.attempts;
        let mut capacity = self.capacity()?;
        if !self.served.is_empty() && self.open() == 0 {
            self.per_owner = (self.per_owner / 2).max(1);
        }
        capacity.attempts = half_of_few(slots, capacity.attempts);
        capacity.failing_attempts = half_of_few(slots / 2, capacity.failing_attempts);
        let postponed = self.postponed.iter_mut();
        for (owner, postponed) in postponed.filter(|(owner, _)| !self.served.contains(owner)) {
            let load = capacity.under_way.entry(*owner).or_default();
            let room = mem::take(&mut postponed.room);
            load.attempts = load.attempts.max(capacity.per_owner.saturating_sub(room));
            load.failing = load.failing.max(capacity.failing_per_owner.saturating_sub(room));
            load.one_each = true;
        }
        capacity.passed_over.clone_from(&self.served);
        self.claiming = Some(capacity.clone());
        Some(capacity)
    }

    pub(super) const fn is_claiming(&self) -> bool {
        self.claiming.is_some()
    }

    pub(super) fn end_claim(&mut self) {
        self.claiming = None;
    }

    /// The capacity of refills: nothing of the reserve, since their owners have something in hand, and beside a claim only
    /// what has become free since it began.
    fn capacity_for_refills(&self) -> Option<Capacity> {
        let mut capacity = self.capacity()?;
        capacity.attempts = capacity
            .attempts
            .min(u16::try_from(self.open()).unwrap_or(u16::MAX));
        if let Some(claim) = &self.claiming {
            capacity.attempts = capacity.attempts.saturating_sub(claim.attempts);
            capacity.failing_attempts = capacity.failing_attempts.saturating_sub(claim.failing_attempts);
            for (owner, load) in &mut capacity.under_way {
                load.attempts = load.attempts.saturating_add(claim.left(*owner, false));
                load.failing = load.failing.saturating_add(claim.left(*owner, true));
            }
        }
        Some(capacity)
    }

    /// Whether there may be more to claim.
    pub(super) fn claimed(&mut self, claimed: &ClaimedQueues) -> bool {
        let passed_over = !self.served.is_empty();
        if claimed.more {
            self.served.extend(&claimed.owners);
        } else {
            self.served.clear();
            let healthy = self.in_hand(false) - self.in_hand(true);
            let more = match self.open() {
                open if open > healthy => self.per_owner,
                open if open > healthy / 4 => (self.per_owner / 4).max(1),
                _ => 0,
            };
            self.per_owner = self.per_owner.saturating_add(more).min(self.slots.per_owner);
        }
        claimed.more || passed_over
    }

    fn loads(&self) -> BTreeMap<SellerId, Load> {
        let mut loads = BTreeMap::<_, Load>::new();
        for queue in self.queues.values() {
            let number = u16::try_from(queue.in_hand.len()).unwrap_or(u16::MAX);
            loads.entry(queue.owner).or_default().add(number, queue.fails());
        }
        loads
    }

    /// Adds a claimed queue. One without due deliveries is released at once.
    pub(super) fn add(&mut self, claimed: SubscriptionQueue) -> Vec<Start> {
        let queue = LeasedQueue {
            client_id: claimed.client_id,
            owner: claimed.owner,
            url: claimed.url,
            secrets: Arc::new(claimed.secrets),
            failing: claimed.failing,
            in_hand: Vec::new(),
            running: 0,
            postponed: Vec::new(),
            ahead_of_retries: 0,
            round: 0,
            succeeded: false,
            failures: 0,
            outlook: Outlook::after(claimed.deliveries.len(), self.slots.per_queue / 2),
            call: StoreCall::None,
            refilled_last: false,
        };
        self.queues.insert(claimed.lease, queue);
        self.starts(claimed.lease, claimed.deliveries)
    }

    /// Adds further deliveries to leased queues. A queue that is in `refills` but not in `refilled` is locked, or has lost
    /// its lease: then it is released once its attempts have ended, and recording them has no effect.
    pub(super) fn refilled(&mut self, refills: &[Refill], refilled: Vec<Refilled>) -> Vec<Start> {
        for Refill {
            lease,
            running,
            capacity,
            ..
        } in refills
        {
            if let Some(queue) = self.queues.get_mut(lease) {
                queue.refilled_last = true;
                let given = refilled.iter().find(|given| given.lease == *lease);
                queue.call = StoreCall::UntilBeat;
                if given.is_some() {
                    queue.call = StoreCall::None;
                    queue.postponed.retain(|delivery| running.contains(delivery));
                }
                if queue.outlook != Outlook::Postponed {
                    let given = given.map_or(0, |given| given.deliveries.len());
                    queue.outlook = Outlook::after(given, *capacity);
                }
            }
        }
        let starts = refilled.into_iter().map(|given| {
            if let Some(queue) = self.queues.get_mut(&given.lease) {
                queue.url = given.url;
                queue.secrets = Arc::new(given.secrets);
            }
            self.starts(given.lease, given.deliveries)
        });
        starts.flatten().collect()
    }

    fn starts(&mut self, lease: Lease, deliveries: Vec<Due>) -> Vec<Start> {
        let Some(queue) = self.queues.get_mut(&lease) else {
            return Vec::new();
        };
        queue.running = queue.running.saturating_add(deliveries.len());
        if queue.retries() > 0 {
            queue.ahead_of_retries = 0;
        } else if queue.fails() {
            let number = u16::try_from(deliveries.len()).unwrap_or(u16::MAX);
            queue.ahead_of_retries = queue.ahead_of_retries.saturating_add(number);
        }
        queue.in_hand.extend(deliveries.iter().map(|due| InHand {
            id: due.id,
            is_retry: due.progress.attempt > 0,
        }));
        let start = |due: Due| Start {
            lease,
            delivery: due.id,
            from: due.progress,
            message: (!due.progress.has_failed_by_loss()).then(|| Message {
                application: queue.client_id,
                due_at: due.due_at,
                subscription: lease.queue.subscription,
                delivery: due.id,
                event: due.event,
                url: queue.url.clone(),
                body: due.body,
                secrets: Arc::clone(&queue.secrets),
            }),
        };
        deliveries.into_iter().map(start).collect()
    }

    /// Handles the end of an attempt; the store has not recorded it yet.
    pub(super) fn end(&mut self, record: AttemptRecord) {
        if let Some(queue) = self.queues.get_mut(&record.lease) {
            queue.running = queue.running.saturating_sub(1);
            if let Some(postponed) = self.postponed.get_mut(&queue.owner) {
                postponed.room = postponed.room.saturating_add(1);
            }
            if record.outcome.is_success() {
                queue.succeeded = true;
                queue.failures = 0;
            } else {
                queue.failures = queue.failures.saturating_add(1);
            }
        }
        self.ended.push(record);
    }

    /// An attempt could not begin: its delivery is no longer in hand, and nothing is recorded.
    pub(super) fn postpone(&mut self, start: &Start) {
        if let Some(queue) = self.queues.get_mut(&start.lease) {
            queue.running = queue.running.saturating_sub(1);
            queue.in_hand.retain(|delivery| delivery.id != start.delivery);
            queue.postponed.push(start.delivery);
            queue.outlook = Outlook::Postponed;
            self.postponed.entry(queue.owner).or_default().again = true;
        }
    }

    /// Whether all that is left are queues that wait for the next beat.
    pub(super) fn only_waits(&self) -> bool {
        let waits = |queue: &LeasedQueue| queue.call == StoreCall::UntilBeat && queue.running == 0;
        !self.is_empty() && self.queues.values().all(waits)
    }

    /// Queues that have waited are free again, and a claim tries again how many attempts can begin of owners with
    /// postponed ones.
    pub(super) fn beat(&mut self) {
        self.pauses.beat();
        for queue in self.queues.values_mut() {
            if queue.call == StoreCall::UntilBeat {
                queue.call = StoreCall::None;
            }
        }
        // Of postponed attempts many are tried, and few are in hand.
        if self.postponed.is_empty() {
            let most = self.loads().values().map(|load| load.attempts).max();
            let most = most.unwrap_or_default().saturating_mul(2);
            self.per_owner = self.per_owner.min(most.max(FIRST_PER_OWNER));
        }
        self.postponed.retain(|_, postponed| {
            postponed.room = u16::MAX;
            mem::take(&mut postponed.again)
        });
    }

    /// All ends to record, and the queues to release because they have no running attempt. None if there is
    /// neither.
    pub(super) fn next_recording(&mut self) -> Option<Recording> {
        let queues = &self.queues;
        let is_free = |lease: &Lease| queues.get(lease).is_none_or(LeasedQueue::is_free);
        let records = self.ended.extract_if(.., |record| is_free(&record.lease));
        let records: Vec<_> = records.collect();
        let idle = self
            .queues
            .iter_mut()
            .filter(|(_, queue)| queue.is_free() && queue.running == 0);
        let release = |(lease, queue): (&Lease, &mut LeasedQueue)| {
            queue.call = StoreCall::Record;
            let known = queue.succeeded || queue.failures > 0;
            Release {
                lease: *lease,
                failing: known.then_some(queue.fails()),
                pause: match (queue.outlook, known) {
                    (Outlook::Postponed, false) => self.pauses.next(queue, lease.queue, self.slots),
                    (Outlook::Postponed, true) => PAUSE,
                    (Outlook::MoreLikely | Outlook::CapacityLeft, _) => TimeDelta::zero(),
                },
            }
        };
        let releases: Vec<_> = idle.map(release).collect();
        for record in &records {
            if let Some(queue) = self.queues.get_mut(&record.lease) {
                queue.call = StoreCall::Record;
            }
        }
        let some = !records.is_empty() || !releases.is_empty();
        some.then_some(Recording { records, releases })
    }

    /// The store has recorded these, but for those under `locked` leases, which become part of a later one. Returns
    /// whether queues were released, which may be due again.
    pub(super) fn recorded(&mut self, mut recording: Recording, locked: &BTreeSet<Lease>) -> bool {
        for record in recording
            .records
            .extract_if(.., |record| !locked.contains(&record.lease))
        {
            if let Some(queue) = self.queues.get_mut(&record.lease) {
                queue.call = StoreCall::None;
                queue.refilled_last = false;
                queue.in_hand.retain(|delivery| delivery.id != record.delivery);
            }
        }
        let mut some_released = false;
        for release in recording
            .releases
            .extract_if(.., |release| !locked.contains(&release.lease))
        {
            if let Some(queue) = self.queues.remove(&release.lease) {
                self.pauses.released(&queue, &release);
            }
            some_released = true;
        }
        self.not_recorded(recording);
        some_released
    }

    /// Nothing may be recorded of these: they become part of a recording after the next beat.
    pub(super) fn not_recorded(&mut self, recording: Recording) {
        let leases = recording.records.iter().map(|record| record.lease);
        for lease in leases.chain(recording.releases.iter().map(|release| release.lease)) {
            if let Some(queue) = self.queues.get_mut(&lease) {
                queue.call = StoreCall::UntilBeat;
            }
        }
        self.ended.splice(0..0, recording.records);
    }

    /// Queues to refill while some of their attempts still run, so that one slow response does not block the
    /// rest: `all` queues, or only those that were full and are now half empty; the longest waiting first. A
    /// failing queue gets only first attempts, so they do not wait behind retries. A queue gets none if its
    /// host is full, if it is being recorded, or if the slots or its owner's share are used up.
    pub(super) fn refills(&mut self, all: bool) -> Vec<Refill> {
        let Some(mut capacity) = self.capacity_for_refills() else {
            return Vec::new();
        };
        self.rounds = self.rounds.saturating_add(1);
        let (slots, round) = (self.slots, self.rounds);
        let is_due = |(_, queue): &(&Lease, &mut LeasedQueue)| {
            queue.may_refill() && (!queue.postponed.is_empty() || queue.wants_more(all, slots))
        };
        let mut due: Vec<_> = self.queues.iter_mut().filter(is_due).collect();
        due.sort_by_key(|(_, queue)| queue.round);
        let mut refills = Vec::new();
        for (lease, queue) in due {
            let wanted = if queue.wants_more(all, slots) {
                queue.wanted(slots)
            } else {
                0
            };
            let number = capacity.take(queue.owner, queue.fails(), wanted);
            if number == 0 && queue.postponed.is_empty() {
                continue;
            }
            queue.round = round;
            queue.call = StoreCall::Refill;
            refills.push(Refill {
                lease: *lease,
                running: queue.in_hand.iter().map(|delivery| delivery.id).collect(),
                capacity: number,
                repeats: queue.capacity_for_retries(slots).min(number),
            });
        }
        refills
    }
}

/// The number of free slots, and how many attempts an owner may have in hand and still get more.
fn open_slots(slots: u16, used: usize, per_owner: u16) -> (u16, u16) {
    let free = left(slots, used);
    match free.saturating_sub(slots / RESERVE) {
        0 => (free, per_owner.min(free / PART_OF_RESERVE).max(1)),
        beyond_reserve => (beyond_reserve, per_owner.max(1)),
    }
}
