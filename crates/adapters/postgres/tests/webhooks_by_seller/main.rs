//! Lanes over a real PostgreSQL with one seller a statement: what holds of statements for many holds here.
#![expect(
    clippy::unwrap_used,
    reason = "a test that meets what it does not expect has failed"
)]

use adapter_postgres::Gathering;

#[path = "../webhooks/claiming.rs"]
mod claiming;
#[path = "../webhooks/endings.rs"]
mod endings;
#[path = "../webhooks/limits.rs"]
mod limits;
#[path = "../webhooks/losses.rs"]
mod losses;
#[path = "../webhooks/plans.rs"]
mod plans;
#[path = "../webhooks/settling.rs"]
mod settling;
#[path = "../webhooks/sleeping.rs"]
mod sleeping;
#[path = "../webhooks/support.rs"]
mod support;
#[path = "../webhooks/suspension.rs"]
mod suspension;

/// How statements are sent.
pub(crate) const GATHERING: Gathering = Gathering::Router;

/// Whether lanes of suspended applications are put to sleep. Else they stay due and are read over.
pub(crate) const SUSPENDED_LANES_REST: bool = false;
