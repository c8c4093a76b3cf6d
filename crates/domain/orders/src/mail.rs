//! Mails to buyers: what is told, and how it is queued.

use async_trait::async_trait;
use kernel::{Mail, MailId, StoreError};

use crate::{Carrier, OrderId, OrderNumber, TrackingNumber};

/// A mail to a buyer: a parcel is on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShipmentMail {
    /// The mail's id.
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

impl Mail for ShipmentMail {
    fn id(&self) -> MailId {
        self.id
    }
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
