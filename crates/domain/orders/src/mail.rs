//! Mails to buyers: what is told, how sending is repeated, and the ports of queue and sender.

use async_trait::async_trait;
use chrono::TimeDelta;
use kernel::StoreError;
use uuid::Uuid;

use crate::{Carrier, OrderId, OrderNumber, TrackingNumber};

kernel::uuid_id! {
    /// A queued mail.
    MailId
}

/// A mail to a buyer: a parcel is on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShipmentMail {
    /// The mail's id; its `Message-ID` is made of it, so that a repeated sending is recognisable.
    pub id: MailId,
    /// The order, so that an erasure finds the mail.
    pub order: OrderId,
    /// The number that the buyer knows.
    pub number: OrderNumber,
    /// The buyer's address.
    pub to: String,
    /// The buyer's name.
    pub name: Option<String>,
    /// Who carries it.
    pub carrier: Carrier,
    /// By which number.
    pub tracking_number: TrackingNumber,
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
pub enum MailFate {
    /// The server took it.
    Sent,
    /// It is tried again after this time.
    Retry(TimeDelta),
    /// It is given up, and stays for somebody to look at.
    Dead,
}

impl MailFate {
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

/// Queues mails, in the transaction of what they tell about.
///
/// An adapter MUST make the mail durable with that transaction; it is sent later, at least once.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait BuyerNotifier: Send + Sync {
    /// Queues one mail.
    async fn queue_mail(&self, mail: ShipmentMail) -> Result<(), StoreError>;

    /// Erases the mails about an order, sent or not.
    async fn forget_mails(&self, order: OrderId) -> Result<(), StoreError>;
}

/// A mail that a worker has leased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueMail {
    /// The mail.
    pub mail: ShipmentMail,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// Who holds the lease.
    pub fence: Uuid,
}

/// The queue, from the side of the workers. Each call is a transaction of its own.
///
/// An adapter MUST lease a mail to one worker at a time, and MUST let another one take it over once the lease has run out.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait MailQueue: Send + Sync {
    /// Leases up to `limit` mails that are due, for `lease`.
    async fn lease_mails(
        &self,
        fence: Uuid,
        limit: u16,
        lease: TimeDelta,
    ) -> Result<Vec<DueMail>, StoreError>;

    /// Notes what became of a leased mail; changes nothing when the lease was lost. A retry's time begins with this call, by
    /// the queue's own clock: the workers' clocks need not agree.
    async fn settle_mail(&self, mail: MailId, fence: Uuid, fate: MailFate) -> Result<(), StoreError>;
}

/// Hands mails over.
///
/// An adapter MUST give every sending of one mail the same `Message-ID`, and MUST answer within a bounded time.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait Mailer: Send + Sync {
    /// Sends one mail.
    async fn send(&self, mail: &ShipmentMail) -> Result<(), SendError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_end() {
        let busy = || Err(SendError::Transient("busy".into()));
        assert_eq!(MailFate::after(1, &Ok(())), MailFate::Sent);
        assert_eq!(
            MailFate::after(1, &busy()),
            MailFate::Retry(TimeDelta::minutes(1))
        );
        assert_eq!(MailFate::after(7, &busy()), MailFate::Retry(TimeDelta::hours(24)));
        assert_eq!(MailFate::after(8, &busy()), MailFate::Dead);
        let refused = Err(SendError::Permanent("no such box".into()));
        assert_eq!(MailFate::after(1, &refused), MailFate::Dead);
    }
}
