//! Orders as one seller sees them: their machine, shipments, carriers, tracking, and the ports that keep them.

mod carrier;
mod machine;
mod order;
mod ports;
mod status;

pub use carrier::{Carrier, Delivery, Lookup, Sighting, TrackingNumber, TrackingStatus};
pub use machine::{Command, NewShipment, OrderEvent, OrderEventKind, Reason, Refusal, Shipper};
pub use order::{
    Buyer, OrderId, OrderItem, OrderNumber, OrderState, Parcel, SellerOrder, ShipmentId, ShippingAddress,
};
pub use ports::{CarrierLookup, OrderFilter, OrderReader, OrderRef, OrderStore};
pub use status::{OrderStatus, PaymentStatus};

#[cfg(any(test, feature = "mocks"))]
pub use ports::{MockCarrierLookup, MockOrderReader, MockOrderStore};
