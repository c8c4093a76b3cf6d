//! The report of growth.

use std::fmt::Write as _;
use std::time::Duration;

use super::subjects::{OFFER, PAGE, PATCH, ROW};
use crate::catalogue::Catalogue;
use crate::figures::{Spread, ratio_spread, real, rounds, whole, whole_spread};
use crate::machine::Machine;
use crate::options::GrowthOptions;
use crate::report::{self, subjects};
use crate::rounds::Measured;

/// Everything that a run found.
#[derive(Debug)]
pub(crate) struct Findings {
    /// On what.
    pub(super) machine: Machine,
    /// When.
    pub(super) date: String,
    /// How it was run.
    pub(super) options: GrowthOptions,
    /// The sizes, each larger than the one before it; the last one has many sellers.
    pub(super) sizes: Vec<Size>,
}

/// What was found on one size.
#[derive(Debug)]
pub(super) struct Size {
    /// The size.
    pub(super) catalogue: Catalogue,
    /// What table and indexes take on disk.
    pub(super) bytes: u64,
    /// How long filling it took.
    pub(super) filled_in: Duration,
    /// Its subjects.
    pub(super) measured: Vec<Measured>,
}

impl Size {
    /// A subject by its key.
    pub(super) fn subject(&self, key: &str) -> anyhow::Result<&Measured> {
        subjects::find(&self.measured, key)
    }

    /// A subject's rate over its rate on another size, round by round.
    pub(super) fn over(&self, other: &Self, key: &str) -> anyhow::Result<Spread> {
        Ok(self.subject(key)?.ratio_to(other.subject(key)?))
    }
}

/// The whole report.
pub(crate) fn render(findings: &Findings) -> anyhow::Result<String> {
    let mut text = String::new();
    let options = &findings.options;
    let run = format!(
        "{} of {} s each, {} connections",
        rounds(options.report.rounds),
        options.stand.seconds,
        options.stand.concurrency
    );
    report::facts(&findings.date, &findings.machine, &run, &mut text)?;
    for key in [OFFER, PAGE, PATCH, ROW] {
        rates(findings, key, &mut text)?;
    }
    sizes(findings, &mut text)?;
    Ok(text)
}

fn rates(findings: &Findings, key: &str, text: &mut String) -> anyhow::Result<()> {
    let Some(first) = findings.sizes.first() else {
        return Ok(());
    };
    writeln!(
        text,
        "| {} | requests/s | ÷ the smallest | p50 ms | p99 ms | PostgreSQL µs | server µs | others % |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|",
        first.subject(key)?.title
    )?;
    for size in &findings.sizes {
        let subject = size.subject(key)?;
        let latency = subject.latency()?;
        let quantile = |share| crate::figures::milliseconds(latency.quantile(share));
        let server = subject.middle(|sample| sample.cpu.server);
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {:.1} | {} | {:.0} |",
            name(size.catalogue),
            whole_spread(subject.rate()),
            ratio_spread(size.over(first, key)?),
            quantile(0.5),
            quantile(0.99),
            subject.middle(|sample| sample.cpu.postgres),
            if server > 0.0 {
                format!("{server:.1}")
            } else {
                "–".to_owned()
            },
            subject.middle(|sample| sample.others * 100.0),
        )?;
    }
    writeln!(text)?;
    Ok(())
}

fn name(catalogue: Catalogue) -> String {
    format!(
        "{} offers, {} sellers",
        whole(real(catalogue.offers)),
        whole(real(catalogue.sellers))
    )
}

fn sizes(findings: &Findings, text: &mut String) -> anyhow::Result<()> {
    writeln!(text, "| | table with indexes, MB | filled in s |\n|---|--:|--:|")?;
    for size in &findings.sizes {
        writeln!(
            text,
            "| {} | {} | {:.0} |",
            name(size.catalogue),
            whole(real(size.bytes) / 1e6),
            size.filled_in.as_secs_f64()
        )?;
    }
    Ok(())
}
