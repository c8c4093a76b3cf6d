//! Every carrier's client against a stub on loopback that plays the carrier.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod breaker;
mod cells;
mod fixtures;
mod logs;
mod requests;
mod specifics;
mod stub;
mod tokens;
mod transport;
mod world;
