//! A delivery as its readers see it, and the schedule of its retries (contract: States, Webhook delivery,
//! Retries).

use chrono::{DateTime, TimeDelta, Utc};
use kernel::Invalid;

use crate::{About, AttemptFailure, Attempted, DeliveryId, Outcome, WebhookEvent};

/// Maximum number of attempts of a delivery (contract: Limits).
pub const MAX_ATTEMPTS: u8 = 6;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Its id, the same on every attempt.
    pub id: DeliveryId,
    pub event: WebhookEvent,
    pub created_at: DateTime<Utc>,
    /// As it is sent at every attempt.
    pub body: Vec<u8>,
    pub state: DeliveryState,
    /// The latest attempt was lost with its worker, and does not count.
    pub is_lost: bool,
}

impl Delivery {
    /// A new delivery, due when it is created.
    pub const fn queued(
        id: DeliveryId,
        event: WebhookEvent,
        body: Vec<u8>,
        created_at: DateTime<Utc>,
    ) -> Self {
        Self {
            id,
            event,
            created_at,
            body,
            state: DeliveryState::Queued,
            is_lost: false,
        }
    }

    /// The same to be delivered again: one that waits is due now and keeps its attempts, any other begins
    /// anew.
    #[must_use]
    pub fn again(self, now: DateTime<Utc>) -> Self {
        let state = match self.state {
            ended if ended.has_ended() => {
                return Self::queued(self.id, self.event, self.body, self.created_at);
            }
            DeliveryState::Waiting {
                attempt,
                last,
                due_at,
            } => DeliveryState::Waiting {
                attempt,
                last,
                due_at: due_at.min(now),
            },
            queued => queued,
        };
        Self { state, ..self }
    }

    /// The last attempt; None if there was none, or the latest one was lost.
    pub fn last(&self) -> Option<&Attempted> {
        self.state.last().filter(|_| !self.is_lost)
    }

    /// How the last attempt ended, if there was one.
    pub fn outcome(&self) -> Option<&Outcome> {
        static LOST: Outcome = Outcome::Failed(AttemptFailure::WorkerLost);
        let ended = || self.state.last().map(|last| &last.outcome);
        if self.is_lost { Some(&LOST) } else { ended() }
    }

    pub fn about(&self) -> About {
        About::of(&self.body)
    }
}

/// The state of a delivery. `attempt` counts the attempts that have ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryState {
    /// No attempt has ended yet.
    Queued,
    /// The last attempt failed; the next one is due.
    Waiting {
        /// 1 to 5.
        attempt: u8,
        last: Attempted,
        /// When the next one is due.
        due_at: DateTime<Utc>,
    },
    /// The receiver accepted it.
    Delivered {
        /// 1 to 6.
        attempt: u8,
        last: Attempted,
        /// When that attempt ended.
        at: DateTime<Utc>,
    },
    /// The sixth attempt failed.
    Exhausted {
        /// The sixth attempt.
        last: Attempted,
    },
    /// Its subscription ended before its attempts were used up.
    Stopped {
        /// 0 to 5.
        attempt: u8,
        /// The last attempt, if there was one.
        last: Option<Attempted>,
    },
}

impl DeliveryState {
    /// The state as stored in a row: how many attempts have ended, and the last one.
    pub fn stored(
        attempt: i16,
        due_at: Option<DateTime<Utc>>,
        delivered_at: Option<DateTime<Utc>>,
        last: Option<Attempted>,
    ) -> Result<Self, Invalid> {
        let attempt = u8::try_from(attempt).unwrap_or(u8::MAX);
        match (attempt, delivered_at, due_at, last) {
            (0, None, Some(_), None) => Ok(Self::Queued),
            (1..MAX_ATTEMPTS, None, Some(due_at), Some(last)) => Ok(Self::Waiting {
                attempt,
                last,
                due_at,
            }),
            (1..=MAX_ATTEMPTS, Some(at), None, Some(last)) => Ok(Self::Delivered { attempt, last, at }),
            (MAX_ATTEMPTS, None, None, Some(last)) => Ok(Self::Exhausted { last }),
            (0, None, None, None) => Ok(Self::Stopped { attempt, last: None }),
            (1..MAX_ATTEMPTS, None, None, Some(last)) => Ok(Self::Stopped {
                attempt,
                last: Some(last),
            }),
            _ => Err(Invalid::new("is not a state of a delivery")),
        }
    }

    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Waiting { .. } => "waiting",
            Self::Delivered { .. } => "delivered",
            Self::Exhausted { .. } => "exhausted",
            Self::Stopped { .. } => "stopped",
        }
    }

    /// Whether no further attempt is made.
    pub const fn has_ended(&self) -> bool {
        !matches!(self, Self::Queued | Self::Waiting { .. })
    }

    /// How many attempts have ended.
    pub const fn attempt(&self) -> u8 {
        match self {
            Self::Queued => 0,
            Self::Waiting { attempt, .. }
            | Self::Delivered { attempt, .. }
            | Self::Stopped { attempt, .. } => *attempt,
            Self::Exhausted { .. } => MAX_ATTEMPTS,
        }
    }

    /// The last attempt, if there was one.
    pub const fn last(&self) -> Option<&Attempted> {
        match self {
            Self::Queued => None,
            Self::Waiting { last, .. } | Self::Delivered { last, .. } | Self::Exhausted { last } => {
                Some(last)
            }
            Self::Stopped { last, .. } => last.as_ref(),
        }
    }

    pub const fn delivered_at(&self) -> Option<DateTime<Utc>> {
        match self {
            Self::Delivered { at, .. } => Some(*at),
            _ => None,
        }
    }

    /// When the next attempt after a failed one is due.
    pub const fn next_retry_at(&self) -> Option<DateTime<Utc>> {
        match self {
            Self::Waiting { due_at, .. } => Some(*due_at),
            _ => None,
        }
    }
}

/// The delay after each attempt except the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetrySchedule(pub [TimeDelta; 5]);

impl Default for RetrySchedule {
    /// 1 minute, 5 minutes, 30 minutes, 2 hours, 12 hours.
    fn default() -> Self {
        Self([
            TimeDelta::minutes(1),
            TimeDelta::minutes(5),
            TimeDelta::minutes(30),
            TimeDelta::hours(2),
            TimeDelta::hours(12),
        ])
    }
}

impl RetrySchedule {
    /// How long after the end of the attempt with this number (from 1) the next one is due: the scheduled
    /// delay plus up to a tenth (D60), so that deliveries that failed together are not retried together. None
    /// after the sixth.
    ///
    /// `jitter` is a random number.
    pub fn delay(&self, after_attempt: u8, jitter: u32) -> Option<TimeDelta> {
        let place = usize::from(after_attempt.checked_sub(1)?);
        let delay = self.0.get(place)?.to_std().unwrap_or_default();
        let part = f64::from(jitter) / f64::from(u32::MAX);
        Some(TimeDelta::from_std(delay.mul_f64(1.0 + part / 10.0)).unwrap_or(TimeDelta::MAX))
    }
}

#[cfg(test)]
mod tests;
