//! Mails to buyers.

use kernel::{Mail, MailId};

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
