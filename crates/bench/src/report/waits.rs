//! The tables of what writes wait for.

use std::fmt::Write as _;

use super::subjects::find;
use crate::figures::{ratio_spread, whole_spread};
use crate::measure::Sample;
use crate::rounds::Measured;
use crate::waits::{Backends, Waits};

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
        "\n| backends within a statement or a transaction | at a time | running, % | for the log's disk, % \
         | for locks, % | for the client, % | for anything else, % |\n|---|--:|--:|--:|--:|--:|--:|"
    )?;
    for row in rows {
        backends(find(measured, row.script)?, text)?;
        backends(find(measured, row.subject)?, text)?;
    }
    writeln!(text)?;
    Ok(())
}

fn times(row: Row, subject: &Measured, text: &mut String) -> anyhow::Result<()> {
    let spread = |part: &dyn Fn(&Sample) -> f64| ratio_spread(subject.spread(part));
    let statements = |waits: &Waits| waits.within - if row.locks_first { waits.begin } else { 0.0 };
    let sum = |sample: &Sample| sample.latency.mean().as_secs_f64() * 1e3;
    // Within a round, where the parts make the sum.
    let rest = |sample: &Sample| {
        let waits = &sample.waits;
        sum(sample) - waits.pool - waits.claim - waits.begin - statements(waits) - waits.commit
    };
    writeln!(
        text,
        "| {} | {} | {} | {} | {} | {} | {} | {} |",
        subject.title,
        spread(&|sample| sample.waits.pool),
        spread(&|sample| sample.waits.claim),
        spread(&|sample| sample.waits.begin),
        spread(&|sample| statements(&sample.waits)),
        spread(&|sample| sample.waits.commit),
        spread(&rest),
        spread(&sum),
    )?;
    Ok(())
}

fn backends(subject: &Measured, text: &mut String) -> anyhow::Result<()> {
    let share = |of: fn(&Backends) -> u64| whole_spread(subject.spread(|sample| sample.backends.percent(of)));
    let mean = subject.spread(|sample| sample.backends.mean());
    writeln!(
        text,
        "| {} | {:.1} ({:.1}–{:.1}) | {} | {} | {} | {} | {} |",
        subject.title,
        mean.median,
        mean.min,
        mean.max,
        share(|of| of.run),
        share(|of| of.log),
        share(|of| of.locks),
        share(|of| of.client),
        share(|of| of.other),
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::load::Latency;
    use crate::measure::CpuEach;
    use crate::statements::Statements;

    /// A round of a write that took so many milliseconds, of which the pool and the begin had some.
    fn round(took: u64, pool: f64, begin: f64) -> Sample {
        let mut latency = Latency::new().unwrap();
        latency.record(Duration::from_millis(took));
        Sample {
            rate: 0.0,
            latency,
            cpu: CpuEach::default(),
            statements: Statements::default(),
            waits: Waits {
                pool,
                claim: 0.5,
                begin,
                within: begin + 0.25,
                commit: 0.5,
            },
            backends: Backends::default(),
            others: 0.0,
        }
    }

    fn told(locks_first: bool) -> String {
        let subject = Measured {
            key: "ours",
            title: "ours".to_owned(),
            samples: vec![round(5, 1.0, 0.25), round(6, 1.5, 0.5), round(4, 1.25, 0.75)],
        };
        let row = Row {
            subject: "ours",
            script: "ours",
            locks_first,
        };
        let mut text = String::new();
        times(row, &subject, &mut text).unwrap();
        text
    }

    #[test]
    fn parts_have_the_spread_of_the_rounds_and_what_is_left_is_each_rounds_own() {
        let parts = "| ours | 1.25 (1.00–1.50) | 0.50 (0.50–0.50) | 0.50 (0.25–0.75) | 0.25 (0.25–0.25) \
                     | 0.50 (0.50–0.50) | 2.50 (0.75–2.75) | 5.00 (4.00–6.00) |\n";
        assert_eq!(told(true), parts);
    }

    #[test]
    fn a_begin_that_locks_nothing_is_not_in_its_statements() {
        let statements = told(false).split(" | ").nth(4).map(str::to_owned);
        assert_eq!(statements.as_deref(), Some("0.75 (0.50–1.00)"));
    }
}
