//! `seller-api admin orders`.

use std::collections::BTreeSet;

use accounts::plausible_address;
use adapter_postgres::Database;
use chrono::{DateTime, Utc};
use clap::Subcommand;
use orders::OrderId;
use serde_json::{Value, json};

use super::listing::{Format, Listed, Timestamp};
use crate::command::note;

/// Orders looked through by one statement.
const BATCH: u16 = 5_000;
/// Statements for each line of progress.
const PROGRESS_EVERY: u32 = 20;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Find the orders of a buyer, newest first, for a request for access or erasure
    ///
    /// Shows their numbers and dates alone. No index leads to a buyer: this looks through all orders, in
    /// small steps beside everything else. Orders whose buyer was erased are not found.
    Find {
        /// The buyer's e-mail address, in upper or lower case
        #[arg(long, value_name = "ADDRESS", value_parser = |text: &str| plausible_address(text.to_owned()))]
        buyer_email: String,
    },
}

impl Command {
    pub(super) async fn run(self, database: &Database, format: Format) -> anyhow::Result<()> {
        let Self::Find { buyer_email } = self;
        let orders = database.order_directory();
        // An order of several sellers is found once for each.
        let mut found = BTreeSet::new();
        let (mut after, mut batches) = (None, 0_u32);
        loop {
            let search = orders.find_by_buyer(&buyer_email, after, BATCH).await?;
            found.extend(search.found);
            after = search.next;
            if after.is_none() {
                break;
            }
            batches += 1;
            if batches.is_multiple_of(PROGRESS_EVERY) {
                note(format_args!(
                    "looked through {} orders",
                    batches * u32::from(BATCH)
                ));
            }
        }
        if found.is_empty() {
            note("no order has this address; orders whose buyer was erased are not found");
        }
        let found: Vec<_> = found.into_iter().rev().map(Found).collect();
        Ok(format.list(&found)?)
    }
}

/// An order's placement, number and id.
struct Found((DateTime<Utc>, String, OrderId));

impl Listed for Found {
    const COLUMNS: &'static str = "order_number order_id placed_at";

    fn object(&self) -> Value {
        let (placed_at, number, id) = &self.0;
        json!({ "order_number": number, "order_id": id.to_string(), "placed_at": Timestamp::new(*placed_at) })
    }
}
