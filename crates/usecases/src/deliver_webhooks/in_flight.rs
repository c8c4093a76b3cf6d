//! The leased queues of a worker, their deliveries in hand, and the remaining capacity.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use kernel::SellerId;
use webhooks::{
    AttemptFailure, AttemptRecord, Attempted, Capacity, ClaimedQueues, DeliveryId, Due, Examined,
    FreeAttempts, Lease, Load, Message, Outcome, Progress, Refill, Refilled, Release, SubscriptionQueue,
};

use super::Slots;
use super::leased_queue::{InHand, LeasedQueue, Outlook, StoreCall, left};
use super::pauses::{PAUSE, Pauses};
use super::worker::Recording;

/// 1/`RESERVE` of the slots is reserved for owners without any attempt in hand.
const RESERVE: u16 = 8;

/// The window of an owner of whose receivers nothing is known, and the same in an idle process, where a few such owners may take
/// more: a burst is delivered sooner.
const FIRST_WINDOW: u16 = 2;
const FIRST_WINDOW_OF_IDLE: u16 = 16;

/// A failed attempt that took this many milliseconds halves its owner's window.
const LONG_MS: i32 = 1_000;

/// After this many beats the windows of owners without attempts are reset.
const REMEMBERED_FOR: u16 = 600;

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

/// What is known of an owner.
struct Owner {
    /// See [`Load::window`]. An attempt that succeeds adds one, a queue that begins to fail after a long attempt takes half: owners
    /// whose receivers do not respond have little in hand when all their attempts time out.
    window: u16,
    /// Attempts since the last beat.
    started: u16,
    postponed: Option<Postponed>,
}

/// What is known of an owner with postponed attempts.
#[derive(Default)]
struct Postponed {
    /// How many attempts the next claim may add: as many as have ended since the last one, and once a beat a whole share.
    room: u16,
    /// Whether one was postponed since the last beat.
    again: bool,
}

/// The owners whose queues the last claims have found. Claims pass over them until one finds all that there is: otherwise owners
/// of many due queues come before all whose queues become due later.
type Served = BTreeSet<SellerId>;

/// The leased queues of a worker, and the attempts whose end is not recorded yet.
pub(super) struct InFlight {
    slots: Slots,
    /// Ordered, so that the same calls have the same results.
    queues: BTreeMap<Lease, LeasedQueue>,
    ended: Vec<AttemptRecord>,
    /// Rounds of refills so far.
    rounds: u64,
    pauses: Pauses,
    owners: BTreeMap<SellerId, Owner>,
    beats: u16,
    /// Healthy and failing queues take turns on their own: those of one kind may be found while the other has no free attempt.
    served: Served,
    served_failing: Served,
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
            owners: BTreeMap::new(),
            beats: 0,
            served: Served::new(),
            served_failing: Served::new(),
            claiming: None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// How much can start now; none without a free slot. A slot is free only once the end of its attempt is recorded, so nothing
    /// piles up while the store is unavailable.
    fn capacity(&self) -> Option<Capacity> {
        let slots = self.slots;
        let free = |slots: u16, failing| {
            let (of, in_hand) = (slots - slots / RESERVE, self.in_hand(failing));
            FreeAttempts {
                attempts: left(slots, in_hand),
                open: left(of, in_hand),
                of,
                passed_over: BTreeSet::new(),
            }
        };
        let capacity = Capacity {
            all: free(slots.attempts, false),
            failing: free((slots.attempts / 2).max(1), true),
            per_queue: slots.per_queue.max(1),
            per_failing_queue: slots.per_failing_queue,
            first_window: self.first_window(),
            first_window_of_idle: FIRST_WINDOW_OF_IDLE.min(slots.per_owner),
            under_way: self.loads(),
        };
        (capacity.all.attempts > 0).then_some(capacity)
    }

    fn first_window(&self) -> u16 {
        FIRST_WINDOW.min(self.slots.per_owner)
    }

    fn in_hand(&self, failing: bool) -> usize {
        let queues = self.queues.values().filter(|queue| !failing || queue.fails());
        queues.map(|queue| queue.in_hand.len()).sum()
    }

    /// The capacity of a claim: little or none for owners with postponed attempts, whose queues would be leased and postponed
    /// one after another, however many they are.
    pub(super) fn begin_claim(&mut self) -> Option<Capacity> {
        let mut capacity = self.capacity()?;
        for (id, owner) in &mut self.owners {
            if let Some(postponed) = &mut owner.postponed {
                let load = capacity.under_way.entry(*id).or_insert(Load::none(owner.window));
                load.tries = Some(if self.served.contains(id) {
                    0
                } else {
                    mem::take(&mut postponed.room)
                });
            }
        }
        capacity.all.passed_over.clone_from(&self.served);
        capacity.failing.passed_over.clone_from(&self.served_failing);
        self.claiming = Some(capacity.clone());
        Some(capacity)
    }

    pub(super) const fn is_claiming(&self) -> bool {
        self.claiming.is_some()
    }

