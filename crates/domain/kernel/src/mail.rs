//! Queued mails: the retry schedule, and the ports of queue and sender. Each domain defines the content of
//! its mails.

use async_trait::async_trait;
use chrono::TimeDelta;
use email_address::{EmailAddress, Options};
use uuid::Uuid;

use crate::StoreError;

crate::uuid_id! {
    /// The id of a queued mail. Its `Message-ID` is derived from it, so that repeated sendings are
    /// recognisable.
    MailId
}

pub trait Mail: Send + Sync + 'static {
    /// Its id, assigned when it is queued.
    fn id(&self) -> MailId;
}

/// Whether mails can be sent to this address, by the grammar that mail adapters begin with. None can be sent to one
/// at an IP address.
pub fn is_mailable(address: &str) -> bool {
    let options = Options::default().without_display_text().without_domain_literal();
    EmailAddress::parse_with_options(address, options).is_ok()
}

/// The delay after an attempt that says nothing about the mail.
const SOON: TimeDelta = TimeDelta::minutes(1);
/// The delay after each failed attempt; after the last one the mail is given up.
const RETRY_DELAYS: [TimeDelta; 7] = [
    SOON,
    TimeDelta::minutes(5),
    TimeDelta::minutes(30),
    TimeDelta::hours(2),
    TimeDelta::hours(6),
    TimeDelta::hours(12),
    TimeDelta::hours(24),
];

/// The next step of a mail after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailStep {
    /// The server accepted it.
    Sent,
    /// It is retried after this time.
    Retry(TimeDelta),
    /// It is given up, and kept for inspection.
    Dead,
}

impl MailStep {
    /// The step after attempt number `attempt`, from 1. A permanent refusal is not retried.
    pub fn after(attempt: u32, outcome: &Result<(), SendError>) -> Self {
        let delay = usize::try_from(attempt)
            .ok()
            .and_then(|attempt| RETRY_DELAYS.get(attempt.checked_sub(1)?));
        match (outcome, delay) {
            (Ok(()), _) => Self::Sent,
            (Err(SendError::Interrupted), _) => Self::Retry(SOON),
            (Err(SendError::Transient(_)), Some(delay)) => Self::Retry(*delay),
            (Err(_), _) => Self::Dead,
        }
    }
}

/// Why a mail was not sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The server is unreachable, busy, or asks to retry later.
    #[error("the mail could not be sent; retry later")]
    Transient(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The server refuses the mail permanently, or the address is invalid.
    #[error("the mail was rejected permanently")]
    Permanent(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The process stops before the server has answered.
    #[error("shutting down before the server answered")]
    Interrupted,
}

/// A mail that a worker has leased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueMail<M> {
    pub mail: M,
    /// Which attempt it is leased for, from 1.
    pub attempt: u32,
    /// The lease's fencing token.
    pub fence: Uuid,
}

/// The queue of one kind of mail, as workers use it. Each call is a transaction of its own.
///
/// An adapter MUST lease a mail to one worker at a time, and MUST let another one take it over once the lease
/// has expired. A mail that has become useless, because its link has expired or was used or replaced, MUST
/// NOT be leased, and is given up.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait MailQueue<M: Mail>: Send + Sync {
    /// Leases for `lease` the due mail that has waited longest; its attempt begins within it.
    async fn lease_mail(&self, fence: Uuid, lease: TimeDelta) -> Result<Option<DueMail<M>>, StoreError>;

    /// Counts the attempt, and lets the lease last for `lease` from now; false if the lease was lost. Repeating it
    /// counts nothing more.
    async fn begin_attempt(&self, due: &DueMail<M>, lease: TimeDelta) -> Result<bool, StoreError>;

    /// Records the step of a leased mail; does nothing if the lease was lost. A retry's delay starts at this
    /// call, by the queue's own clock, so the workers' clocks need not agree.
    async fn record_step(&self, mail: MailId, fence: Uuid, next: MailStep) -> Result<(), StoreError>;
}

/// Sends mails of one kind.
///
/// An adapter MUST give all sendings of one mail the same `Message-ID`, and MUST return within a bounded
/// time.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait Mailer<M: Mail>: Send + Sync {
    async fn send(&self, mail: &M) -> Result<(), SendError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_end() {
        let busy = || Err(SendError::Transient("busy".into()));
        for (attempt, outcome, step) in [
            (1, Ok(()), MailStep::Sent),
            (1, busy(), MailStep::Retry(TimeDelta::minutes(1))),
            (7, busy(), MailStep::Retry(TimeDelta::hours(24))),
            (8, busy(), MailStep::Dead),
            (
                8,
                Err(SendError::Interrupted),
                MailStep::Retry(TimeDelta::minutes(1)),
            ),
            (1, Err(SendError::Permanent("no box".into())), MailStep::Dead),
        ] {
            assert_eq!(MailStep::after(attempt, &outcome), step, "{attempt}");
        }
    }
}
