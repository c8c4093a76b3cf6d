//! What hot paths cost, in instructions: exact enough to see a change that a machine's noise would hide, on any machine.
//!
//! The example `paths` runs a path so often, and more often, under valgrind; the difference is what the path costs.

mod recorded;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, ensure};
use tokio::process::Command;

use crate::figures::{real, whole};
use crate::options::InstructionsOptions;
use crate::progress::{Progress, say};
use crate::publish::{self, Report};
use recorded::{Compared, Counts};

/// The report's section in the document.
const SECTION: &str = "instructions";
/// The example's name.
const EXAMPLE: &str = "paths";
/// The paths, with what the report calls them.
const PATHS: [(&str, &str); 9] = [
    ("offer", "`GET /v1/offers/{id}`"),
    ("page", "`GET /v1/offers?limit=50`"),
    ("deep-page", "the same behind a cursor"),
    ("patch", "`PATCH /v1/offers/{id}`, without a key"),
    ("unknown-route", "a path that nothing is at, 404"),
    ("token-key", "a token becomes the key of its row"),
    ("json", "a body of 75 bytes is read strictly"),
    ("signature", "a delivery of 210 bytes is signed"),
    ("seal", "a cursor is sealed and opened"),
];
/// How often a path runs first, and then: what comes once (start, caches) is in both.
const TIMES: [u64; 2] = [50, 250];

/// Counts, compares with what is recorded, and warns of what has become dearer; or records.
pub(crate) async fn run(options: &InstructionsOptions) -> anyhow::Result<()> {
    let example = match &options.example {
        Some(path) => path.clone(),
        None => build().await?,
    };
    let progress = Progress::new();
    let step = progress.counted("counting instructions", u64::try_from(PATHS.len())?);
    let mut counts = Counts::new();
    for (path, title) in PATHS {
        step.now(title);
        counts.insert(path.to_owned(), each(&example, path).await?);
        step.advance(1);
    }
    drop(step);
    if options.record {
        recorded::write(&options.recorded, &counts)?;
        return publish::publish(&options.output, SECTION, &Report::of(table(&counts)?));
    }
    let recorded = recorded::read(&options.recorded)?;
    tell(&recorded::compare(&recorded, &counts));
    Ok(())
}

/// Builds the example beside this executable.
async fn build() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("this executable's place is unknown")?;
    let folder = own.parent().context("this executable lies nowhere")?;
    if let Some(cargo) = std::env::var_os("CARGO") {
        let mut build = Command::new(cargo);
        build.args(["build", "--package", "bench", "--example", EXAMPLE, "--quiet"]);
        if folder.ends_with("release") {
            build.arg("--release");
        }
        let status = build
            .kill_on_drop(true)
            .status()
            .await
            .context("cargo does not start")?;
        ensure!(status.success(), "the example {EXAMPLE} does not build");
    }
    Ok(folder.join("examples").join(EXAMPLE))
}

/// The instructions of one time.
async fn each(example: &Path, path: &str) -> anyhow::Result<u64> {
    let [few, many] = TIMES;
    let (first, second) = tokio::try_join!(counted(example, path, few), counted(example, path, many))?;
    let more = second
        .checked_sub(first)
        .context("more of a path took fewer instructions")?;
    Ok(more / (many - few))
}

async fn counted(example: &Path, path: &str, times: u64) -> anyhow::Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(example)
        .args([path, &times.to_string()])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .context("valgrind does not start; it is a package of its own")?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{path} failed under valgrind: {told}");
    parse(&told).with_context(|| format!("valgrind tells other than expected: {told}"))
}

/// The sum in callgrind's last words (`==17== Collected : 123`).
fn parse(told: &str) -> Option<u64> {
    let (_, rest) = told.rsplit_once("Collected : ")?;
    rest.split_whitespace().next()?.parse().ok()
}

fn title(path: &str) -> &str {
    PATHS
        .iter()
        .find(|(own, _)| *own == path)
        .map_or(path, |(_, title)| title)
}

fn table(counts: &Counts) -> anyhow::Result<String> {
    let mut text = "| path | instructions |\n|---|--:|\n".to_owned();
    for (path, title) in PATHS {
        let count = counts
            .get(path)
            .with_context(|| format!("{path} was not counted"))?;
        writeln!(text, "| {title} | {} |", whole(real(*count)))?;
    }
    Ok(text)
}

/// Tells of every path, and warns of those that changed much.
fn tell(all: &[Compared]) {
    for compared in all {
        say(&compared.told(title(&compared.path)));
    }
    let dearer = all.iter().filter(|compared| compared.dearer()).count();
    if dearer > 0 {
        say(&format!(
            "warning: {dearer} of {} paths cost over a fifth more than recorded; where that is meant, run \
             `cargo run --release -p bench -- instructions --record`",
            all.len()
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callgrind_tells_the_sum() {
        let told = "==17== Callgrind\n==17== \n==17== Events    : Ir\n==17== Collected : 6871234\n==17== \n";
        assert_eq!(parse(told), Some(6_871_234));
        assert_eq!(parse("valgrind: no"), None);
    }

    #[test]
    fn every_path_is_recorded_and_told_in_the_document() {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let recorded = recorded::read(&top.join("docs/performance/instructions.json")).unwrap();
        let names: Vec<_> = recorded.keys().map(String::as_str).collect();
        let mut paths = PATHS.map(|(path, _)| path);
        paths.sort_unstable();
        assert_eq!(names, paths);
        let document = std::fs::read_to_string(top.join("docs/PERFORMANCE.md")).unwrap();
        assert!(
            document.contains(&table(&recorded).unwrap()),
            "run it with --record"
        );
    }
}
