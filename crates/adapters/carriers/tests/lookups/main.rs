//! Tests of every carrier's client against a stub of the carrier on a loopback address.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod answers;
mod breaker;
mod fixtures;
mod logs;
mod requests;
mod tokens;
mod transport;
mod world;
