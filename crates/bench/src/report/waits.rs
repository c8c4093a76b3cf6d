//! The tables of what writes wait for.

use std::fmt::Write as _;

use super::subjects::find;
use crate::rounds::Measured;
use crate::waits::Backends;

/// A write that is told of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Ours.
    pub(crate) subject: &'static str,
    /// pgbench's script for it.
    pub(crate) script: &'static str,
    /// Whether it sends its first lock along with its begin, so that the begin's time is in its statements' too.
    pub(crate) locks_first: bool,
}

/// Writes where the time of a request goes, and what PostgreSQL's backends do meanwhile.
pub(crate) fn write(rows: &[Row], measured: &[Measured], text: &mut String) -> anyhow::Result<()> {
    writeln!(
        text,
        "| ms of a request | waiting for the pool | claim | begin | statements | commit | all else | sum |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|"
    )?;
    for row in rows {
        times(*row, find(measured, row.subject)?, text)?;
    }
    writeln!(
        text,
        "\n| backends within a statement or a transaction | at a time | running | for the log's disk \
         | for locks | for the client | for anything else |\n|---|--:|--:|--:|--:|--:|--:|"
    )?;
    for row in rows {
        backends(find(measured, row.script)?, text)?;
        backends(find(measured, row.subject)?, text)?;
    }
    writeln!(text)?;
    Ok(())
}

fn times(row: Row, subject: &Measured, text: &mut String) -> anyhow::Result<()> {
    let mut parts = [
        subject.middle(|sample| sample.waits.pool),
        subject.middle(|sample| sample.waits.claim),
        subject.middle(|sample| sample.waits.begin),
        subject.middle(|sample| {
            let waits = sample.waits;
            waits.within - if row.locks_first { waits.begin } else { 0.0 }
        }),
        subject.middle(|sample| sample.waits.commit),
        0.0,
    ];
    let sum = subject.middle(|sample| sample.latency.mean().as_secs_f64() * 1e3);
    let told: f64 = parts.iter().sum();
    if let Some(rest) = parts.last_mut() {
        *rest = sum - told;
    }
    let cells = parts.map(|part| format!("{part:.2}")).join(" | ");
    writeln!(text, "| {} | {cells} | {sum:.2} |", subject.title)?;
    Ok(())
}

fn backends(subject: &Measured, text: &mut String) -> anyhow::Result<()> {
    let share = |of: fn(&Backends) -> u64| {
        let percent = subject.middle(|sample| sample.backends.percent(of));
        format!("{percent:.0} %")
    };
    let shares = [
        share(|of| of.run),
        share(|of| of.log),
        share(|of| of.locks),
        share(|of| of.client),
        share(|of| of.other),
    ];
    let mean = subject.middle(|sample| sample.backends.mean());
    writeln!(text, "| {} | {mean:.1} | {} |", subject.title, shares.join(" | "))?;
    Ok(())
}