    pub(super) fn end_claim(&mut self) {
        self.claiming = None;
    }

    /// The capacity of refills: beside a claim only what has become free since it began, since it may use all the rest.
    fn capacity_for_refills(&self) -> Option<Capacity> {
        let mut capacity = self.capacity()?;
        if let Some(claim) = &self.claiming {
            capacity.all.attempts = capacity.all.open.saturating_sub(claim.all.open);
            capacity.failing.attempts = capacity.failing.open.saturating_sub(claim.failing.open);
            for (owner, load) in &mut capacity.under_way {
                let (healthy, failing) = (claim.left(*owner, false), claim.left(*owner, true));
                load.attempts = load.attempts.saturating_add(healthy.max(failing));
                load.failing = load.failing.saturating_add(failing);
            }
        }
        Some(capacity)
    }

    /// Whether there may be more to claim.
    pub(super) fn claimed(&mut self, claimed: &ClaimedQueues) -> bool {
        let healthy = end_of_claim(&mut self.served, &claimed.healthy);
        let failing = claimed.failing.as_ref();
        let failing = failing.is_some_and(|failing| end_of_claim(&mut self.served_failing, failing));
        healthy || failing
    }

    fn loads(&self) -> BTreeMap<SellerId, Load> {
        let first = self.first_window();
        let known = self.owners.iter().filter(|(_, owner)| owner.window != first);
        let mut loads: BTreeMap<_, _> = known.map(|(id, owner)| (*id, Load::none(owner.window))).collect();
        for queue in self.queues.values() {
            let number = u16::try_from(queue.in_hand.len()).unwrap_or(u16::MAX);
            let load = loads.entry(queue.owner).or_insert(Load::none(first));
            load.add(number, queue.fails());
        }
        loads
    }

    fn owner(&mut self, id: SellerId) -> &mut Owner {
        let window = self.first_window();
        self.owners.entry(id).or_insert(Owner {
            window,
            started: 0,
            postponed: None,
        })
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
            outlook: Outlook::of(claimed.more),
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
                    queue.outlook = Outlook::of(given >= usize::from(*capacity));
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
        let Some(owner) = self.queues.get(&lease).map(|queue| queue.owner) else {
            return Vec::new();
        };
        let number = u16::try_from(deliveries.len()).unwrap_or(u16::MAX);
        let owner = self.owner(owner);
        owner.started = owner.started.saturating_add(number);
        owner.window = owner.window.max(number);
        let Some(queue) = self.queues.get_mut(&lease) else {
            return Vec::new();
        };
        queue.running = queue.running.saturating_add(deliveries.len());
        if queue.retries() > 0 {
            queue.ahead_of_retries = 0;
        } else if queue.fails() {
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
            let is_success = record.outcome.is_success();
            let fails = queue.fails();
            queue.end(is_success);
            let begins_to_fail = !fails && queue.fails() && record.duration_ms >= LONG_MS;
            let (owner, most) = (queue.owner, self.slots.per_owner);
            let owner = self.owner(owner);
            if is_success && owner.window < most {
                owner.window += 1;
            }
            if begins_to_fail {
                owner.window = (owner.window / 2).max(1);
            }
            if let Some(postponed) = &mut owner.postponed {
                postponed.room = postponed.room.saturating_add(1);
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
            let owner = queue.owner;
            self.owner(owner).postponed.get_or_insert_default().again = true;
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
        self.beats += 1;
        let is_forgotten = self.beats >= REMEMBERED_FOR;
        if is_forgotten {
            self.beats = 0;
        }
        let loads = self.loads();
        let (first, most) = (self.first_window(), self.slots.per_owner);
        let is_half_empty = self.in_hand(false) < usize::from(self.slots.attempts / 2);
        self.owners.retain(|id, owner| {
            let in_hand = loads.get(id).map_or(0, |load| load.attempts);
            let needed = in_hand.max(mem::take(&mut owner.started)).saturating_mul(2);
            let again = owner.postponed.take().filter(|postponed| postponed.again);
            owner.window = if again.is_some() {
                // Its full host holds many. Its other receivers have as much again.
                most.saturating_mul(2)
            } else {
                owner.window.min(most)
            };
            owner.postponed = again.map(|_| Postponed {
                room: left(most, in_hand.into()),
                again: false,
            });
            if owner.postponed.is_none() && is_half_empty {
                // In a fuller process it is not the owner's doing that little of a window is used.
                owner.window = owner.window.min(needed.max(first));
                if needed >= owner.window {
                    owner.window = owner.window.saturating_mul(2).min(most);
                }
            }
            !is_forgotten || owner.postponed.is_some() || in_hand > 0
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

/// Whether a claim may have left something: it did not see all, or passed over owners.
fn end_of_claim(served: &mut Served, examined: &Examined) -> bool {
    let passed_over = !served.is_empty();
    if examined.more {
        served.extend(&examined.owners);
    } else {
        served.clear();
    }
    examined.more || passed_over
}
