//! What is promised about the reading endpoints.

use super::key;
use super::report::Findings;
use crate::figures::{Spread, real};
use crate::report::bars::{Bar, at_least, at_most, number, ratio};

/// The rate of the largest import over each of the copies'.
pub(super) fn import_ratio(findings: &Findings) -> Spread {
    let over = |copied: f64| findings.filling.largest_rate / copied;
    let copied = findings.copied;
    Spread {
        min: over(copied.max),
        median: over(copied.median),
        max: over(copied.min),
        readings: copied.readings,
    }
}

/// All of them.
pub(super) fn all(findings: &Findings) -> anyhow::Result<Vec<Bar>> {
    let mut bars = reads(findings)?;
    bars.extend(others(findings));
    Ok(bars)
}

fn reads(findings: &Findings) -> anyhow::Result<Vec<Bar>> {
    let subject = |key| findings.subject(key);
    let (row, offer) = (subject(key::ROW)?, subject(key::OFFER)?);
    let page = subject(key::PAGE)?;
    Ok(vec![
        ratio("one offer ÷ pgbench's row", offer.ratio_to(row))
            .bar(at_least, 0.5)
            .aim(at_least, 0.75),
        ratio(
            "the same by CPU time: all that pgbench's row costs ÷ all that one offer costs",
            row.over(offer, |sample| sample.cpu.sum()),
        ),
        ratio(
            "PostgreSQL's CPU time for one offer ÷ for pgbench's row",
            offer.over(row, |sample| sample.cpu.postgres),
        )
        .aim(at_most, 0.5),
        ratio(
            "page of 50 ÷ pgbench's rows of a page",
            page.ratio_to(subject(key::PAGE_ROWS)?),
        )
        .aim(at_least, 0.6),
        // A page's cost is the inverse of its rate.
        ratio(
            "cost of a page at 90 % depth ÷ of the first",
            page.ratio_to(subject(key::DEEP)?),
        )
        .bar(at_most, 1.1)
        .aim(at_most, 1.05),
        ratio(
            "one offer: throughput in the large catalogue ÷ in the small",
            offer.ratio_to(subject(key::SMALL)?),
        )
        .bar(at_least, 0.9),
    ])
}

fn others(findings: &Findings) -> [Bar; 4] {
    let rate = Spread::of([findings.filling.largest_rate]);
    let resident = Spread::of([real(findings.kept.with_few.memory.resident) / 1024.0]);
    [
        ratio("one large import ÷ `\\copy`", import_ratio(findings)).bar(at_least, 0.3),
        number("one large import, rows/s", rate).aim(at_least, 50_000.0),
        number("`serve` ready, ms", findings.starts)
            .bar(at_most, 1_000.0)
            .aim(at_most, 300.0),
        number(
            "resident with 2 000 keep-alive connections at rest, MiB",
            resident,
        )
        .bar(at_most, 100.0),
    ]
}
