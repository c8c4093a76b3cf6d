//! What a worker holds: lanes, their deliveries in hand, and how much room is left.

use std::collections::HashMap;
use std::time::Duration;

use chrono::TimeDelta;
use oauth::ClientId;
use webhooks::{
    Attempted, Conclusion, DeliveryId, Due, Failure, Hold, Lane, Message, Outcome, Release, Room, TopUp,
    ToppedUp, WebhookSecret, WebhookUrl, signature,
};

use super::Slots;
use super::worker::Settlement;

/// One lane gets at most this part of the slots that are left.
const FAIR_SHARE: u16 = 8;

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

/// How many failures in a row make a lane fail that has answered well before.
const FAILURES_IN_A_ROW: u16 = 8;

/// How long a lane rests for whose host too many attempts were under way.
const REST: TimeDelta = TimeDelta::milliseconds(250);

/// A lane that is held.
struct Held {
    client_id: ClientId,
    url: WebhookUrl,
    secret: WebhookSecret,
    /// Failed when it was claimed.
    failing: bool,
    /// Deliveries whose attempts run, or have ended and are not recorded yet: the store would give them out again.
    in_hand: Vec<DeliveryId>,
    /// How many of them run.
    running: usize,
    /// An attempt has succeeded under this claim.
    succeeded: bool,
    /// How many have failed since.
    failures: u16,
    outlook: Outlook,
    phase: Phase,
}

/// What is to be had from a lane under its claim.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outlook {
    /// What it was given last filled its room: there may be more.
    Brims,
    /// There was room for more than it was given.
    Drained,
    /// An attempt could not begin: nothing more does under this claim.
    Postponed,
}

impl Outlook {
    fn after(given: usize, room: u16) -> Self {
        if given >= usize::from(room) {
            Self::Brims
        } else {
            Self::Drained
        }
    }
}

/// What the store is being told of a lane.
#[derive(PartialEq, Eq)]
enum Phase {
    /// Nothing.
    Held,
    /// That there is room for more.
    ToppingUp,
    /// That it goes back.
    Leaving,
}

impl Held {
    /// Whether it counts as failing from what is known by now.
    const fn fails(&self) -> bool {
        if self.succeeded {
            self.failures >= FAILURES_IN_A_ROW
        } else {
            self.failing || self.failures > 0
        }
    }

    fn is_over(&self) -> bool {
        self.running == 0 && self.phase == Phase::Held
    }
}

/// The lanes that a worker holds, and what has ended in them.
pub(super) struct Holdings {
    slots: Slots,
    held: HashMap<Hold, Held>,
    ended: Vec<Conclusion>,
}

impl Holdings {
    pub(super) fn new(slots: Slots) -> Self {
        Self {
            slots,
            held: HashMap::new(),
            ended: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// How much can start now; nothing when nothing can. A slot is free again when the end of its attempt is recorded, so that
    /// nothing piles up while the store is away. The fewer are left, the fewer go to one lane: so many lanes that turn dead at
    /// once leave something to the others.
    pub(super) fn room(&self) -> Option<Room> {
        let in_hand = |held: &Held| held.in_hand.len();
        let used: usize = self.held.values().map(in_hand).sum();
        let failing: usize = self.held.values().filter(|held| held.fails()).map(in_hand).sum();
        let attempts = left(self.slots.attempts, used);
        (attempts > 0).then(|| Room {
            attempts,
            failing_attempts: left((self.slots.attempts / 2).max(1), failing).min(attempts),
            per_lane: (attempts / FAIR_SHARE).clamp(1, self.slots.per_lane.max(1)),
            per_failing_lane: self.slots.per_failing_lane,
            per_application: self.slots.per_application.max(1),
            under_way: self.of_applications().into_iter().collect(),
        })
    }

    /// How much each application has in hand.
    fn of_applications(&self) -> HashMap<ClientId, u16> {
        let mut applications = HashMap::<_, u16>::new();
        for held in self.held.values() {
            let count = applications.entry(held.client_id).or_default();
            *count = count.saturating_add(u16::try_from(held.in_hand.len()).unwrap_or(u16::MAX));
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
        lane.in_hand.extend(deliveries.iter().map(|due| due.id));
        let start = |due: Due| Start {
            hold,
            delivery: due.id,
            attempt: due.attempt,
            message: (!due.has_failed_by_loss()).then(|| Message {
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
            lane.in_hand.retain(|id| *id != start.delivery);
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
                rest: if lane.outlook == Outlook::Postponed {
                    REST
                } else {
                    TimeDelta::zero()
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
                lane.in_hand.retain(|id| *id != conclusion.delivery);
            }
        }
        for release in &settlement.releases {
            self.held.remove(&release.hold);
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
    /// those alone in which there was more and that are half empty by now. A lane that fails, whose host has no place, or that
    /// is about to go back, gets no more, and no lane does where the slots, or its application's part, are used up.
    pub(super) fn top_ups(&mut self, all: bool) -> Vec<TopUp> {
        let Some(Room { mut attempts, .. }) = self.room() else {
            return Vec::new();
        };
        let mut of_applications = self.of_applications();
        let Slots {
            per_lane,
            per_application,
            ..
        } = self.slots;
        let mut top_ups = Vec::new();
        for (hold, lane) in &mut self.held {
            let used = of_applications.entry(lane.client_id).or_default();
            let room = left(per_lane, lane.in_hand.len())
                .min(attempts)
                .min(per_application.saturating_sub(*used));
            let wants = all || (lane.outlook == Outlook::Brims && room > per_lane / 2);
            let ends = lane.fails() || lane.outlook == Outlook::Postponed || lane.is_over();
            if !wants || room == 0 || ends || lane.phase != Phase::Held {
                continue;
            }
            lane.phase = Phase::ToppingUp;
            attempts = attempts.saturating_sub(room);
            *used = used.saturating_add(room);
            top_ups.push(TopUp {
                hold: *hold,
                running: lane.in_hand.clone(),
                room,
            });
        }
        top_ups
    }
}

fn left(slots: u16, used: usize) -> u16 {
    slots.saturating_sub(u16::try_from(used).unwrap_or(u16::MAX))
}
