//! What the soak has found, and whether anything grew.

use std::fmt::Write as _;

use anyhow::ensure;

use super::samples::Sample;
use crate::figures::{Spread, milliseconds, real, whole};
use crate::load::Interval;
use crate::machine::Machine;
use crate::memory::mebibytes;
use crate::options::SoakOptions;

/// Rows of the table at most.
const ROWS: usize = 12;
/// How much more the last third may hold than the first, beside [`Figure::slack`].
const GROWTH: f64 = 1.05;

/// All that was found.
#[derive(Debug)]
pub(super) struct Findings {
    pub(super) machine: Machine,
    pub(super) date: String,
    pub(super) options: SoakOptions,
    pub(super) counted: Interval,
    pub(super) samples: Vec<Sample>,
}

/// Something that must not grow.
struct Figure {
    name: &'static str,
    of: fn(&Sample) -> u64,
    /// What comes and goes by itself.
    slack: f64,
    shown: fn(f64) -> String,
}

const FIGURES: [Figure; 4] = [
    Figure {
        name: "resident memory, MiB",
        of: |sample| sample.resident,
        slack: 4.0 * 1024.0,
        shown: |kibibytes| format!("{:.1}", kibibytes / 1024.0),
    },
    Figure {
        name: "file descriptors",
        of: |sample| sample.descriptors,
        slack: 4.0,
        shown: whole,
    },
    Figure {
        name: "threads",
        of: |sample| sample.threads,
        slack: 2.0,
        shown: whole,
    },
    Figure {
        name: "connections to the database",
        of: |sample| sample.connections,
        slack: 2.0,
        shown: whole,
    },
];

/// The middle of the first and of the last third.
fn thirds(samples: &[Sample], of: fn(&Sample) -> u64) -> (f64, f64) {
    let third = (samples.len() / 3).max(1);
    let middle = |part: &[Sample]| Spread::of(part.iter().map(|sample| real(of(sample)))).median;
    let first = samples.get(..third).unwrap_or_default();
    let last = samples
        .get(samples.len().saturating_sub(third)..)
        .unwrap_or_default();
    (middle(first), middle(last))
}

/// The report in Markdown.
pub(super) fn render(findings: &Findings) -> anyhow::Result<String> {
    let Findings {
        machine,
        date,
        options,
        counted,
        samples,
    } = findings;
    ensure!(
        samples.len() >= 6,
        "too few samples to compare: take more minutes"
    );
    let rate = real(counted.latency.count()) / counted.elapsed.as_secs_f64();
    let mut text = format!(
        "Measured on {date}: {} minutes of mixed load on {} connections, {} requests a second, p99 {} ms, none failed. A sample \
         every {} s.\n\n",
        options.minutes,
        options.stand.concurrency,
        whole(rate),
        milliseconds(counted.latency.quantile(0.99)),
        options.interval().as_secs(),
    );
    for (name, value) in &machine.facts {
        writeln!(text, "- {name}: {value}")?;
    }
    text.push_str("\n| | first third | last third | |\n|---|--:|--:|---|\n");
    for figure in &FIGURES {
        let (first, last) = thirds(samples, figure.of);
        let verdict = if last <= first * GROWTH + figure.slack {
            "flat"
        } else {
            "**grows**"
        };
        let shown = figure.shown;
        writeln!(
            text,
            "| {} | {} | {} | {verdict} |",
            figure.name,
            shown(first),
            shown(last)
        )?;
    }
    text.push_str(
        "\n| after s | memory, MiB | descriptors | threads | connections |\n|--:|--:|--:|--:|--:|\n",
    );
    for sample in samples.iter().step_by(samples.len().div_ceil(ROWS)) {
        writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            sample.after.as_secs(),
            mebibytes(sample.resident),
            sample.descriptors,
            sample.threads,
            sample.connections,
        )?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn thirds_are_compared_by_their_middle() {
        let sample = |n: u64| Sample {
            after: Duration::from_secs(n),
            resident: n,
            descriptors: 7,
            threads: 1,
            connections: 1,
        };
        let samples: Vec<_> = (1..=9).map(sample).collect();
        assert_eq!(thirds(&samples, |sample| sample.resident), (2.0, 8.0));
        assert_eq!(thirds(&samples, |sample| sample.descriptors), (7.0, 7.0));
    }
}
