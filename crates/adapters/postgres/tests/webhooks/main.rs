//! Subscriptions, lanes and histories over a real PostgreSQL.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that meets what it does not expect has failed"
)]

use adapter_postgres::Gathering;

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

/// How statements are sent.
pub(crate) const GATHERING: Gathering = Gathering::Grouped;

/// Whether lanes of suspended applications are put to sleep. Else they stay due and are read over.
pub(crate) const SUSPENDED_LANES_REST: bool = true;
