//! The adapter over a real PostgreSQL: a database for each test, cloned from a migrated template.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that meets what it does not expect has failed"
)]

mod accounts;
mod audit;
mod client_tokens;
mod connections;
mod consenting;
mod expanding;
mod gate;
mod grant_races;
mod grants;
mod migrations;
mod offers;
mod outages;
mod pages;
mod panel;
mod panel_races;
mod plans;
mod rates;
mod retention;
mod schema;
mod sessions;
mod support;
mod transactions;
