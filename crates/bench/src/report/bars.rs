//! The bars: what the product promises about its speed, as ratios of one run.

use std::fmt::Write as _;

use super::{Findings, key};
use crate::figures::{Spread, ratio_spread, real, whole};

/// Something found, with what was promised and what is aimed at.
struct Bar {
    what: &'static str,
    found: String,
    median: f64,
    bar: Option<Mark>,
    aim: Option<Mark>,
}

/// A figure that is to be reached.
struct Mark {
    text: String,
    reached: bool,
}

/// Writes the table of bars.
pub(super) fn write(findings: &Findings, text: &mut String) -> anyhow::Result<()> {
    writeln!(
        text,
        "### Bars\n\n| | found | bar | | aim | |\n|---|--:|--:|---|--:|---|"
    )?;
    for bar in all(findings)? {
        let (promised, holds) = cells(bar.bar, ["holds", "**missed**"]);
        let (aimed, reached) = cells(bar.aim, ["reached", "not reached"]);
        writeln!(
            text,
            "| {} | {} | {promised} | {holds} | {aimed} | {reached} |",
            bar.what, bar.found
        )?;
    }
    writeln!(text)?;
    Ok(())
}

fn cells(mark: Option<Mark>, words: [&'static str; 2]) -> (String, &'static str) {
    let [yes, no] = words;
    mark.map_or_else(Default::default, |mark| {
        (mark.text, if mark.reached { yes } else { no })
    })
}

/// The rate of the largest import over each of the copies'.
pub(super) fn import_ratio(findings: &Findings) -> Spread {
    let over = |copied: f64| findings.filling.largest_rate / copied;
    let copied = findings.copied;
    Spread {
        min: over(copied.max),
        median: over(copied.median),
        max: over(copied.min),
    }
}

fn all(findings: &Findings) -> anyhow::Result<Vec<Bar>> {
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
    let resident = Spread::of([real(findings.kept.with_all.resident) / 1024.0]);
    [
        ratio("one large import ÷ `\\copy`", import_ratio(findings)).bar(at_least, 0.3),
        number("one large import, rows/s", rate).aim(at_least, 50_000.0),
        number("`serve` ready, ms", findings.starts)
            .bar(at_most, 1_000.0)
            .aim(at_most, 300.0),
        number("resident with the kept connections, MiB", resident).bar(at_most, 100.0),
    ]
}

fn ratio(what: &'static str, found: Spread) -> Bar {
    Bar::new(what, ratio_spread(found), found)
}

fn number(what: &'static str, found: Spread) -> Bar {
    Bar::new(what, whole(found.median), found)
}

impl Bar {
    fn new(what: &'static str, text: String, found: Spread) -> Self {
        Self {
            what,
            found: text,
            median: found.median,
            bar: None,
            aim: None,
        }
    }

    fn bar(self, test: fn(f64, f64) -> Mark, limit: f64) -> Self {
        let bar = Some(test(self.median, limit));
        Self { bar, ..self }
    }

    fn aim(self, test: fn(f64, f64) -> Mark, limit: f64) -> Self {
        let aim = Some(test(self.median, limit));
        Self { aim, ..self }
    }
}

fn at_least(found: f64, limit: f64) -> Mark {
    Mark {
        text: format!("≥ {}", plain(limit)),
        reached: found >= limit,
    }
}

fn at_most(found: f64, limit: f64) -> Mark {
    Mark {
        text: format!("≤ {}", plain(limit)),
        reached: found <= limit,
    }
}

fn plain(limit: f64) -> String {
    if limit < 10.0 {
        limit.to_string()
    } else {
        whole(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_judged() {
        let found = Spread::of([0.4, 0.6, 0.9]);
        let bar = ratio("x", found).bar(at_least, 0.5).aim(at_least, 0.75);
        assert!(bar.bar.is_some_and(|bar| bar.reached && bar.text == "≥ 0.5"));
        assert!(bar.aim.is_some_and(|aim| !aim.reached));
        let bar = number("x", Spread::of([1_001.0])).bar(at_most, 1_000.0);
        assert_eq!(cells(bar.bar, ["yes", "no"]), ("≤ 1 000".to_owned(), "no"));
        assert_eq!(cells(None, ["yes", "no"]), (String::new(), ""));
    }
}
