//! Commands to an order, the events they cause, and their refusals.

use crate::{Carrier, OrderStatus, ShipmentId, TrackingNumber, TrackingReport};

/// An event of an order, for subscribers (contract: Events).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderEvent {
    pub kind: OrderEventKind,
    /// The cause: the marketplace is not notified of its own commands.
    pub cause: Cause,
}

/// Who causes a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The seller, through the API.
    Seller,
    /// The marketplace, through the back office.
    Marketplace,
    /// A carrier's report, found by tracking.
    Carrier,
}

kernel::words! {
    /// A kind of event, by its name in the change feed and for subscribers, where they have it.
    pub enum OrderEventKind {
        Created = "order.created",
        Paid = "order.paid",
        Shipped = "order.shipped",
        Delivered = "order.delivered",
        Cancelled = "order.cancelled",
        /// For the marketplace alone.
        ShipmentCorrected = "shipment.corrected",
    }
}

/// A command that the current state does not allow, with the contract's name of the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the order is {}: it cannot be {}", .status.as_str(), .command.as_str())]
pub struct CommandRefusal {
    /// The part's status.
    pub status: OrderStatus,
    pub command: Command,
    pub reason: Reason,
}

kernel::words! {
    /// A command to an order, with its participle.
    pub enum Command {
        /// Book the payment.
        Pay = "paid",
        /// Cancel the order.
        Cancel = "cancelled",
        /// Record a shipment.
        Ship = "shipped",
        /// Record a delivery.
        Deliver = "delivered",
    }
}

/// The contract's reasons, in the order in which they are checked.
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

/// Another carrier or tracking number of a shipment; None keeps what it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correction {
    pub carrier: Option<Carrier>,
    pub tracking_number: Option<TrackingNumber>,
}

/// `shipment_locked`: why a shipment cannot be corrected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ShipmentLocked {
    #[error("the order is delivered: its shipment can no longer be corrected")]
    NotInTransit,
    #[error("no correction is left: three were made, or the marketplace made the shipment")]
    NoneLeft,
}

/// A shipment to be recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewShipment {
    pub id: ShipmentId,
    pub carrier: Carrier,
    pub tracking_number: TrackingNumber,
    /// The carrier's response, if it was asked just before.
    pub tracking_report: Option<TrackingReport>,
}
