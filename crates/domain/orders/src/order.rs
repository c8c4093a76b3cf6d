//! An order as one seller sees it.

use chrono::{DateTime, Utc};
use kernel::{Invalid, Money, OfferId, SellerId, is_mailable};
use serde::{Deserialize, Serialize};

use crate::{Carrier, TrackingNumber, TrackingStatus};

kernel::uuid_id! {
    /// An order, shared by all sellers with items in it.
    OrderId
}

kernel::uuid_id! {
    ShipmentId
}

/// The public number of an order: 1 to 40 of `A-Z`, `0-9` and `-`, and never a UUID, since a path accepts
/// either.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OrderNumber(String);

impl OrderNumber {
    pub fn new(number: String) -> Result<Self, Invalid> {
        let allowed = number
            .bytes()
            .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'-');
        let is_uuid = uuid::Uuid::try_parse(&number).is_ok();
        if !(1..=40).contains(&number.len()) || !allowed || is_uuid {
            return Err(Invalid::new(
                "must be 1 to 40 of A-Z, 0-9 and '-', and not a UUID",
            ));
        }
        Ok(Self(number))
    }

    /// Accepts a number that is known to be valid.
    pub fn from_trusted(number: String) -> Self {
        Self(number)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One seller's part of an order: its items, its status, its shipment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SellerOrder {
    pub seller: SellerId,
    pub id: OrderId,
    /// The public order number.
    pub number: OrderNumber,
    /// True for a test order: never listed, never looked up with a carrier, no mail.
    pub is_test: bool,
    /// True if the order also has another seller's items.
    pub several_sellers: bool,
    pub payment_method: Option<String>,
    pub delivery_method: Option<String>,
    pub placed_at: DateTime<Utc>,
    /// None after erasure.
    pub buyer: Option<Buyer>,
    /// None after erasure.
    pub shipping_address: Option<ShippingAddress>,
    /// None after erasure.
    pub delivery_point: Option<DeliveryPoint>,
    /// None after erasure.
    pub invoice: Option<Invoice>,
    /// This seller's items, at least one.
    pub items: Vec<OrderItem>,
    pub state: OrderState,
    /// The time of the last change of a field that the API returns.
    pub updated_at: DateTime<Utc>,
}

/// The buyer's personal data.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buyer {
    pub name: Option<String>,
    pub email: Option<String>,
    pub phone: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShippingAddress {
    pub line1: Option<String>,
    pub line2: Option<String>,
    pub postal_code: Option<String>,
    pub city: Option<String>,
    pub country: String,
}

/// The parcel locker or shop where the buyer collects the order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeliveryPoint {
    /// The carrier's name for it.
    pub id: String,
    pub name: Option<String>,
    pub line1: Option<String>,
    pub line2: Option<String>,
    pub postal_code: Option<String>,
    pub city: Option<String>,
    pub country: Option<String>,
}

/// The invoice that the buyer asks for. One without data is an invoice, too.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Invoice {
    pub company: Option<String>,
    pub tax_id: Option<String>,
    pub line1: Option<String>,
    pub line2: Option<String>,
    pub postal_code: Option<String>,
    pub city: Option<String>,
    pub country: Option<String>,
}

/// One item of an order. Its id is its offer's id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderItem {
    /// The offer, at most once in a part.
    pub offer: OfferId,
    /// The title when the order was placed.
    pub title: Option<String>,
    /// The slug when the order was placed.
    pub handle: Option<String>,
    /// The seller's own article number.
    pub sku: Option<String>,
    /// Pieces, at least 1.
    pub quantity: i32,
    /// Pieces taken from the offer's stock when the order was placed, from 0 to `quantity`. A cancellation
    /// returns these.
    pub taken: i32,
    /// The price per piece.
    pub unit_price: Option<Money>,
}

/// The state of a part. Each variant carries exactly the facts known in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderState {
    Pending,
    Processing {
        paid_at: DateTime<Utc>,
    },
    Shipped {
        paid_at: DateTime<Utc>,
        shipped_at: DateTime<Utc>,
        /// The shipment, with the carrier's last report.
        shipment: Shipment,
    },
    Delivered {
        paid_at: DateTime<Utc>,
        shipped_at: DateTime<Utc>,
        delivered_at: DateTime<Utc>,
        /// None if the marketplace recorded the delivery of a part without a reported shipment.
        shipment: Option<Shipment>,
    },
    Cancelled {
        /// The time of payment, if it was paid.
        paid_at: Option<DateTime<Utc>>,
        cancelled_at: DateTime<Utc>,
    },
}

/// How often a seller may correct a shipment.
pub const CORRECTIONS: u8 = 3;

/// A shipment with the carrier's last report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shipment {
    pub id: ShipmentId,
    pub carrier: Carrier,
    pub tracking_number: TrackingNumber,
    /// None before the carrier's first usable response.
    pub tracking_status: Option<TrackingStatus>,
    /// True if the carrier had reported delivery before the shipment was recorded.
    pub delivered_already: bool,
    /// True if a mail to the buyer was queued with the shipment.
    pub buyer_notified: bool,
    /// How often the seller may still correct it: at most [`CORRECTIONS`], 0 if the marketplace made it.
    pub corrections_left: u8,
    /// When the shipment was recorded.
    pub created_at: DateTime<Utc>,
}

