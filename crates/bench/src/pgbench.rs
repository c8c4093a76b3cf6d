//! Runs `pgbench`, for the cost of PostgreSQL with its own client alone.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tokio::process::Command;

use crate::cluster::Cluster;
use crate::load::{Latency, no_latencies, record};

/// The fraction of transactions whose latencies are logged.
const SAMPLED: &str = "0.02";

/// When a run ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    AfterSeconds(u64),
    /// In total, split between the clients.
    AfterTransactions(u64),
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) transactions: u64,
    /// Transactions a second, without the time to connect.
    pub(crate) rate: f64,
    pub(crate) latencies: Latency,
}

/// Runs a script of one transaction with `clients` clients. The script's variable `first` is 1 until the script sets it: a client
/// keeps its variables from one transaction to the next.
pub(crate) async fn run(
    cluster: &Cluster,
    database: &str,
    script: &str,
    clients: u16,
    end: End,
) -> anyhow::Result<Run> {
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let file = folder.path().join("script.sql");
    fs::write(&file, script)?;
    let end = match end {
        End::AfterSeconds(seconds) => format!("--time={seconds}"),
        End::AfterTransactions(count) => format!("--transactions={}", count.div_ceil(clients.into())),
    };
    let output = Command::new(cluster.client_program("pgbench"))
        .args([
            "--no-vacuum",
            "--protocol=prepared",
            "--define=first=1",
            "--jobs=2",
            "--log",
        ])
        .args(["--sampling-rate", SAMPLED, "--client", &clients.to_string(), &end])
        .arg("--log-prefix")
        .arg(folder.path().join("log"))
        .arg("--file")
        .arg(&file)
        .arg(cluster.url(database))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .context("pgbench does not start; it comes with PostgreSQL's server or contrib package")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "pgbench failed: {errors}");
    let report = String::from_utf8_lossy(&output.stdout);
    let (transactions, rate) =
        parse(&report).with_context(|| format!("pgbench's report is not as expected: {report}"))?;
    Ok(Run {
        transactions,
        rate,
        latencies: read_logs(folder.path())?,
    })
}

/// The number of transactions, and their rate.
fn parse(report: &str) -> Option<(u64, f64)> {
    let after = |name: &str| report.lines().find_map(|line| line.trim().strip_prefix(name));
    let transactions = after("number of transactions actually processed: ")?;
    let rate = after("tps = ")?.split(' ').next()?;
    Some((
        transactions.split('/').next()?.trim().parse().ok()?,
        rate.parse().ok()?,
    ))
}

/// The third field of each line is a latency in microseconds (pgbench documentation, "Per-Transaction Logging").
fn read_logs(folder: &Path) -> anyhow::Result<Latency> {
    let mut latencies = no_latencies()?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with("log") {
            continue;
        }
        for line in fs::read_to_string(entry.path())?.lines() {
            let microseconds = line.split(' ').nth(2).and_then(|field| field.parse().ok());
            let microseconds = microseconds.context("pgbench's log is not as expected")?;
            record(&mut latencies, Duration::from_micros(microseconds));
        }
    }
    Ok(latencies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_and_logs_are_read() {
        let report = "transaction type: x\nnumber of transactions actually processed: 73210/73210\n\
                      number of failed transactions: 0 (0.000%)\ntps = 73210.123 (without initial connection time)\n";
        assert_eq!(parse(report), Some((73_210, 73_210.123)));
        assert_eq!(parse("nothing"), None);
        let folder = tempfile::tempdir().unwrap();
        fs::write(
            folder.path().join("log.1"),
            "0 1 500 0 1700000000 1\n1 1 700 0 1 2\n",
        )
        .unwrap();
        fs::write(folder.path().join("log.1.1"), "2 1 900 0 1700000000 3\n").unwrap();
        fs::write(folder.path().join("script.sql"), "select 1;\n").unwrap();
        assert_eq!(read_logs(folder.path()).unwrap().len(), 3);
    }
}
