//! The report: tables in Markdown, made of what was found.

mod bars;

use std::fmt::Write as _;

use anyhow::Context as _;

use crate::cli::ReadOptions;
use crate::connections::Kept;
use crate::figures::{Spread, milliseconds, ratio_spread, real, whole, whole_spread};
use crate::import::Filling;
use crate::machine::Machine;
use crate::memory::mebibytes;
use crate::rounds::Measured;

/// The keys of what was measured.
pub(crate) mod key {
    /// pgbench: a row of the large table.
    pub(crate) const ROW: &str = "row";
    /// An offer of the large catalogue, all tokens.
    pub(crate) const OFFER: &str = "offer";
    /// An offer of the large catalogue, one token.
    pub(crate) const ONE_TOKEN: &str = "one-token";
    /// The token itself.
    pub(crate) const ME: &str = "me";
    /// pgbench: the rows of a page.
    pub(crate) const PAGE_ROWS: &str = "page-rows";
    /// The first page.
    pub(crate) const PAGE: &str = "page";
    /// A deep page.
    pub(crate) const DEEP: &str = "deep";
    /// pgbench: a row of the small table.
    pub(crate) const SMALL_ROW: &str = "small-row";
    /// An offer of the small catalogue.
    pub(crate) const SMALL: &str = "small";
}

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
        let found = self.measured.iter().find(|measured| measured.key == key);
        found.with_context(|| format!("{key} was not measured"))
    }
}

/// What a subject's rate is divided by.
fn base_of(subject: &str) -> &'static str {
    match subject {
        key::PAGE_ROWS | key::PAGE | key::DEEP => key::PAGE_ROWS,
        key::SMALL_ROW | key::SMALL => key::SMALL_ROW,
        _ => key::ROW,
    }
}

/// The whole report.
pub(crate) fn render(findings: &Findings) -> anyhow::Result<String> {
    let mut text = String::new();
    machine(findings, &mut text)?;
    bars::write(findings, &mut text)?;
    reads(findings, &mut text)?;
    cpu(findings, &mut text)?;
    filling(findings, &mut text)?;
    start_and_memory(findings, &mut text)?;
    Ok(text)
}

fn machine(findings: &Findings, text: &mut String) -> anyhow::Result<()> {
    let options = &findings.options;
    writeln!(text, "Measured on {}.\n\n| | |\n|---|---|", findings.date)?;
    for (name, value) in &findings.machine.facts {
        writeln!(text, "| {name} | {value} |")?;
    }
    writeln!(
        text,
        "| Run | {} rounds of {} s each, {} connections, {} sellers |\n",
        options.rounds, options.stand.seconds, options.stand.concurrency, options.stand.sellers
    )?;
    Ok(())
}

fn reads(findings: &Findings, text: &mut String) -> anyhow::Result<()> {
    writeln!(
        text,
        "### Reads\n\n| | requests/s | ÷ pgbench | p50 ms | p95 ms | p99 ms | max ms |\n|---|--:|--:|--:|--:|--:|--:|"
    )?;
    for measured in &findings.measured {
        let ratio = measured.ratio_to(findings.subject(base_of(measured.key))?);
        let latency = measured.latency()?;
        let quantile = |share| milliseconds(latency.quantile(share));
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            measured.title,
            whole_spread(measured.rate()),
            if base_of(measured.key) == measured.key {
                "1".to_owned()
            } else {
                ratio_spread(ratio)
            },
            quantile(0.5),
            quantile(0.95),
            quantile(0.99),
            latency.longest().map_or_else(|| "–".to_owned(), milliseconds),
        )?;
    }
    writeln!(text)?;
    Ok(())
}

fn cpu(findings: &Findings, text: &mut String) -> anyhow::Result<()> {
    writeln!(
        text,
        "### CPU time and statements per request\n\n| | PostgreSQL µs | server µs | client µs | sum µs | statements | others % |\n\
         |---|--:|--:|--:|--:|--:|--:|"
    )?;
    for measured in &findings.measured {
        let postgres = measured.middle(|sample| sample.cpu.postgres);
        let server = measured.middle(|sample| sample.cpu.server);
        let client = measured.middle(|sample| sample.cpu.client);
        let others = measured.middle(|sample| sample.others * 100.0);
        let statements = measured.middle(|sample| sample.statements.count);
        let or_dash = |value: f64, text: String| if value > 0.0 { text } else { "–".to_owned() };
        writeln!(
            text,
            "| {} | {postgres:.1} | {} | {client:.1} | {:.1} | {} | {others:.0} |",
            measured.title,
            or_dash(server, format!("{server:.1}")),
            postgres + server + client,
            or_dash(statements, format!("{statements:.2}")),
        )?;
    }
    writeln!(text)?;
    Ok(())
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
    writeln!(
        text,
        "| resident with {} keep-alive connections, each used, MiB | {} |",
        whole(real(kept.connections)),
        mebibytes(kept.with_all.resident)
    )?;
    Ok(())
}
