//! The report of the reading endpoints.

use std::fmt::Write as _;

use super::{bars, key};
use crate::connections::Kept;
use crate::figures::{Spread, ratio_spread, real, whole, whole_spread};
use crate::import::Filling;
use crate::machine::Machine;
use crate::memory::mebibytes;
use crate::options::ReadOptions;
use crate::report::{self, subjects};
use crate::rounds::Measured;

/// Everything that a run found.
#[derive(Debug)]
pub(crate) struct Findings {
    /// On what.
    pub(crate) machine: Machine,
    /// When.
    pub(crate) date: String,
    /// How it was run.
    pub(crate) options: ReadOptions,
    /// The filling of the large catalogue.
    pub(crate) filling: Filling,
    /// `\copy` of the same rows, rows a second.
    pub(crate) copied: Spread,
    /// The subjects.
    pub(crate) measured: Vec<Measured>,
    /// Milliseconds until ready.
    pub(crate) starts: Spread,
    /// Memory with connections.
    pub(crate) kept: Kept,
}

impl Findings {
    /// A subject by its key.
    pub(crate) fn subject(&self, key: &str) -> anyhow::Result<&Measured> {
        subjects::find(&self.measured, key)
    }
}

/// What a subject's rate is divided by.
pub(super) fn base_of(subject: &str) -> &'static str {
    match subject {
        key::PAGE_ROWS | key::PAGE | key::DEEP => key::PAGE_ROWS,
        key::SMALL_ROW | key::SMALL => key::SMALL_ROW,
        _ => key::ROW,
    }
}

/// The whole report.
pub(crate) fn render(findings: &Findings) -> anyhow::Result<String> {
    let mut text = String::new();
    let options = &findings.options;
    report::heading(
        &findings.date,
        &findings.machine,
        options.report.rounds,
        &options.stand,
        &mut text,
    )?;
    writeln!(text, "### Bars\n")?;
    report::bars::write(bars::all(findings)?, &mut text)?;
    writeln!(text, "### Reads\n")?;
    subjects::rates(&findings.measured, "pgbench", base_of, &mut text)?;
    writeln!(text, "### CPU time and statements per request\n")?;
    subjects::costs(&findings.measured, "statements", &mut text)?;
    filling(findings, &mut text)?;
    start_and_memory(findings, &mut text)?;
    Ok(text)
}

fn filling(findings: &Findings, text: &mut String) -> anyhow::Result<()> {
    let filling = &findings.filling;
    let each = |used: std::time::Duration| used.as_secs_f64() * 1e6 / real(filling.offers);
    let [before, first, largest, all] = filling.memory;
    writeln!(text, "### Import\n\n| | |\n|---|--:|")?;
    writeln!(
        text,
        "| offers imported, in {} requests | {} |",
        findings.options.stand.sellers,
        whole(real(filling.offers))
    )?;
    writeln!(
        text,
        "| NDJSON bytes a line | {} |",
        whole(real(filling.bytes) / real(filling.offers))
    )?;
    writeln!(text, "| all imports, rows/s | {} |", whole(filling.rate()))?;
    writeln!(
        text,
        "| the largest import (a fifth of the rows), rows/s | {} |",
        whole(filling.largest_rate)
    )?;
    writeln!(
        text,
        "| psql `\\copy` of the same rows, rows/s | {} |",
        whole_spread(findings.copied)
    )?;
    writeln!(
        text,
        "| largest import ÷ `\\copy` | {} |",
        ratio_spread(bars::import_ratio(findings))
    )?;
    writeln!(
        text,
        "| PostgreSQL CPU µs a row | {:.1} |",
        each(filling.postgres_cpu)
    )?;
    writeln!(text, "| server CPU µs a row | {:.1} |", each(filling.server_cpu))?;
    writeln!(
        text,
        "| server's peak memory before, MiB | {} |",
        mebibytes(before.peak)
    )?;
    writeln!(
        text,
        "| … after the first import (a small one) | {} |",
        mebibytes(first.peak)
    )?;
    writeln!(text, "| … after the largest | {} |", mebibytes(largest.peak))?;
    writeln!(text, "| … after all | {} |\n", mebibytes(all.peak))?;
    Ok(())
}

fn start_and_memory(findings: &Findings, text: &mut String) -> anyhow::Result<()> {
    let kept = &findings.kept;
    writeln!(text, "### Start and memory\n\n| | |\n|---|--:|")?;
    writeln!(
        text,
        "| `serve` ready on a migrated database, ms | {} |",
        whole_spread(findings.starts)
    )?;
    writeln!(
        text,
        "| resident when ready, MiB | {} |",
        mebibytes(kept.before.resident)
    )?;
    let mut counts = vec![kept.with_few, kept.with_all];
    counts.dedup_by_key(|with| with.connections);
    for with in counts {
        writeln!(
            text,
            "| resident with {} keep-alive connections, each used and now at rest, MiB | {} |",
            whole(real(with.connections)),
            mebibytes(with.memory.resident)
        )?;
        writeln!(
            text,
            "| … and at most until then | {} |",
            mebibytes(with.memory.peak)
        )?;
    }
    writeln!(
        text,
        "\nConnections that were used go to rest when they have idled for about two seconds, by the server's own count \
         (`http_connections_resting`). What they held is given back within four more, and read then.\n"
    )?;
    Ok(())
}
