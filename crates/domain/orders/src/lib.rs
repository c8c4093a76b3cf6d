//! Orders as one seller sees them: their state machine, shipments, carriers, tracking, and the ports that
//! store them.
//!
//! A shipment is the record of how a seller's part was sent. A parcel is what a carrier moves and reports
//! about.

mod carrier;
mod command;
mod machine;
mod order;
mod ports;
mod tracking;

pub use carrier::{Carrier, Lookup, TrackingNumber, TrackingReport, TrackingStatus};
pub use command::{
    Cause, Command, Correction, NewShipment, OrderEvent, OrderEventKind, Reason, Refusal, ShipmentLocked,
};
pub use order::{
    Buyer, CORRECTIONS, OrderId, OrderItem, OrderNumber, OrderState, OrderStatus, PaymentStatus, SellerOrder,
    Shipment, ShipmentId, ShippingAddress,
};
pub use ports::{
    BuyerSearch, CarrierLookup, GivenUpMail, OrderDirectory, OrderFilter, OrderReader, OrderRef, OrderStore,
    ShipmentMail,
};
pub use tracking::{DueParcel, PollSchedule, TrackedParcel, TrackingQueue};

#[cfg(any(test, feature = "mocks"))]
pub use ports::{MockCarrierLookup, MockOrderDirectory, MockOrderReader};
#[cfg(any(test, feature = "mocks"))]
pub use tracking::MockTrackingQueue;
