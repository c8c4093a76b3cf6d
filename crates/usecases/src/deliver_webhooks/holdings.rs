//! What a worker holds: lanes, their deliveries in hand, and how much room is left.

mod held;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use chrono::TimeDelta;
use oauth::ClientId;
use webhooks::{
    Attempted, Conclusion, DeliveryId, Due, Failure, Hold, Lane, LaneKey, Message, Outcome, Release, Room,
    TopUp, ToppedUp, UnderWay, signature,
};

use super::Slots;
use super::worker::Settlement;
use held::{Held, InHand, Outlook, Phase, left};

/// One lane gets at most this part of the slots that are left.
const FAIR_SHARE: u16 = 8;

/// This part of the slots is kept for applications that have little in hand, …
const RESERVE: u16 = 8;

/// … and of what is left of it one application gets at most this part.
const PART_OF_RESERVE: u16 = 8;

/// An attempt that is to begin.
pub(super) struct Start {
    /// The claim that it is made under.
    pub(super) hold: Hold,
    /// Which delivery.
    pub(super) delivery: DeliveryId,
    /// How many attempts have ended before.
    pub(super) attempt: u8,
    /// What is sent; nothing where the delivery was lost once too often.
    pub(super) message: Option<Message>,
}

impl Start {
    /// How an attempt ends that was lost with its worker.
    pub(super) const fn lost() -> Attempted {
        Attempted {
            outcome: Outcome::Failed(Failure::WorkerLost),
            duration: Duration::ZERO,
        }
    }
}

/// How long a lane rests for whose host too many attempts were under way, …
const REST: TimeDelta = TimeDelta::milliseconds(250);

/// … and how long at most, where nothing begins in it time after time.
const LONGEST_REST: TimeDelta = TimeDelta::seconds(2);

/// Of how many lanes it is known how long they rested last.
const RESTS_KNOWN: usize = 4_096;

/// The lanes that a worker holds, and what has ended in them.
pub(super) struct Holdings {
    slots: Slots,
    /// In an order of their own, so that the same calls have the same consequences.
    held: BTreeMap<Hold, Held>,
    ended: Vec<Conclusion>,
    /// How many rounds of top-ups there were.
    rounds: u64,
    /// How long lanes rested last in which nothing could begin.
    rests: HashMap<LaneKey, TimeDelta>,
}

