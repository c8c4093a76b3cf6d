//! Webhooks: events, subscriptions, deliveries and their state machine, the address rules, and the ports that
//! store and send deliveries.

mod address_rules;
mod attempt;
mod capacity;
mod delivery;
mod event;
mod journal;
mod machine;
mod ports;
mod queue;
mod secret;
mod subscription;
mod url;

pub use address_rules::*;
pub use attempt::*;
pub use capacity::*;
pub use delivery::*;
pub use event::*;
pub use journal::*;
pub use machine::*;
pub use ports::*;
pub use queue::*;
pub use secret::*;
pub use subscription::*;
pub use url::*;
