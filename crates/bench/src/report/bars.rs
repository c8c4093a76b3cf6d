//! The bars: what the product promises about its speed, as ratios of one run.

use std::fmt::Write as _;

use super::{Findings, key};
use crate::figures::{Spread, ratio_spread, real, whole};

/// A promise and what was found.
struct Bar {
    what: &'static str,
    found: String,
    bar: String,
    holds: bool,
    aim: Option<(String, bool)>,
}

/// Writes the table of bars.
pub(super) fn write(findings: &Findings, text: &mut String) -> anyhow::Result<()> {
    writeln!(
        text,
        "### Bars\n\n| | found | bar | | aim | |\n|---|--:|--:|---|--:|---|"
    )?;
    for bar in all(findings)? {
        let (aim, reached) = bar.aim.map_or_else(
            || (String::new(), ""),
            |(aim, reached)| (aim, if reached { "reached" } else { "not reached" }),
        );
        let holds = if bar.holds { "holds" } else { "**missed**" };
        writeln!(
            text,
            "| {} | {} | {} | {holds} | {aim} | {reached} |",
            bar.what, bar.found, bar.bar
        )?;
    }
    writeln!(text)?;
    Ok(())
}

/// The import's rate over each of the copies'.
pub(super) fn import_ratio(findings: &Findings) -> Spread {
    let over = |copied: f64| findings.filling.rate() / copied;
    let copied = findings.copied;
    Spread {
        min: over(copied.max),
        median: over(copied.median),
        max: over(copied.min),
    }
}

fn all(findings: &Findings) -> anyhow::Result<Vec<Bar>> {
    let subject = |key| findings.subject(key);
    let read = subject(key::OFFER)?.ratio_to(subject(key::ROW)?);
    let page = subject(key::PAGE)?.ratio_to(subject(key::PAGE_ROWS)?);
    // A page's cost is the inverse of its rate.
    let depth = subject(key::PAGE)?.ratio_to(subject(key::DEEP)?);
    let growth = subject(key::OFFER)?.ratio_to(subject(key::SMALL)?);
    let work = postgres_work(findings)?;
    let import = import_ratio(findings);
    let rate = findings.filling.rate();
    let start = findings.starts;
    let resident = real(findings.kept.with_all.resident) / 1024.0;
    Ok(vec![
        at_least("one offer ÷ pgbench's row", read, 0.5, Some(0.75)),
        at_most(
            "PostgreSQL's CPU for one offer ÷ for pgbench's row",
            work,
            1.0,
            Some(0.5),
        ),
        at_least("page of 50 ÷ pgbench's rows of a page", page, 0.5, Some(0.6)),
        at_most(
            "cost of a page at 90 % depth ÷ of the first",
            depth,
            1.1,
            Some(1.05),
        ),
        at_least(
            "one offer: throughput in the large catalogue ÷ in the small",
            growth,
            0.9,
            None,
        ),
        at_least("import ÷ `\\copy`", import, 0.3, None),
        Bar {
            what: "import, rows/s",
            found: whole(rate),
            bar: "–".to_owned(),
            holds: true,
            aim: Some(("≥ 50 000".to_owned(), rate >= 50_000.0)),
        },
        Bar {
            what: "`serve` ready, ms",
            found: whole(start.median),
            bar: "≤ 1 000".to_owned(),
            holds: start.median <= 1_000.0,
            aim: Some(("≤ 300".to_owned(), start.median <= 300.0)),
        },
        Bar {
            what: "resident with the kept connections, MiB",
            found: format!("{resident:.1}"),
            bar: "≤ 100".to_owned(),
            holds: resident <= 100.0,
            aim: None,
        },
    ])
}

/// PostgreSQL's CPU time for an offer over that for pgbench's row, round by round.
fn postgres_work(findings: &Findings) -> anyhow::Result<Spread> {
    let (offer, row) = (findings.subject(key::OFFER)?, findings.subject(key::ROW)?);
    let pairs = offer.samples.iter().zip(&row.samples);
    Ok(Spread::of(
        pairs.map(|(offer, row)| offer.cpu.postgres / row.cpu.postgres),
    ))
}

fn at_least(what: &'static str, found: Spread, bar: f64, aim: Option<f64>) -> Bar {
    Bar {
        what,
        found: ratio_spread(found),
        bar: format!("≥ {bar}"),
        holds: found.median >= bar,
        aim: aim.map(|aim| (format!("≥ {aim}"), found.median >= aim)),
    }
}

fn at_most(what: &'static str, found: Spread, bar: f64, aim: Option<f64>) -> Bar {
    Bar {
        what,
        found: ratio_spread(found),
        bar: format!("≤ {bar}"),
        holds: found.median <= bar,
        aim: aim.map(|aim| (format!("≤ {aim}"), found.median <= aim)),
    }
}