impl Holdings {
    pub(super) fn new(slots: Slots) -> Self {
        Self {
            slots,
            held: BTreeMap::new(),
            ended: Vec::new(),
            rounds: 0,
            rests: HashMap::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// How much can start now; nothing when nothing can. A slot is free again when the end of its attempt is recorded, so that
    /// nothing piles up while the store is away. The fewer are left, the fewer go to one lane: so many lanes that turn dead at
    /// once leave something to the others. The last ones go to applications that have next to nothing in hand, however many
    /// others have slow receivers, and of the half that lanes which fail may have likewise, however many others have dead ones.
    fn room(&self) -> Option<Room> {
        let in_hand = |held: &Held| held.in_hand.len();
        let used: usize = self.held.values().map(in_hand).sum();
        let failing: usize = self.held.values().filter(|held| held.fails()).map(in_hand).sum();
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

    /// How much a claim may take of it. Of the last slots that is half: the next claim, which may come upon others, sees less left.
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

    /// How much each application has in hand.
    fn of_applications(&self) -> HashMap<ClientId, UnderWay> {
        let mut applications = HashMap::new();
        for held in self.held.values() {
            let of = applications
                .entry(held.client_id)
                .or_insert_with(|| nothing_of(held.client_id));
            let number = u16::try_from(held.in_hand.len()).unwrap_or(u16::MAX);
            of.attempts = of.attempts.saturating_add(number);
            if held.fails() {
                of.failing = of.failing.saturating_add(number);
            }
        }
        applications
    }

    /// Takes a lane over. One in which nothing is due goes back at once.
    pub(super) fn take(&mut self, lane: Lane) -> Vec<Start> {
        let held = Held {
            client_id: lane.client_id,
            url: lane.url,
            secret: lane.secret,
            failing: lane.failing,
            in_hand: Vec::new(),
            running: 0,
            overstated: false,
            ahead_of_repeats: 0,
            round: 0,
            succeeded: false,
            failures: 0,
            outlook: Outlook::after(lane.deliveries.len(), self.slots.per_lane / 2),
            phase: Phase::Held,
        };
        self.held.insert(lane.hold, held);
        self.starts(lane.hold, lane.deliveries)
    }

    /// Takes in what else is due in lanes that are held. Those that `asked` names and the answer does not are lost; they go
    /// like others once their attempts have ended, which changes nothing any more.
    pub(super) fn topped_up(&mut self, asked: &[TopUp], answer: Vec<ToppedUp>) -> Vec<Start> {
        for TopUp { hold, room, .. } in asked {
            if let Some(lane) = self.held.get_mut(hold) {
                lane.phase = Phase::Held;
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
        let Some(lane) = self.held.get_mut(&hold) else {
            return Vec::new();
        };
        lane.running = lane.running.saturating_add(deliveries.len());
        if lane.repeats() > 0 {
            lane.ahead_of_repeats = 0;
        } else if lane.fails() {
            let number = u16::try_from(deliveries.len()).unwrap_or(u16::MAX);
            lane.ahead_of_repeats = lane.ahead_of_repeats.saturating_add(number);
        }
        lane.in_hand.extend(deliveries.iter().map(|due| InHand {
            id: due.id,
            repeated: due.attempt > 0,
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
        if let Some(lane) = self.held.get_mut(&conclusion.hold) {
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

    /// An attempt could not begin. Its delivery is in hand no more, and there is nothing to record of it.
    pub(super) fn postpone(&mut self, start: &Start) {
        if let Some(lane) = self.held.get_mut(&start.hold) {
            lane.running = lane.running.saturating_sub(1);
            lane.in_hand.retain(|delivery| delivery.id != start.delivery);
            lane.overstated = true;
            lane.outlook = Outlook::Postponed;
        }
    }

    /// What is to be recorded: every end, and the lanes in which nothing runs any more. Nothing when there is neither.
    pub(super) fn settlement(&mut self) -> Option<Settlement> {
        let conclusions = std::mem::take(&mut self.ended);
        let over = self.held.iter_mut().filter(|(_, lane)| lane.is_over());
        let release = |(hold, lane): (&Hold, &mut Held)| {
            lane.phase = Phase::Leaving;
            let known = lane.succeeded || lane.failures > 0;
            Release {
                hold: *hold,
                failing: known.then_some(lane.fails()),
                rest: match (lane.outlook, known) {
                    (Outlook::Postponed, false) => longer(self.rests.get(&hold.lane)),
                    (Outlook::Postponed, true) => REST,
                    (Outlook::Brims | Outlook::Drained, _) => TimeDelta::zero(),
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

    /// It is recorded. Returns whether lanes went back, which may be due again.
    pub(super) fn settled(&mut self, settlement: &Settlement) -> bool {
        for conclusion in &settlement.conclusions {
            if let Some(lane) = self.held.get_mut(&conclusion.hold) {
                lane.in_hand.retain(|delivery| delivery.id != conclusion.delivery);
            }
        }
        for release in &settlement.releases {
            self.held.remove(&release.hold);
            self.rests.remove(&release.hold.lane);
            if release.rest > TimeDelta::zero() && self.rests.len() < RESTS_KNOWN {
                self.rests.insert(release.hold.lane, release.rest);
            }
        }
        !settlement.releases.is_empty()
    }

    /// It is not recorded, as far as is known, and goes with the next settlement.
    pub(super) fn unsettled(&mut self, settlement: Settlement) {
        for release in &settlement.releases {
            if let Some(lane) = self.held.get_mut(&release.hold) {
                lane.phase = Phase::Held;
            }
        }
        self.ended.splice(0..0, settlement.conclusions);
    }

    /// Lanes in which attempts have ended while others go on: one slow answer does not hold up the rest. `all` of them, or
    /// those alone in which there was more and that are half empty by now; those first that were left out longest. One that
    /// fails gets first attempts alone: they do not wait behind a repeated one. One whose host has no place, or that is about
    /// to go back, gets no more, and no lane does where the slots, or its application's part, are used up.
    pub(super) fn top_ups(&mut self, all: bool) -> Vec<TopUp> {
        let Some(mut room) = self.room() else {
            return Vec::new();
        };
        let mut of_applications = self.of_applications();
        self.rounds = self.rounds.saturating_add(1);
        let (slots, round) = (self.slots, self.rounds);
        let is_due = |(_, lane): &(&Hold, &mut Held)| {
            lane.phase == Phase::Held && !lane.is_over() && (lane.overstated || lane.wants_more(all, slots))
        };
        let mut due: Vec<_> = self.held.iter_mut().filter(is_due).collect();
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
            lane.phase = Phase::ToppingUp;
            top_ups.push(TopUp {
                hold: *hold,
                running: lane.in_hand.iter().map(|delivery| delivery.id).collect(),
                room: number,
                repeats: lane.room_for_repeats(slots).min(number),
            });
        }
        top_ups
    }
}

/// How many of so many slots are open now, and how many one application may have in hand for that it gets more.
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

/// A rest that follows another one.
fn longer(last: Option<&TimeDelta>) -> TimeDelta {
    let doubled = last.and_then(|last| last.checked_mul(2));
    doubled.map_or(REST, |rest| rest.min(LONGEST_REST))
}