impl SellerOrder {
    /// The status for this seller. All items share it, since an order is shipped as a whole.
    pub const fn status(&self) -> OrderStatus {
        match self.state {
            OrderState::Pending => OrderStatus::Pending,
            OrderState::Processing { .. } => OrderStatus::Processing,
            OrderState::Shipped { .. } => OrderStatus::Shipped,
            OrderState::Delivered { .. } => OrderStatus::Delivered,
            OrderState::Cancelled { .. } => OrderStatus::Cancelled,
        }
    }

    pub const fn payment_status(&self) -> PaymentStatus {
        match self.state {
            OrderState::Pending => PaymentStatus::AwaitingPayment,
            OrderState::Cancelled { paid_at: None, .. } => PaymentStatus::Cancelled,
            _ => PaymentStatus::Paid,
        }
    }

    /// When the payment was booked.
    pub const fn paid_at(&self) -> Option<DateTime<Utc>> {
        match self.state {
            OrderState::Pending => None,
            OrderState::Cancelled { paid_at, .. } => paid_at,
            OrderState::Processing { paid_at }
            | OrderState::Shipped { paid_at, .. }
            | OrderState::Delivered { paid_at, .. } => Some(paid_at),
        }
    }

    pub const fn shipped_at(&self) -> Option<DateTime<Utc>> {
        match self.state {
            OrderState::Shipped { shipped_at, .. } | OrderState::Delivered { shipped_at, .. } => {
                Some(shipped_at)
            }
            _ => None,
        }
    }

    pub const fn delivered_at(&self) -> Option<DateTime<Utc>> {
        match self.state {
            OrderState::Delivered { delivered_at, .. } => Some(delivered_at),
            _ => None,
        }
    }

    /// The shipment, if there is one.
    pub const fn shipment(&self) -> Option<&Shipment> {
        match &self.state {
            OrderState::Shipped { shipment, .. }
            | OrderState::Delivered {
                shipment: Some(shipment),
                ..
            } => Some(shipment),
            _ => None,
        }
    }

    /// True if the seller may see the buyer's data: from the payment on.
    pub const fn shows_buyer(&self) -> bool {
        self.paid_at().is_some()
    }

    /// True if an erasure would remove something.
    pub const fn holds_buyer(&self) -> bool {
        self.buyer.is_some()
            || self.shipping_address.is_some()
            || self.delivery_point.is_some()
            || self.invoice.is_some()
    }

    /// The buyer's mail address; None for test orders, after erasure, and if no mail can be sent there.
    pub fn mail_address(&self) -> Option<&str> {
        let buyer = self.buyer.as_ref().filter(|_| !self.is_test)?;
        buyer.email.as_deref().filter(|address| is_mailable(address))
    }
}

kernel::words! {
    /// The status of an order for one seller (contract: Order status), in the order of progress.
    #[derive(PartialOrd, Ord)]
    pub enum OrderStatus {
        /// Placed, not paid.
        Pending = "pending",
        /// Paid.
        Processing = "processing",
        /// In transit.
        Shipped = "shipped",
        Delivered = "delivered",
        Cancelled = "cancelled",
    }
}

impl OrderStatus {
    /// The status of a whole order from its parts: cancelled if all are, else the least advanced of the parts
    /// that are not. None without parts.
    pub fn aggregate(parts: impl IntoIterator<Item = Self>) -> Option<Self> {
        // `Cancelled` sorts last, so it is the minimum only if all parts are cancelled.
        parts.into_iter().min()
    }
}

kernel::words! {
    /// Whether an order is paid (contract: `payment_status`).
    pub enum PaymentStatus {
        /// Not yet.
        AwaitingPayment = "awaiting_payment",
        /// The payment is booked; unchanged by a later cancellation.
        Paid = "paid",
        /// Cancelled before it was paid.
        Cancelled = "cancelled",
    }
}

#[cfg(test)]
mod tests {
    use super::OrderStatus::{Cancelled, Delivered, Processing};
    use super::*;

    #[test]
    fn a_number_is_never_a_uuid() {
        for fine in ["A", "2026-000123", "PL-1", &"9".repeat(31)] {
            assert_eq!(OrderNumber::new(fine.to_owned()).unwrap().as_str(), fine);
        }
        let uuid = "0197A5C4-8B1E-7C3A-9D2F-4E5B6A7C8D9E";
        for refused in [
            "",
            "a1",
            "A_1",
            "A 1",
            uuid,
            &uuid.replace('-', ""),
            &"A".repeat(41),
        ] {
            assert!(OrderNumber::new(refused.to_owned()).is_err(), "{refused}");
        }
    }

    #[test]
    fn the_aggregate_is_the_least_advanced_part_that_is_not_cancelled() {
        let aggregate = |parts: &[OrderStatus]| OrderStatus::aggregate(parts.iter().copied());
        assert_eq!(aggregate(&[]), None);
        assert_eq!(aggregate(&[Cancelled, Cancelled]), Some(Cancelled));
        assert_eq!(aggregate(&[Cancelled, Delivered]), Some(Delivered));
        assert_eq!(aggregate(&[Delivered, Processing, Cancelled]), Some(Processing));
    }
}
