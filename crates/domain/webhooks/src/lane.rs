//! Lanes: the deliveries of one subscription, as a worker holds and works through them.

use std::sync::Arc;

use chrono::TimeDelta;
use kernel::SellerId;
use oauth::ClientId;
use uuid::Uuid;

use crate::{DeliveryId, Fate, Outcome, SubscriptionId, WebhookEvent, WebhookSecret, WebhookUrl};

/// How often a delivery may be lost with its worker without a loss counting as a failed attempt.
pub const LOSSES_FORGIVEN: u8 = 2;

/// Which lane: each subscription is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaneKey {
    /// Whose subscription.
    pub seller: SellerId,
    /// The subscription.
    pub subscription: SubscriptionId,
}

/// A lane in the hands of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hold {
    /// Which lane.
    pub lane: LaneKey,
    /// What the lane was claimed under: a claim's own random id. Whoever took the lane over has another one, and what is
    /// done under this one then changes nothing.
    pub fence: Uuid,
}

/// How much a worker can start now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// Attempts in all; at least 1.
    pub attempts: u16,
    /// Of them at most so many for lanes that fail; may be 0.
    pub failing_attempts: u16,
    /// Attempts of one lane.
    pub per_lane: u16,
    /// Attempts of one lane that fails.
    pub per_failing_lane: u16,
    /// Attempts of all lanes of one application, those that are under way included; at least 1.
    pub per_application: u16,
    /// Of them at most so many in lanes that fail, those that are under way included; at least 1.
    pub failing_per_application: u16,
    /// What is under way, each application once.
    pub under_way: Vec<UnderWay>,
}

/// How much of an application is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnderWay {
    /// Which application.
    pub client_id: ClientId,
    /// Attempts in all of its lanes.
    pub attempts: u16,
    /// Those of them in lanes that fail.
    pub failing: u16,
}

/// What a claim has come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// Lanes, each with what is due in it.
    pub lanes: Vec<Lane>,
    /// How many lanes were due and may not be worked on, and are due no more. Others may have waited behind them.
    pub set_aside: usize,
    /// Not all lanes that are due were looked at, or there was no room for one of them: another claim may find more. Where it is
    /// false, only what becomes due or free later is to be had.
    pub more: bool,
}

/// A lane with what is to be done in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// The claim on it.
    pub hold: Hold,
    /// Whose subscription it is.
    pub client_id: ClientId,
    /// Where its deliveries go.
    pub url: WebhookUrl,
    /// What they are signed with.
    pub secret: WebhookSecret,
    /// True when its last attempts failed.
    pub failing: bool,
    /// What is due.
    pub deliveries: Vec<Due>,
}

/// A delivery that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// Which delivery.
    pub id: DeliveryId,
    /// What happened.
    pub event: WebhookEvent,
    /// Its bytes, the same on every attempt.
    pub body: Arc<[u8]>,
    /// How many attempts of it have ended, 0 to 5.
    pub attempt: u8,
    /// How often it has been lost together with its worker without that having counted as an attempt yet.
    pub lost: u8,
}

impl Due {
    /// True when it was lost once too often: the loss is a failed attempt, and nothing is sent now. A body that kills its
    /// worker thus comes to an end like any other.
    pub const fn has_failed_by_loss(&self) -> bool {
        self.lost > LOSSES_FORGIVEN
    }
}

/// The end of an attempt, as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conclusion {
    /// The lane, under the claim that gave the delivery out.
    pub hold: Hold,
    /// Which delivery.
    pub delivery: DeliveryId,
    /// How many attempts had ended when it was given out: the one that ended now has the next number.
    pub attempt: u8,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took, in whole milliseconds, not below 0.
    pub duration_ms: i32,
    /// What becomes of the delivery. Delays count from the database's present.
    pub fate: Fate,
}

/// A lane that its worker gives back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Release {
    /// The claim that ends.
    pub hold: Hold,
    /// Whether the lane fails from now on; nothing where nothing new is known.
    pub failing: Option<bool>,
    /// How long the lane rests before it is due again, whatever waits in it; zero for not at all.
    pub rest: TimeDelta,
}

/// A lane that is held, in which there is room again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopUp {
    /// The claim on it.
    pub hold: Hold,
    /// Its deliveries that are still in the worker's hands.
    pub running: Vec<DeliveryId>,
    /// How many more can start now; 0 where the store is only to hear what is running.
    pub room: u16,
    /// How many of those may be repeated attempts.
    pub repeats: u16,
}

/// What else is due in a lane that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToppedUp {
    /// The claim, which holds from now on as long as a new one would.
    pub hold: Hold,
    /// What is due, as many as there was room for.
    pub deliveries: Vec<Due>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_is_forgiven_two_losses_and_fails_by_the_third() {
        let lost = |lost| Due {
            id: Uuid::nil().into(),
            event: WebhookEvent::OrderPaid,
            body: Arc::from(*b"{}"),
            attempt: 0,
            lost,
        };
        let failed = [0, 1, 2, 3, u8::MAX].map(|times| lost(times).has_failed_by_loss());
        assert_eq!(failed, [false, false, false, true, true]);
    }
}
