//! The use cases in a world where everything goes wrong: a database in memory whose answers are lost, processes that die
//! between any two steps, receivers that fail, and clients that ask again. A seed decides all of it, so whatever is found
//! comes again with its seed.
//!
//! What the database in memory, and any other store, has to keep to is in [`contract`].

mod chance;
pub mod contract;
mod executor;
mod memory;
mod met;
mod seeds;
mod world;

pub use chance::Chance;
pub use executor::{Handle, Place, Simulator, Stuck};
pub use memory::{Admittance, Database, Flaw, Link, Weather};
pub use met::Met;
pub use seeds::{World, catches, play_all};
pub use world::{Outcome, Setup, Violation, tokens, trade};
