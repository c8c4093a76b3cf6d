//! The leased queues of a worker, their deliveries in hand, and the capacity that is left.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use chrono::TimeDelta;
use oauth::ClientId;
use webhooks::{
    Attempted, Conclusion, DeliveryId, Due, Failure, Hold, Lane, LaneKey, Message, Outcome, Release, Room,
    TopUp, ToppedUp, UnderWay, signature,
};

use super::Slots;
use super::leased_queue::{InHand, LeasedQueue, Outlook, Phase, left};
use super::worker::Settlement;

/// One queue gets at most this fraction of the free slots.
const FAIR_SHARE: u16 = 8;

/// This fraction of the slots is reserved for applications that have little in hand, …
const RESERVE: u16 = 8;

/// … and one application gets at most this fraction of the free reserve.
const PART_OF_RESERVE: u16 = 8;

/// An attempt to begin.
pub(super) struct Start {
    pub(super) hold: Hold,
    pub(super) delivery: DeliveryId,
    /// How many attempts have ended.
    pub(super) attempt: u8,
    /// None where the delivery was lost too often: nothing is sent.
    pub(super) message: Option<Message>,
}

impl Start {
    /// The outcome of an attempt that was lost with its worker.
    pub(super) const fn lost() -> Attempted {
        Attempted {
            outcome: Outcome::Failed(Failure::WorkerLost),
            duration: Duration::ZERO,
        }
    }
}

/// How long a queue rests whose host had too many attempts under way, …
const REST: TimeDelta = TimeDelta::milliseconds(250);

/// … and how long at most, if that happens again and again.
const LONGEST_REST: TimeDelta = TimeDelta::seconds(2);

/// How many queues' last rests are remembered.
const RESTS_KNOWN: usize = 4_096;

/// The leased queues of a worker, and the attempts whose end is not recorded yet.
pub(super) struct InFlight {
    slots: Slots,
    /// Ordered, so that the same calls have the same results.
    queues: BTreeMap<Hold, LeasedQueue>,
    ended: Vec<Conclusion>,
    /// Rounds of refills so far.
    rounds: u64,
    /// The last rests of queues in which nothing could begin.
    rests: HashMap<LaneKey, TimeDelta>,
}

