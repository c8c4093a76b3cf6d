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
mod process;
mod receivers;
mod run;
mod trade;
mod worker;

pub use run::{Outcome, Setup, Violation, trade};
