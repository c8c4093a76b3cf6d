//! Clients of seven carriers' tracking services, and the sandbox's simulated carriers.
//!
//! Each carrier is one file below `apis`. All share the client around it (`client`): the deadline, one retry,
//! tokens, a limit of concurrent look-ups, and a circuit breaker, so that a failing carrier does not cost
//! every seller's request its deadline. Carriers do not affect each other.

mod apis;
mod breaker;
mod carriers;
mod client;
mod http;
mod oauth;
mod parse;
mod settings;
mod simulated;
mod status;
mod tokens;

pub use carriers::{Carriers, SetupError};
pub use settings::{Account, CarrierSettings, DEADLINE};
pub use simulated::SimulatedCarriers;
