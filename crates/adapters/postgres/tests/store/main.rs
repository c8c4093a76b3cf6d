//! Tests of the adapter with a real PostgreSQL: one database per test, cloned from a migrated template.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that meets what it does not expect has failed"
)]

mod accounts;
mod claiming;
mod claims;
mod corrupt;
mod costs;
mod crowds;
mod endings;
mod feed;
mod grants;
mod groups;
mod hosts;
mod lists;
mod mails;
mod offers;
mod orders;
mod panel;
mod retention;
mod schema;
mod settling;
mod sleeping;
mod subscriptions;
mod support;
mod tls;
mod transactions;
