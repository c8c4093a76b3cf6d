//! Runs `pgbench`, for the cost of PostgreSQL with its own client alone.

use std::process::Stdio;

use anyhow::{Context as _, ensure};
use tempfile::NamedTempFile;
use tokio::process::Command;

use crate::cluster::Cluster;

/// The result of a run.
pub(crate) struct Run {
    pub(crate) transactions: u64,
    /// Transactions a second, without the time to connect.
    pub(crate) rate: f64,
}

/// Runs a script of one transaction for `seconds` with `clients` clients, whose number is its variable
/// `clients`. Its variable `first` is 1 until the script sets it: a client keeps its variables from one
/// transaction to the next.
pub(crate) async fn run(
    cluster: &Cluster,
    database: &str,
    script: &str,
    clients: u16,
    seconds: u64,
) -> anyhow::Result<Run> {
    let file = NamedTempFile::new().context("no temporary file")?;
    std::fs::write(&file, script)?;
    let output = Command::new(cluster.client_program("pgbench"))
        .args([
            "--no-vacuum",
            "--protocol=prepared",
            "--define=first=1",
            "--jobs=2",
        ])
        .arg(format!("--time={seconds}"))
        .arg(format!("--client={clients}"))
        .arg(format!("--define=clients={clients}"))
        .arg("--file")
        .arg(file.path())
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
    Ok(Run { transactions, rate })
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
