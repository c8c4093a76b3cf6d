//! Whatever reads bytes that strangers send, fed with any bytes (`docs/FUZZING.md`).
//!
//! A [`Target`] is one reader with what must hold of it whatever it is given: that nothing panics is the least of it. [`TABLE`]
//! has all of them, and [`drive`] feeds them with what it makes of each target's own seeds: the same in each run, unless
//! `FUZZ_SEED` says otherwise ([`seed`]).
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "what does not hold is to panic: that is how a driver hears of it"
)]

mod driver;
mod growth;
mod held;
mod listeners;
mod mutation;
mod raw_request;
mod seed;
mod target;
mod targets;

pub use driver::{Driven, Found, drive, holds_for};
pub use growth::{Costs, Shape, costs};
pub use mutation::Mutator;
pub use seed::seed;
pub use target::{TABLE, Target, named};
