//! What is promised about the writing endpoints.

use super::key;
use super::report::Findings;
use crate::report::bars::{Bar, at_least, at_most, ratio};
use crate::report::subjects::find;

/// All of them.
pub(super) fn all(findings: &Findings) -> anyhow::Result<Vec<Bar>> {
    let subject = |key| find(&findings.measured, key);
    let (patch_rows, patch) = (subject(key::PATCH_ROWS)?, subject(key::PATCH)?);
    let (shipment_rows, shipment) = (subject(key::SHIPMENT_ROWS)?, subject(key::SHIPMENT)?);
    let (placing_rows, placing) = (subject(key::PLACING_ROWS)?, subject(key::PLACING)?);
    Ok(vec![
        ratio(
            "one keyed change ÷ pgbench's same writes",
            patch.ratio_to(patch_rows),
        )
        .bar(at_least, 0.6)
        .aim(at_least, 0.8),
        ratio(
            "the same by CPU time: all that pgbench's writes cost ÷ all that the change costs",
            patch_rows.over(patch, |sample| sample.cpu.sum()),
        ),
        ratio(
            "PostgreSQL's CPU time for one keyed change ÷ for pgbench's same writes",
            patch.over(patch_rows, |sample| sample.cpu.postgres),
        ),
        ratio(
            "one keyed shipment ÷ pgbench's same writes",
            shipment.ratio_to(shipment_rows),
        ),
        ratio(
            "the same by CPU time",
            shipment_rows.over(shipment, |sample| sample.cpu.sum()),
        ),
        ratio(
            "one placed order ÷ pgbench's same writes",
            placing.ratio_to(placing_rows),
        ),
        ratio(
            "the same by CPU time",
            placing_rows.over(placing, |sample| sample.cpu.sum()),
        ),
        // A page's cost is the inverse of its rate.
        ratio(
            "cost of a page of orders at 90 % depth ÷ of the first",
            subject(key::ORDERS)?.ratio_to(subject(key::DEEP)?),
        )
        .bar(at_most, 1.1),
    ])
}
