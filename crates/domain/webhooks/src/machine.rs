//! The states of a delivery, and its transitions. Each is total and returns the next state; one that the
//! state does not allow changes nothing.
//!
//! A worker decides with them what an attempt leads to, and the store keeps it if the delivery still is in the
//! state that it was decided on. Where many deliveries change at once, because their lease has expired or
//! their subscription has ended, the store's statements do what `lose` and `stop` say; its tests compare.

use chrono::TimeDelta;

use crate::{Outcome, RetrySchedule};

/// How often a delivery may be lost with its worker before a loss counts as a failed attempt.
pub const LOSSES_FORGIVEN: u8 = 2;

/// What workers know of a delivery. [`crate::DeliveryState`] is what is shown of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Number of ended attempts, 0 to 6.
    pub attempt: u8,
    /// How often it was lost with its worker without counting as an attempt.
    pub lost: u8,
    pub phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Due this long after it came into this state.
    Waiting(TimeDelta),
    /// In a worker's hands.
    Leased,
    Delivered,
    /// All attempts have failed.
    Exhausted,
    /// Its subscription ended before its attempts were used up.
    Stopped,
}

impl Progress {
    /// A new delivery, due now.
    pub const QUEUED: Self = Self {
        attempt: 0,
        lost: 0,
        phase: Phase::Waiting(TimeDelta::zero()),
    };

    /// A worker takes it.
    #[must_use]
    pub const fn lease(self) -> Self {
        match self.phase {
            Phase::Waiting(_) => self.to(Phase::Leased),
            _ => self,
        }
    }

    /// Its attempt cannot begin now.
    #[must_use]
    pub const fn postpone(self) -> Self {
        match self.phase {
            Phase::Leased => self.to(Phase::Waiting(TimeDelta::zero())),
            _ => self,
        }
    }

    /// Its lease has expired: the worker has died, or cannot record.
    #[must_use]
    pub const fn lose(self) -> Self {
        match self.phase {
            Phase::Leased => Self {
                lost: self.lost.saturating_add(1),
                ..self.postpone()
            },
            _ => self,
        }
    }

    /// True if it was lost once too often: the loss counts as a failed attempt, and nothing is sent now. So a
    /// body that crashes its worker also runs out of attempts.
    pub const fn has_failed_by_loss(self) -> bool {
        self.lost > LOSSES_FORGIVEN
    }

    /// Its attempt has ended. For `jitter` see [`RetrySchedule::delay`].
    #[must_use]
    pub fn end(self, outcome: &Outcome, schedule: &RetrySchedule, jitter: f64) -> Self {
        if self.phase != Phase::Leased {
            return self;
        }
        let attempt = self.attempt.saturating_add(1);
        let phase = if outcome.is_success() {
            Phase::Delivered
        } else {
            let delay = schedule.delay(attempt, jitter);
            delay.map_or(Phase::Exhausted, Phase::Waiting)
        };
        Self {
            attempt,
            // After a loss that counted, a further one counts too.
            lost: self.lost.min(LOSSES_FORGIVEN),
            phase,
        }
    }

    /// Its subscription ends. If this happens while a worker has it, the attempt under way is its last one.
    #[must_use]
    pub const fn stop(self) -> Self {
        match self.phase {
            Phase::Waiting(_) | Phase::Leased => self.to(Phase::Stopped),
            _ => self,
        }
    }

    const fn to(self, phase: Phase) -> Self {
        Self { phase, ..self }
    }
}

#[cfg(test)]
mod tests;
