//! Subscriptions, lanes and histories over a real PostgreSQL.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that meets what it does not expect has failed"
)]

mod claiming;
mod clearing;
mod endings;
mod histories;
mod limits;
mod losses;
mod plans;
mod queues;
mod settling;
mod sleeping;
mod support;
mod suspension;
