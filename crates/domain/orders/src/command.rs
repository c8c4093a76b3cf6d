//! What may be asked of an order, what it announces, and how it refuses.

use crate::{Carrier, OrderId, OrderNumber, OrderStatus, ShipmentId, Sighting, TrackingNumber};

/// What happened to an order, for those who subscribed to it (contract: Events).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderEvent {
    /// What happened.
    pub kind: OrderEventKind,
    /// The order.
    pub order: OrderId,
    /// Its number.
    pub number: OrderNumber,
    /// Who caused it: the marketplace is not told again of what it asked for itself.
    pub cause: Cause,
}

/// Who causes a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The seller, by the API.
    Seller,
    /// The marketplace, by the back office.
    Marketplace,
    /// A carrier's report, found by tracking.
    Carrier,
}

/// The kinds of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OrderEventKind {
    /// `order.created`.
    Created,
    /// `order.paid`.
    Paid,
    /// `order.shipped`.
    Shipped,
    /// `order.delivered`.
    Delivered,
    /// `order.cancelled`.
    Cancelled,
}

/// A command that the present state does not allow, with the contract's name for the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the order is {}: it cannot be {}", .status.as_str(), .command.participle())]
pub struct Refusal {
    /// Where the part stands.
    pub status: OrderStatus,
    /// What was asked for.
    pub command: Command,
    /// Why not.
    pub reason: Reason,
}

/// What may be asked of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Book the payment.
    Pay,
    /// Call it off.
    Cancel,
    /// Record a shipment.
    Ship,
    /// Record a delivery.
    Deliver,
}

impl Command {
    const fn participle(self) -> &'static str {
        match self {
            Self::Pay => "paid",
            Self::Cancel => "cancelled",
            Self::Ship => "shipped",
            Self::Deliver => "delivered",
        }
    }
}

/// The contract's reasons, in the order in which they are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// `order_cancelled`.
    Cancelled,
    /// `order_unpaid`.
    Unpaid,
    /// `already_shipped`.
    AlreadyShipped,
    /// `multi_seller_order`.
    SeveralSellers,
}

/// What is reported when a parcel leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewShipment {
    /// The shipment's id.
    pub id: ShipmentId,
    /// Who carries it.
    pub carrier: Carrier,
    /// By which number.
    pub tracking_number: TrackingNumber,
    /// What the carrier said when it was asked, just before.
    pub sighting: Option<Sighting>,
}
