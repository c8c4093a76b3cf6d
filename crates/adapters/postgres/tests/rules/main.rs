//! The rules that the ports state, as tests over the ports alone.
#![expect(clippy::unwrap_used, reason = "tests")]

mod claims;
mod feed;
mod fixture;
mod gate;
mod grants;
mod lanes;
mod offers;
mod orders;
mod settling;
mod subscriptions;
