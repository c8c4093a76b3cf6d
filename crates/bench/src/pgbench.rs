//! `pgbench` over the same tables: what PostgreSQL can do with nothing but its own client.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tokio::process::Command;

use crate::cluster::Cluster;
use crate::load::Latency;

/// The share of transactions whose latency is logged.
const SAMPLED: &str = "0.02";
/// pgbench's threads, which share out its clients.
const THREADS: usize = 2;

/// A script of one transaction, over a database.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    /// The database.
    pub(crate) database: String,
    /// pgbench's commands and the statements.
    pub(crate) text: String,
}

impl Script {
    /// How many statements a transaction has, each on a line of its own; each is a round trip. What stands in `\if … \endif`
    /// is not the ordinary case.
    pub(crate) fn statements(&self) -> usize {
        let ends = |line: &&str| line.ends_with(';') || line.ends_with("\\gset");
        let count = |text: &str| text.lines().filter(ends).count();
        let within = self
            .text
            .split_once("\\if")
            .and_then(|(_, rest)| rest.split_once("\\endif"));
        count(&self.text) - within.map_or(0, |(within, _)| count(within))
    }
}

/// What a run of pgbench told.
#[derive(Debug)]
pub(crate) struct Run {
    /// Transactions.
    pub(crate) transactions: u64,
    /// Transactions a second, without the time to connect.
    pub(crate) rate: f64,
    /// Latencies of a sample of them.
    pub(crate) latency: Latency,
}

/// Runs a script with so many clients for so long, at whole seconds. Its variable `first` is 1 until the script sets it: each
/// client's variables last from one transaction to the next.
pub(crate) async fn run(
    cluster: &Cluster,
    script: &Script,
    clients: usize,
    duration: Duration,
) -> anyhow::Result<Run> {
    let seconds = duration.as_secs().max(1).to_string();
    run_until(cluster, script, clients, ["--time", &seconds]).await
}

/// The same until each client has made so many transactions.
pub(crate) async fn run_each(
    cluster: &Cluster,
    script: &Script,
    clients: usize,
    transactions: u64,
) -> anyhow::Result<Run> {
    let transactions = transactions.max(1).to_string();
    run_until(cluster, script, clients, ["--transactions", &transactions]).await
}

async fn run_until(
    cluster: &Cluster,
    script: &Script,
    clients: usize,
    end: [&str; 2],
) -> anyhow::Result<Run> {
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let file = folder.path().join("script.sql");
    fs::write(&file, &script.text)?;
    let output = Command::new(cluster.program("pgbench"))
        .args([
            "--no-vacuum",
            "--protocol=prepared",
            "--log",
            "--sampling-rate",
            SAMPLED,
            "--define=first=1",
        ])
        .arg("--log-prefix")
        .arg(folder.path().join("log"))
        .args(["--client", &clients.to_string(), "--jobs", &THREADS.to_string()])
        .args(end)
        .arg("--file")
        .arg(&file)
        .args(cluster.client_arguments())
        .arg(&script.database)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .context("pgbench does not start; it comes with PostgreSQL's server or contrib package")?;
    let report = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "pgbench failed: {errors}");
    let (transactions, rate) =
        parse(&report).with_context(|| format!("pgbench reports other than expected: {report}"))?;
    let latency = read_logs(folder.path())?;
    Ok(Run {
        transactions,
        rate,
        latency,
    })
}

/// The number of transactions and their rate in pgbench's report.
fn parse(report: &str) -> Option<(u64, f64)> {
    let after = |name: &str| report.lines().find_map(|line| line.trim().strip_prefix(name));
    let transactions = after("number of transactions actually processed: ")?;
    let rate = after("tps = ")?.split(' ').next()?;
    Some((
        transactions.split('/').next()?.trim().parse().ok()?,
        rate.parse().ok()?,
    ))
}

/// Reads the per-transaction logs of all threads (pgbench documentation, "Per-Transaction Logging").
fn read_logs(folder: &Path) -> anyhow::Result<Latency> {
    let mut latency = Latency::new()?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with("log") {
            continue;
        }
        for line in fs::read_to_string(entry.path())?.lines() {
            let microseconds = line.split(' ').nth(2).and_then(|field| field.parse().ok());
            let microseconds = microseconds.context("pgbench's log is other than expected")?;
            latency.record(Duration::from_micros(microseconds));
        }
    }
    Ok(latency.sampled())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_report() {
        let report = "transaction type: x\nnumber of transactions actually processed: 73210\n\
                      number of failed transactions: 0 (0.000%)\nlatency average = 0.437 ms\n\
                      initial connection time = 60.1 ms\ntps = 73210.123 (without initial connection time)\n";
        assert_eq!(parse(report), Some((73_210, 73_210.123)));
        assert_eq!(parse("nothing"), None);
    }

    #[test]
    fn reads_all_threads_logs() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(
            folder.path().join("log.1"),
            "0 1 500 0 1700000000 1\n1 1 700 0 1700000000 2\n",
        )
        .unwrap();
        fs::write(folder.path().join("log.1.1"), "2 1 900 0 1700000000 3\n").unwrap();
        fs::write(folder.path().join("script.sql"), "select 1;\n").unwrap();
        let latency = read_logs(folder.path()).unwrap();
        assert_eq!((latency.count(), latency.longest()), (3, None));
    }
}
