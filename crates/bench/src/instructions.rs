//! Counts the instructions of hot paths. The counts hardly vary, so they show changes that timing noise hides, on any machine.
//!
//! Valgrind runs the example `paths` with a smaller and a larger number of iterations. The difference is the path's cost.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, ensure};
use clap::Args;
use tokio::process::Command;

use crate::context::step;
use crate::figures::{real, whole};
use crate::parts::print;
use crate::program::build;

/// Iterations of the two runs. One-time costs, such as the start, are in both and cancel out.
const TIMES: [u64; 2] = [50, 250];
/// Ratio to the recorded count from which a path gets a warning.
const WARNING: f64 = 1.2;
const PATHS: [(&str, &str); 6] = [
    ("offer", "GET /v1/offers/{id}"),
    ("page", "GET /v1/offers?limit=50"),
    ("deep-page", "the same behind a cursor"),
    ("patch", "PATCH /v1/offers/{id}, without a key"),
    ("unknown-route", "an unknown path, 404"),
    ("signature", "a delivery of 210 bytes is signed"),
];

/// Instructions of one iteration of each path.
type Counts = BTreeMap<String, u64>;

/// Whether they are compared or recorded.
#[derive(Debug, Args)]
pub(crate) struct InstructionsOptions {
    /// Record the counts instead of comparing them
    #[arg(long)]
    record: bool,
    /// The recorded counts
    #[arg(long, default_value = "docs/development/instructions.json")]
    recorded: PathBuf,
}

/// Counts all paths and prints the changes against the recorded counts.
pub(crate) async fn run(options: &InstructionsOptions) -> anyhow::Result<()> {
    let example = build(&["--package", "bench", "--example", "paths"])
        .await?
        .join("examples/paths");
    let mut counts = Counts::new();
    for (path, title) in PATHS {
        step(title);
        let [few, many] = TIMES;
        let (first, second) = tokio::try_join!(count(&example, path, few), count(&example, path, many))?;
        let more = second
            .checked_sub(first)
            .context("more runs of a path took fewer instructions")?;
        counts.insert(path.to_owned(), more / (many - few));
    }
    if options.record {
        let text = serde_json::to_string_pretty(&counts)? + "\n";
        return fs::write(&options.recorded, text).context("the counts cannot be recorded");
    }
    print(&compare(&read(&options.recorded)?, &counts))
}

fn read(file: &Path) -> anyhow::Result<Counts> {
    let text = fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    Ok(serde_json::from_str(&text)?)
}

async fn count(example: &Path, path: &str, times: u64) -> anyhow::Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(example)
        .args([path, &times.to_string()])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .context("valgrind does not start; it is a package of its own")?;
    let report = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{path} failed under valgrind: {report}");
    parse(&report).with_context(|| format!("valgrind's report is not as expected: {report}"))
}

/// The total at the end of callgrind's report (`==17== Collected : 123`).
fn parse(report: &str) -> Option<u64> {
    let (_, rest) = report.rsplit_once("Collected : ")?;
    rest.split_whitespace().next()?.parse().ok()
}

/// One line per path, with a warning if it costs much more than recorded.
fn compare(recorded: &Counts, counts: &Counts) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (path, title) in PATHS {
        let Some(count) = counts.get(path) else { continue };
        let now = whole(real(*count));
        lines.push(match recorded.get(path) {
            None => format!("{now:>10}  not recorded         {title}"),
            Some(recorded) => {
                let ratio = real(*count) / real(*recorded);
                let mark = if ratio > WARNING {
                    "  warning: record it if that is meant"
                } else {
                    ""
                };
                format!(
                    "{now:>10}  {:>10}  × {ratio:.3}  {title}{mark}",
                    whole(real(*recorded))
                )
            }
        });
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callgrinds_total_is_parsed() {
        let report = "==17== Callgrind\n==17== Events    : Ir\n==17== Collected : 6871234\n==17== \n";
        assert_eq!(parse(report), Some(6_871_234));
        assert_eq!(parse("valgrind: no"), None);
    }

    #[test]
    fn more_than_a_fifth_more_warns() {
        for (count, warns) in [(1_200, false), (1_201, true)] {
            let counts = |count: u64| [("offer".to_owned(), count)].into();
            let text = compare(&counts(1_000), &counts(count));
            assert!(
                text.contains("× 1.20") && text.contains("warning") == warns,
                "{text}"
            );
        }
    }

    #[test]
    fn every_path_is_recorded() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/development/instructions.json");
        let recorded: Vec<_> = read(&file).unwrap().into_keys().collect();
        let mut paths = PATHS.map(|(path, _)| path);
        paths.sort_unstable();
        assert_eq!(recorded, paths);
    }
}
