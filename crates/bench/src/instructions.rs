//! Counts the instructions of hot paths. The counts hardly vary, so they show changes that timing noise
//! hides, on any machine.
//!
//! Valgrind runs the example `paths` with a smaller and a larger number of iterations. The difference is the
//! path's cost.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
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
/// From a length that depends on the processor on, the C library copies and fills by one instruction, which counts for
/// each byte. Here it does so in loops.
const LOOPS: &str = "glibc.cpu.x86_rep_movsb_threshold=100000000:glibc.cpu.x86_rep_stosb_threshold=100000000";
/// The recorded counts.
const RECORDED: &str = "docs/development/instructions.json";
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
        return fs::write(RECORDED, text).context("the counts cannot be recorded");
    }
    let recorded = fs::read_to_string(RECORDED).with_context(|| format!("{RECORDED} cannot be read"))?;
    print(&compare(&serde_json::from_str(&recorded)?, &counts))
}

async fn count(example: &Path, path: &str, times: u64) -> anyhow::Result<u64> {
    let output = Command::new("valgrind")
        .env("GLIBC_TUNABLES", LOOPS)
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