impl InFlight {
    pub(super) fn new(slots: Slots) -> Self {
        Self {
            slots,
            queues: BTreeMap::new(),
            ended: Vec::new(),
            rounds: 0,
            rests: HashMap::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// How much can start now. A slot is free once the end of its attempt is recorded, so that nothing piles up while the store is
    /// unavailable. The fewer slots are free, the fewer one queue gets, so that many queues that fail at once leave some to others.
    /// The last slots, and the last of the half that failing queues may use, are reserved for applications with almost nothing in
    /// hand.
    fn room(&self) -> Option<Room> {
        let in_hand = |queue: &LeasedQueue| queue.in_hand.len();
        let used: usize = self.queues.values().map(in_hand).sum();
        let failing: usize = self
            .queues
            .values()
            .filter(|queue| queue.fails())
            .map(in_hand)
            .sum();
        let slots = self.slots;
        let (attempts, per_application) = open(slots.attempts, used, slots.per_application);
        let (failing_attempts, failing_per_application) = open(
            (slots.attempts / 2).max(1),
            failing,
            slots.failing_per_application,
        );
        (attempts > 0).then(|| Room {
            attempts,
            failing_attempts: failing_attempts.min(attempts),
            per_lane: (attempts / FAIR_SHARE).clamp(1, slots.per_lane.max(1)),
            per_failing_lane: slots.per_failing_lane,
            per_application,
            failing_per_application,
            under_way: self.of_applications().into_values().collect(),
        })
    }

    /// What a claim may use: half of the last slots, so that a later claim, for other queues, finds some too.
    pub(super) fn room_for_claim(&self) -> Option<Room> {
        let half_of_few = |slots: u16, left: u16| {
            if left <= slots / RESERVE {
                left.div_ceil(2)
            } else {
                left
            }
        };
        let slots = self.slots.attempts;
        self.room().map(|room| Room {
            attempts: half_of_few(slots, room.attempts),
            failing_attempts: half_of_few(slots / 2, room.failing_attempts),
            ..room
        })
    }

    fn of_applications(&self) -> HashMap<ClientId, UnderWay> {
        let mut applications = HashMap::new();
        for queue in self.queues.values() {
            let of = applications
                .entry(queue.client_id)
                .or_insert_with(|| nothing_of(queue.client_id));
            let number = u16::try_from(queue.in_hand.len()).unwrap_or(u16::MAX);
            of.attempts = of.attempts.saturating_add(number);
            if queue.fails() {
                of.failing = of.failing.saturating_add(number);
            }
        }
        applications
    }

    /// Adds a claimed queue. One without due deliveries is released at once.
    pub(super) fn take(&mut self, lane: Lane) -> Vec<Start> {
        let queue = LeasedQueue {
            client_id: lane.client_id,
            url: lane.url,
            secret: lane.secret,
            failing: lane.failing,
            in_hand: Vec::new(),
            running: 0,
            overstated: false,
            ahead_of_retries: 0,
            round: 0,
            succeeded: false,
            failures: 0,
            outlook: Outlook::after(lane.deliveries.len(), self.slots.per_lane / 2),
            phase: Phase::None,
        };
        self.queues.insert(lane.hold, queue);
        self.starts(lane.hold, lane.deliveries)
    }

    /// Adds further deliveries to leased queues. The lease of a queue that is `asked` for and not in the answer is lost: it is
    /// released once its attempts have ended, and their ends have no effect.
    pub(super) fn topped_up(&mut self, asked: &[TopUp], answer: Vec<ToppedUp>) -> Vec<Start> {
        for TopUp { hold, room, .. } in asked {
            if let Some(lane) = self.queues.get_mut(hold) {
                lane.phase = Phase::None;
                let given = answer.iter().find(|given| given.hold == *hold);
                lane.overstated &= given.is_none();
                if lane.outlook != Outlook::Postponed {
                    let given = given.map_or(0, |given| given.deliveries.len());
                    lane.outlook = Outlook::after(given, *room);
                }
            }
        }
        let starts = answer
            .into_iter()
            .map(|lane| self.starts(lane.hold, lane.deliveries));
        starts.flatten().collect()
    }

    fn starts(&mut self, hold: Hold, deliveries: Vec<Due>) -> Vec<Start> {
        let Some(lane) = self.queues.get_mut(&hold) else {
            return Vec::new();
        };
        lane.running = lane.running.saturating_add(deliveries.len());
        if lane.retries() > 0 {
            lane.ahead_of_retries = 0;
        } else if lane.fails() {
            let number = u16::try_from(deliveries.len()).unwrap_or(u16::MAX);
            lane.ahead_of_retries = lane.ahead_of_retries.saturating_add(number);
        }
        lane.in_hand.extend(deliveries.iter().map(|due| InHand {
            id: due.id,
            is_retry: due.attempt > 0,
        }));
        let start = |due: Due| Start {
            hold,
            delivery: due.id,
            attempt: due.attempt,
            message: (!due.has_failed_by_loss()).then(|| Message {
                application: lane.client_id,
                delivery: due.id,
                event: due.event,
                url: lane.url.clone(),
                signature: signature(&lane.secret, &due.body),
                body: due.body,
            }),
        };
        deliveries.into_iter().map(start).collect()
    }

    /// An attempt has ended.
    pub(super) fn conclude(&mut self, conclusion: Conclusion) {
        if let Some(lane) = self.queues.get_mut(&conclusion.hold) {
            lane.running = lane.running.saturating_sub(1);
            if conclusion.outcome.is_success() {
                lane.succeeded = true;
                lane.failures = 0;
            } else {
                lane.failures = lane.failures.saturating_add(1);
            }
        }
        self.ended.push(conclusion);
    }

    /// An attempt could not begin: its delivery is no longer in hand, and nothing is recorded.
    pub(super) fn postpone(&mut self, start: &Start) {
        if let Some(lane) = self.queues.get_mut(&start.hold) {
            lane.running = lane.running.saturating_sub(1);
            lane.in_hand.retain(|delivery| delivery.id != start.delivery);
            lane.overstated = true;
            lane.outlook = Outlook::Postponed;
        }
    }

    /// All ends to record, and the queues to release because nothing runs in them. None if there is neither.
    pub(super) fn settlement(&mut self) -> Option<Settlement> {
        let conclusions = std::mem::take(&mut self.ended);
        let over = self.queues.iter_mut().filter(|(_, lane)| lane.is_over());
        let release = |(hold, lane): (&Hold, &mut LeasedQueue)| {
            lane.phase = Phase::Release;
            let known = lane.succeeded || lane.failures > 0;
            Release {
                hold: *hold,
                failing: known.then_some(lane.fails()),
                rest: match (lane.outlook, known) {
                    (Outlook::Postponed, false) => longer(self.rests.get(&hold.lane)),
                    (Outlook::Postponed, true) => REST,
                    (Outlook::Full | Outlook::Drained, _) => TimeDelta::zero(),
                },
            }
        };
        let releases: Vec<_> = over.map(release).collect();
        let some = !conclusions.is_empty() || !releases.is_empty();
        some.then_some(Settlement {
            conclusions,
            releases,
        })
    }

    /// The store has recorded it. Returns whether queues were released, which may be due again.
    pub(super) fn settled(&mut self, settlement: &Settlement) -> bool {
        for conclusion in &settlement.conclusions {
            if let Some(lane) = self.queues.get_mut(&conclusion.hold) {
                lane.in_hand.retain(|delivery| delivery.id != conclusion.delivery);
            }
        }
        for release in &settlement.releases {
            self.queues.remove(&release.hold);
            self.rests.remove(&release.hold.lane);
            if release.rest > TimeDelta::zero() && self.rests.len() < RESTS_KNOWN {
                self.rests.insert(release.hold.lane, release.rest);
            }
        }
        !settlement.releases.is_empty()
    }

    /// The store has failed, as far as is known: the settlement becomes part of the next one.
    pub(super) fn unsettled(&mut self, settlement: Settlement) {
        for release in &settlement.releases {
            if let Some(lane) = self.queues.get_mut(&release.hold) {
                lane.phase = Phase::None;
            }
        }
        self.ended.splice(0..0, settlement.conclusions);
    }

    /// Queues to refill while some of their attempts still run, so that one slow answer does not block the rest: `all`, or only
    /// those that were full and are half empty now; first those that waited longest. A failing queue gets first attempts only,
    /// which then do not wait behind retries. A queue whose host is full, or that is about to be released, gets none, nor does
    /// any where the slots or its application's share are used up.
    pub(super) fn top_ups(&mut self, all: bool) -> Vec<TopUp> {
        let Some(mut room) = self.room() else {
            return Vec::new();
        };
        let mut of_applications = self.of_applications();
        self.rounds = self.rounds.saturating_add(1);
        let (slots, round) = (self.slots, self.rounds);
        let is_due = |(_, lane): &(&Hold, &mut LeasedQueue)| {
            lane.phase == Phase::None && !lane.is_over() && (lane.overstated || lane.wants_more(all, slots))
        };
        let mut due: Vec<_> = self.queues.iter_mut().filter(is_due).collect();
        due.sort_by_key(|(_, lane)| lane.round);
        let mut top_ups = Vec::new();
        for (hold, lane) in due {
            let of = of_applications
                .entry(lane.client_id)
                .or_insert_with(|| nothing_of(lane.client_id));
            let number = if lane.wants_more(all, slots) {
                lane.share(&room, *of, slots)
            } else {
                0
            };
            if number == 0 && !lane.overstated {
                continue;
            }
            room.attempts = room.attempts.saturating_sub(number);
            of.attempts = of.attempts.saturating_add(number);
            if lane.fails() {
                room.failing_attempts = room.failing_attempts.saturating_sub(number);
                of.failing = of.failing.saturating_add(number);
            }
            lane.round = round;
            lane.phase = Phase::Refill;
            top_ups.push(TopUp {
                hold: *hold,
                running: lane.in_hand.iter().map(|delivery| delivery.id).collect(),
                room: number,
                repeats: lane.room_for_retries(slots).min(number),
            });
        }
        top_ups
    }
}

/// How many slots are free, and how many attempts an application may have in hand and still get more.
fn open(slots: u16, used: usize, per_application: u16) -> (u16, u16) {
    let free = left(slots, used);
    match free.saturating_sub(slots / RESERVE) {
        0 => (free, per_application.min(free / PART_OF_RESERVE).max(1)),
        beyond_reserve => (beyond_reserve, per_application.max(1)),
    }
}

const fn nothing_of(client_id: ClientId) -> UnderWay {
    UnderWay {
        client_id,
        attempts: 0,
        failing: 0,
    }
}

/// The rest after another one.
fn longer(last: Option<&TimeDelta>) -> TimeDelta {
    let doubled = last.and_then(|last| last.checked_mul(2));
    doubled.map_or(REST, |rest| rest.min(LONGEST_REST))
}
