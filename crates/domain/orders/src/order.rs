//! What one seller sees of an order.

use chrono::{DateTime, Utc};
use kernel::{Invalid, Money, OfferId, SellerId};

use crate::{Carrier, OrderStatus, PaymentStatus, TrackingNumber, TrackingStatus};

kernel::uuid_id! {
    /// An order, shared by all sellers whose items it holds.
    OrderId
}

kernel::uuid_id! {
    /// A shipment that was reported.
    ShipmentId
}

/// The number that people use for an order: 1 to 40 of `A-Z`, `0-9` and `-`, and never a UUID, since either is
/// accepted in a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OrderNumber(String);

impl OrderNumber {
    /// Checks a number.
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

    /// Takes over a number that keeps the rule by the way it was made.
    pub fn from_trusted(number: String) -> Self {
        Self(number)
    }

    /// The number.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One seller's part of an order: its items, its status, its shipment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SellerOrder {
    /// Whose part it is.
    pub seller: SellerId,
    /// The order.
    pub id: OrderId,
    /// The number that people use.
    pub number: OrderNumber,
    /// True for an order that only tries things out: never listed, never looked up with a carrier, no mail.
    pub is_test: bool,
    /// True when the order holds another seller's items too.
    pub several_sellers: bool,
    /// How the buyer pays.
    pub payment_method: Option<String>,
    /// How the buyer wants it delivered.
    pub delivery_method: Option<String>,
    /// When the buyer placed it.
    pub placed_at: DateTime<Utc>,
    /// Who bought it; gone after erasure.
    pub buyer: Option<Buyer>,
    /// Where it goes; gone after erasure.
    pub shipping_address: Option<ShippingAddress>,
    /// This seller's items, at least one.
    pub items: Vec<OrderItem>,
    /// Where the part stands, with what belongs to that.
    pub state: OrderState,
    /// When a field that the API returns last changed.
    pub updated_at: DateTime<Utc>,
}

/// The buyer's personal data.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Buyer {
    /// Name.
    pub name: Option<String>,
    /// E-mail address.
    pub email: Option<String>,
    /// Telephone number.
    pub phone: Option<String>,
}

/// Where an order goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShippingAddress {
    /// First line.
    pub line1: Option<String>,
    /// Second line.
    pub line2: Option<String>,
    /// Postal code.
    pub postal_code: Option<String>,
    /// City.
    pub city: Option<String>,
    /// Country.
    pub country: String,
}

/// One item of an order. Its id is its offer's id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderItem {
    /// The offer, at most once in a part.
    pub offer: OfferId,
    /// The title at the time of the order.
    pub title: Option<String>,
    /// The slug at the time of the order.
    pub handle: Option<String>,
    /// The seller's own number.
    pub sku: Option<String>,
    /// Pieces, at least 1.
    pub quantity: i32,
    /// Pieces that the offer's stock went down by when the order was placed, from 0 to `quantity`. A cancellation gives
    /// back these.
    pub taken: i32,
    /// The price of one piece.
    pub unit_price: Option<Money>,
}

/// Where a part stands. Each variant carries what is known then, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderState {
    /// Placed.
    Pending,
    /// Paid.
    Processing {
        /// When.
        paid_at: DateTime<Utc>,
    },
    /// On its way.
    Shipped {
        /// When it was paid.
        paid_at: DateTime<Utc>,
        /// When it left.
        shipped_at: DateTime<Utc>,
        /// The shipment, with what the carrier last said.
        parcel: Parcel,
    },
    /// With the buyer.
    Delivered {
        /// When it was paid.
        paid_at: DateTime<Utc>,
        /// When it left.
        shipped_at: DateTime<Utc>,
        /// When it arrived.
        delivered_at: DateTime<Utc>,
        /// None where the marketplace recorded a delivery that nobody had reported as shipped.
        parcel: Option<Parcel>,
    },
    /// Called off.
    Cancelled {
        /// When it had been paid, if it had.
        paid_at: Option<DateTime<Utc>>,
        /// When it was called off.
        cancelled_at: DateTime<Utc>,
    },
}

/// A shipment, and what the carrier last said of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parcel {
    /// The shipment's id.
    pub id: ShipmentId,
    /// Who carries it.
    pub carrier: Carrier,
    /// By which number.
    pub tracking_number: TrackingNumber,
    /// None before the carrier's first useful answer.
    pub tracking_status: Option<TrackingStatus>,
    /// True when the carrier had reported delivery before the shipment was recorded.
    pub delivered_already: bool,
    /// True when a mail to the buyer was queued with the shipment.
    pub buyer_notified: bool,
    /// When the shipment was recorded.
    pub created_at: DateTime<Utc>,
}

impl SellerOrder {
    /// The status, seen from this seller. Every item shares it, since shipping is per order.
    pub const fn status(&self) -> OrderStatus {
        match self.state {
            OrderState::Pending => OrderStatus::Pending,
            OrderState::Processing { .. } => OrderStatus::Processing,
            OrderState::Shipped { .. } => OrderStatus::Shipped,
            OrderState::Delivered { .. } => OrderStatus::Delivered,
            OrderState::Cancelled { .. } => OrderStatus::Cancelled,
        }
    }

    /// Whether it is paid.
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

    /// When it left.
    pub const fn shipped_at(&self) -> Option<DateTime<Utc>> {
        match self.state {
            OrderState::Shipped { shipped_at, .. } | OrderState::Delivered { shipped_at, .. } => {
                Some(shipped_at)
            }
            _ => None,
        }
    }

    /// When it arrived.
    pub const fn delivered_at(&self) -> Option<DateTime<Utc>> {
        match self.state {
            OrderState::Delivered { delivered_at, .. } => Some(delivered_at),
            _ => None,
        }
    }

    /// The shipment, where there is one.
    pub const fn parcel(&self) -> Option<&Parcel> {
        match &self.state {
            OrderState::Shipped { parcel, .. }
            | OrderState::Delivered {
                parcel: Some(parcel), ..
            } => Some(parcel),
            _ => None,
        }
    }

    /// True when the seller may see who bought it and where it goes: from the payment on.
    pub const fn shows_buyer(&self) -> bool {
        self.paid_at().is_some()
    }

    /// Where a mail to the buyer would go; none for test orders and after erasure.
    pub fn mail_address(&self) -> Option<&str> {
        let buyer = self.buyer.as_ref().filter(|_| !self.is_test)?;
        buyer.email.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_never_a_uuid() {
        for fine in ["A", "2026-000123", "PL-1", &"9".repeat(31)] {
            assert_eq!(OrderNumber::new(fine.to_owned()).unwrap().as_str(), fine);
        }
        let simple = "0197A5C48B1E7C3A9D2F4E5B6A7C8D9E";
        for refused in [
            "",
            "a1",
            "A_1",
            "A 1",
            simple,
            "0197A5C4-8B1E-7C3A-9D2F-4E5B6A7C8D9E",
            &"A".repeat(41),
        ] {
            assert!(OrderNumber::new(refused.to_owned()).is_err(), "{refused}");
        }
    }
}
