//! What carriers say of parcels: clients of seven carriers' tracking services, and the sandbox's simulated carriers.
//!
//! Each carrier is one file below `apis`: its request, its tolerant reader, and its code table as data. What all of them
//! share lies in `runtime`: the deadline, the one retry, tokens, the bound on what is in flight, and a breaker that keeps
//! a carrier in trouble from costing every seller's request its deadline. No carrier knows another, and one in trouble
//! never delays another.

mod api;
mod apis;
mod carriers;
mod reading;
mod runtime;
mod settings;
mod simulated;
#[cfg(test)]
mod tests;

pub use carriers::{Carriers, SetupError};
pub use settings::{
    CarrierSettings, DEADLINE, DhlSettings, DpdSettings, InpostSettings, OauthSettings, PocztaPolskaSettings,
    urls,
};
pub use simulated::SimulatedCarriers;
