//! Webhooks: events, subscriptions, deliveries and their attempts, the address rules, and the ports that
//! store and send deliveries.

mod address_rules;
mod attempt;
mod capacity;
mod delivery;
mod event;
mod journal;
mod ports;
mod progress;
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
pub use ports::*;
pub use progress::*;
pub use queue::*;
pub use secret::*;
pub use subscription::*;
pub use url::*;
