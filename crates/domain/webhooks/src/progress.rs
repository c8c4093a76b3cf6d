//! The next state of a delivery after an attempt or a loss. The store keeps it if the delivery is still as it was when this was
//! decided.

use chrono::TimeDelta;

use crate::{Outcome, RetrySchedule};

/// How often a delivery may be lost with its worker before a loss counts as a failed attempt.
pub const LOSSES_FORGIVEN: u8 = 2;

/// What workers know of a delivery. [`crate::DeliveryState`] is what is shown of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Number of ended attempts, 0 to 6.
    pub attempt: u8,
    /// How often it was lost with its worker without counting as an attempt: the worker has died, or cannot
    /// record.
    pub lost: u8,
}

/// What follows an attempt, unless the subscription has ended meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The next attempt is due this long after the end of this one.
    Waiting(TimeDelta),
    Delivered,
    /// All attempts have failed.
    Exhausted,
}

impl Progress {
    /// True if it was lost once too often: the loss counts as a failed attempt, and nothing is sent now. So a
    /// body that crashes its worker also runs out of attempts.
    pub const fn has_failed_by_loss(self) -> bool {
        self.lost > LOSSES_FORGIVEN
    }

    /// After a loss with its worker.
    #[must_use]
    pub const fn lose(self) -> Self {
        Self {
            lost: self.lost.saturating_add(1),
            ..self
        }
    }

    /// The progress after an attempt, and the phase that follows. For `jitter` see [`RetrySchedule::delay`].
    #[must_use]
    pub fn end(self, outcome: &Outcome, schedule: &RetrySchedule, jitter: u32) -> (Self, Phase) {
        let next = Self {
            attempt: self.attempt.saturating_add(1),
            // After a loss that counted, a further one counts too.
            lost: self.lost.min(LOSSES_FORGIVEN),
        };
        let phase = if outcome.is_success() {
            Phase::Delivered
        } else {
            let delay = schedule.delay(next.attempt, jitter);
            delay.map_or(Phase::Exhausted, Phase::Waiting)
        };
        (next, phase)
    }
}

#[cfg(test)]
mod tests;
