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

pub use carrier::*;
pub use command::*;
pub use order::*;
pub use ports::*;
pub use tracking::*;
