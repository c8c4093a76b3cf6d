//! A lane that a worker holds, and how much more it may get.

use oauth::ClientId;
use webhooks::{DeliveryId, Room, UnderWay, WebhookSecret, WebhookUrl};

use crate::deliver_webhooks::Slots;

/// How many failures in a row make a lane fail that has answered well before.
const FAILURES_IN_A_ROW: u16 = 8;

/// How much room is held for a lane in which more may have become due: what is held for one is none of the others' until the
/// store has answered. A lane that fills it gets what it needs at once.
const FEELER: u16 = 2;

/// How many first attempts a lane that fails gets beyond those of its claim, before it goes back so that repeated ones get
/// their turn.
const BEFORE_REPEATS: u16 = 8;

/// A delivery in the worker's hands.
pub(super) struct InHand {
    pub(super) id: DeliveryId,
    /// It is no first attempt.
    pub(super) repeated: bool,
}

/// A lane that is held.
pub(super) struct Held {
    pub(super) client_id: ClientId,
    pub(super) url: WebhookUrl,
    pub(super) secret: WebhookSecret,
    /// Failed when it was claimed.
    pub(super) failing: bool,
    /// Deliveries whose attempts run, or have ended and are not recorded yet: the store would give them out again.
    pub(super) in_hand: Vec<InHand>,
    /// How many of them run.
    pub(super) running: usize,
    /// The store takes something for in hand that was postponed: a death of this worker would count as its loss.
    pub(super) overstated: bool,
    /// How many it has got since it began to fail, while nothing repeated was in hand.
    pub(super) ahead_of_repeats: u16,
    /// The last round of top-ups that it was part of.
    pub(super) round: u64,
    /// An attempt has succeeded under this claim.
    pub(super) succeeded: bool,
    /// How many have failed since.
    pub(super) failures: u16,
    pub(super) outlook: Outlook,
    pub(super) phase: Phase,
}

/// What is to be had from a lane under its claim.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outlook {
    /// What it was given last filled its room: there may be more.
    Brims,
    /// There was room for more than it was given.
    Drained,
    /// An attempt could not begin: nothing more does under this claim.
    Postponed,
}

impl Outlook {
    pub(super) fn after(given: usize, room: u16) -> Self {
        if given >= usize::from(room) {
            Self::Brims
        } else {
            Self::Drained
        }
    }
}

/// What the store is being told of a lane.
#[derive(PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing.
    Held,
    /// That there is room for more.
    ToppingUp,
    /// That it goes back.
    Leaving,
}

impl Held {
    /// Whether it counts as failing from what is known by now.
    pub(super) const fn fails(&self) -> bool {
        if self.succeeded {
            self.failures >= FAILURES_IN_A_ROW
        } else {
            self.failing || self.failures > 0
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.running == 0 && self.phase == Phase::Held
    }

    pub(super) fn repeats(&self) -> usize {
        self.in_hand.iter().filter(|delivery| delivery.repeated).count()
    }

    /// Whether more may be due in it than it has got, so that it is worth asking: `all` lanes, or those alone in which there
    /// was more and that are half empty by now.
    pub(super) fn wants_more(&self, all: bool, slots: Slots) -> bool {
        let room = left(self.places(slots), self.in_hand.len());
        let brims = self.outlook == Outlook::Brims && (self.fails() || room > slots.per_lane / 2);
        let yields = self.fails() && self.ahead_of_repeats >= BEFORE_REPEATS;
        room > 0 && (all || brims) && !yields && self.outlook != Outlook::Postponed
    }

    /// How many attempts it gets at a time.
    pub(super) fn places(&self, slots: Slots) -> u16 {
        if self.fails() {
            slots.per_failing_lane.min(slots.per_lane)
        } else {
            slots.per_lane
        }
    }
}

impl Held {
    /// How much of what is left it may have.
    pub(super) fn share(&self, room: &Room, of: UnderWay, slots: Slots) -> u16 {
        let mut number = left(self.places(slots), self.in_hand.len())
            .min(room.attempts)
            .min(room.per_application.saturating_sub(of.attempts));
        if self.outlook != Outlook::Brims {
            number = number.min(FEELER);
        }
        if self.fails() {
            number = number
                .min(room.failing_attempts)
                .min(room.failing_per_application.saturating_sub(of.failing));
        }
        number
    }

    /// How many repeated attempts it may have beside those in hand: all of its places but one.
    pub(super) fn room_for_repeats(&self, slots: Slots) -> u16 {
        if self.fails() {
            0
        } else {
            left(slots.per_lane.saturating_sub(1), self.repeats())
        }
    }
}

pub(super) fn left(slots: u16, used: usize) -> u16 {
    slots.saturating_sub(u16::try_from(used).unwrap_or(u16::MAX))
}
