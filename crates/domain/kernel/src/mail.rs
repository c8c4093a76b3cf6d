//! Mails that are queued: how sending is repeated, and the ports of queue and sender. What a mail says is its domain's.

use async_trait::async_trait;
use chrono::TimeDelta;
use uuid::Uuid;

use crate::StoreError;

crate::uuid_id! {
    /// A queued mail. Its `Message-ID` is made of it, so that a repeated sending is recognisable.
    MailId
}

/// A mail that can be queued.
pub trait Mail: Send + Sync + 'static {
    /// Its id, fixed when it is queued.
    fn id(&self) -> MailId;
}

/// How long to wait after each failed attempt; after the last one the mail is given up.
const RETRY_DELAYS: [TimeDelta; 7] = [
    TimeDelta::minutes(1),
    TimeDelta::minutes(5),
    TimeDelta::minutes(30),
    TimeDelta::hours(2),
    TimeDelta::hours(6),
    TimeDelta::hours(12),
    TimeDelta::hours(24),
];

/// What becomes of a mail after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailStep {
    /// The server took it.
    Sent,
    /// It is tried again after this time.
    Retry(TimeDelta),
    /// It is given up, and stays for somebody to look at.
    Dead,
}

impl MailStep {
    /// What follows from the `attempt`th attempt, from 1. A refusal for good is not repeated.
    pub fn after(attempt: u32, outcome: &Result<(), SendError>) -> Self {
        let delay = usize::try_from(attempt)
            .ok()
            .and_then(|attempt| RETRY_DELAYS.get(attempt.checked_sub(1)?));
        match (outcome, delay) {
            (Ok(()), _) => Self::Sent,
            (Err(SendError::Transient(_)), Some(delay)) => Self::Retry(*delay),
            (Err(_), _) => Self::Dead,
        }
    }
}

/// Why a mail was not sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The server is away, busy, or asks to come back.
    #[error("the mail could not be handed over for now")]
    Transient(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The server, or the address itself, says that it never will be taken.
    #[error("the mail was refused for good")]
    Permanent(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A mail that a worker has leased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueMail<M> {
    /// The mail.
    pub mail: M,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// Who holds the lease.
    pub fence: Uuid,
}

/// The queue of one kind of mail, from the side of the workers. Each call is a transaction of its own.
///
/// An adapter MUST lease a mail to one worker at a time, and MUST let another one take it over once the lease has run out.
/// A mail that is worth nothing any more, because the link in it has expired or was used or replaced, MUST NOT be leased,
/// and is given up.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait MailQueue<M: Mail>: Send + Sync {
    /// Leases up to `limit` mails that are due, for `lease`.
    async fn lease_mails(
        &self,
        fence: Uuid,
        limit: u16,
        lease: TimeDelta,
    ) -> Result<Vec<DueMail<M>>, StoreError>;

    /// Notes what became of a leased mail; changes nothing when the lease was lost. A retry's time begins with this call, by
    /// the queue's own clock: the workers' clocks need not agree.
    async fn settle_mail(&self, mail: MailId, fence: Uuid, next: MailStep) -> Result<(), StoreError>;
}

/// Hands mails of one kind over.
///
/// An adapter MUST give every sending of one mail the same `Message-ID`, and MUST answer within a bounded time.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait Mailer<M: Mail>: Send + Sync {
    /// Sends one mail.
    async fn send(&self, mail: &M) -> Result<(), SendError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_end() {
        let busy = || Err(SendError::Transient("busy".into()));
        assert_eq!(MailStep::after(1, &Ok(())), MailStep::Sent);
        assert_eq!(
            MailStep::after(1, &busy()),
            MailStep::Retry(TimeDelta::minutes(1))
        );
        assert_eq!(MailStep::after(7, &busy()), MailStep::Retry(TimeDelta::hours(24)));
        assert_eq!(MailStep::after(8, &busy()), MailStep::Dead);
        let refused = Err(SendError::Permanent("no such box".into()));
        assert_eq!(MailStep::after(1, &refused), MailStep::Dead);
    }
}
