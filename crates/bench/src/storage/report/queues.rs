//! The tables of queues under churn.

use std::fmt::Write as _;

use super::megabytes;
use crate::deliveries::churn::{self, Churned};
use crate::figures::whole;
use crate::storage::keys;

/// How waves are called that are vacuumed, and those that are not.
const KINDS: [&str; 2] = ["as shipped", "never vacuumed"];

/// Waves of deliveries.
pub(super) fn deliveries(churned: &Churned, text: &mut String) -> anyhow::Result<()> {
    writeln!(
        text,
        "| deliveries, wave | a second | `deliveries`, MB | its indexes, MB | dead rows | vacuumed | `subscriptions` with indexes, MB | \
         dead rows | vacuumed | a claim gives out | in ms | pages for each |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    )?;
    for (kind, waves) in KINDS.iter().zip([&churned.vacuumed, &churned.left]) {
        for (n, wave) in (1..).zip(waves) {
            let churn::Wave { rate, tables, claim } = wave;
            let [deliveries, lanes] = tables;
            writeln!(
                text,
                "| {kind}, {n} | {} | {} | {} | {} | {} | {} | {} | {} | {:.0} | {:.2} | {:.0} |",
                whole(*rate),
                megabytes(deliveries.bytes),
                megabytes(deliveries.indexes),
                deliveries.dead,
                deliveries.vacuums,
                megabytes(lanes.bytes + lanes.indexes),
                lanes.dead,
                lanes.vacuums,
                claim.rows,
                claim.milliseconds,
                (claim.hit + claim.read) / claim.rows.max(1.0),
            )?;
        }
    }
    writeln!(text)?;
    Ok(())
}

/// Waves of idempotency keys.
pub(super) fn keys(kinds: &[Vec<keys::Wave>; 2], text: &mut String) -> anyhow::Result<()> {
    writeln!(
        text,
        "| keys, wave | `idempotency`, MB | its indexes, MB | dead rows | vacuumed | a claim, ms | its pages |\n\
         |---|--:|--:|--:|--:|--:|--:|"
    )?;
    for (kind, waves) in KINDS.iter().zip(kinds) {
        for (n, wave) in (1..).zip(waves) {
            let keys::Wave { table, claim } = wave;
            writeln!(
                text,
                "| {kind}, {n} | {} | {} | {} | {} | {:.2} | {} |",
                megabytes(table.bytes),
                megabytes(table.indexes),
                table.dead,
                table.vacuums,
                claim.milliseconds,
                whole(claim.hit + claim.read),
            )?;
        }
    }
    writeln!(text)?;
    Ok(())
}
