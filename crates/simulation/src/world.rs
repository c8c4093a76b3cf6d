//! The world around the use cases: processes that run them and die, clients that ask again, receivers, carriers, and
//! somebody who looks at all of it afterwards.

mod carriers;
mod checks;
mod client;
mod deed;
mod disturber;
mod fleet;
mod follower;
mod history;
mod marketplace;
mod process;
mod ranks;
mod receivers;
mod run;
mod tokens;
mod trade;
mod worker;

pub use marketplace::trade;
pub use run::{Outcome, Setup, Violation};
pub use tokens::tokens;
