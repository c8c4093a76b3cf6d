//! Tests of the adapter with a real PostgreSQL: one database per test, cloned from a migrated template.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that meets what it does not expect has failed"
)]

mod accounts;
mod batches;
mod concurrent_writes;
mod corrupt;
mod costs;
mod ended_subscriptions;
mod exchanges;
mod feed;
mod grants;
mod hosts;
mod idempotency;
mod journal;
mod lists;
mod mails;
mod offer_changes;
mod offers;
mod orders;
mod panel;
mod queue_claims;
mod queue_wakeups;
mod recordings;
mod retention;
mod rollouts;
mod schema;
mod subscriptions;
mod support;
mod tls;
mod transactions;
mod worker_costs;
