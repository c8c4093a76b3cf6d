//! The tables of what the rounds measured.

use std::fmt::Write as _;

use anyhow::Context as _;

use crate::figures::{milliseconds, ratio_spread, whole_spread};
use crate::rounds::Measured;

/// A subject by its key.
pub(crate) fn find<'a>(measured: &'a [Measured], key: &str) -> anyhow::Result<&'a Measured> {
    let found = measured.iter().find(|measured| measured.key == key);
    found.with_context(|| format!("{key} was not measured"))
}

/// Writes rates, ratios and latencies. `base_of` gives the key of what a subject's rate is divided by; `base` says in the
/// table's head what that is.
pub(crate) fn rates(
    measured: &[Measured],
    base: &str,
    base_of: impl Fn(&str) -> &'static str,
    text: &mut String,
) -> anyhow::Result<()> {
    writeln!(
        text,
        "| | requests/s | ÷ {base} | p50 ms | p95 ms | p99 ms | max ms |\n|---|--:|--:|--:|--:|--:|--:|"
    )?;
    for subject in measured {
        let base = find(measured, base_of(subject.key))?;
        let ratio = if base.key == subject.key {
            "1".to_owned()
        } else {
            ratio_spread(subject.ratio_to(base))
        };
        let latency = subject.latency()?;
        let quantile = |share| milliseconds(latency.quantile(share));
        writeln!(
            text,
            "| {} | {} | {ratio} | {} | {} | {} | {} |",
            subject.title,
            whole_spread(subject.rate()),
            quantile(0.5),
            quantile(0.95),
            quantile(0.99),
            latency.longest().map_or_else(|| "–".to_owned(), milliseconds),
        )?;
    }
    writeln!(text)?;
    Ok(())
}

/// Writes what a request costs each process, and how the server gathered: `statements` heads that column.
pub(crate) fn costs(measured: &[Measured], statements: &str, text: &mut String) -> anyhow::Result<()> {
    writeln!(
        text,
        "| | PostgreSQL µs | server µs | client µs | sum µs | {statements} | others % |\n\
         |---|--:|--:|--:|--:|--:|--:|"
    )?;
    for subject in measured {
        let postgres = subject.middle(|sample| sample.cpu.postgres);
        let server = subject.middle(|sample| sample.cpu.server);
        let client = subject.middle(|sample| sample.cpu.client);
        let others = subject.middle(|sample| sample.others * 100.0);
        let statements = subject.middle(|sample| sample.statements.count);
        let or_dash = |value: f64, text: String| if value > 0.0 { text } else { "–".to_owned() };
        writeln!(
            text,
            "| {} | {postgres:.1} | {} | {client:.1} | {:.1} | {} | {others:.0} |",
            subject.title,
            or_dash(server, format!("{server:.1}")),
            postgres + server + client,
            or_dash(statements, format!("{statements:.2}")),
        )?;
    }
    writeln!(text)?;
    Ok(())
}
