//! Orders as one seller sees them: their state machine, shipments, carriers, tracking, and the ports that store them.

mod carrier;
mod command;
mod machine;
mod order;
mod ports;
mod status;
mod tracking;

pub use carrier::{Carrier, Lookup, TrackingNumber, TrackingReport, TrackingStatus};
pub use command::{Cause, Command, NewShipment, OrderEvent, OrderEventKind, Reason, Refusal};
pub use order::{
    Buyer, OrderId, OrderItem, OrderNumber, OrderState, Parcel, SellerOrder, ShipmentId, ShippingAddress,
};
pub use ports::{
    BuyerSearch, CarrierLookup, GivenUpMail, OrderDirectory, OrderFilter, OrderReader, OrderRef, OrderStore,
    ShipmentMail,
};
pub use status::{OrderStatus, PaymentStatus};
pub use tracking::{DueParcel, PollSchedule, TrackedParcel, TrackingQueue};

#[cfg(any(test, feature = "mocks"))]
pub use ports::{MockCarrierLookup, MockOrderDirectory, MockOrderReader};
#[cfg(any(test, feature = "mocks"))]
pub use tracking::MockTrackingQueue;
