//! What is written, over a real PostgreSQL: orders, claims, queues, the change feed and deliveries.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that meets what it does not expect has failed"
)]

mod account_mails;
mod claims;
mod crowds;
mod deliveries;
mod feed;
mod listing;
mod mails;
mod outcomes;
mod parcels;
mod parts;
mod plans;
mod records;
mod round_trips;
mod support;
mod whole_reads;
