//! What the server holds, looked at again and again.

use std::convert::Infallible;
use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::cluster::Cluster;
use crate::memory::Memory;
use crate::stand::Stand;

/// What the server held at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    /// Since the first look.
    pub(super) after: Duration,
    /// Resident memory, in KiB.
    pub(super) resident: u64,
    /// Open file descriptors, sockets among them.
    pub(super) descriptors: u64,
    /// Threads.
    pub(super) threads: u64,
    /// Connections to the database.
    pub(super) connections: u64,
}

/// Looks once in each interval, until it is dropped or cannot look.
pub(super) async fn take(
    cluster: &Cluster,
    stand: &Stand,
    first_after: Duration,
    interval: Duration,
    into: &Mutex<Vec<Sample>>,
) -> anyhow::Result<Infallible> {
    tokio::time::sleep(first_after).await;
    let begun = Instant::now();
    let mut ticks = tokio::time::interval(interval);
    loop {
        ticks.tick().await;
        let sample = look(cluster, stand, begun.elapsed()).await?;
        into.lock().unwrap_or_else(PoisonError::into_inner).push(sample);
        // A line for each request fills a disk.
        stand.server.clear_log()?;
    }
}

async fn look(cluster: &Cluster, stand: &Stand, after: Duration) -> anyhow::Result<Sample> {
    let pid = stand.server.pid;
    let entries = |what: &str| -> anyhow::Result<u64> {
        let folder = format!("/proc/{pid}/{what}");
        let entries = fs::read_dir(&folder).with_context(|| format!("{folder} cannot be read"))?;
        Ok(u64::try_from(entries.count())?)
    };
    let connections = "select count(*) from pg_stat_activity where datname = current_database() \
        and application_name = 'seller-api'";
    let connections = cluster.sql(&stand.database, connections).await?.concat();
    Ok(Sample {
        after,
        resident: Memory::of(pid)?.resident,
        descriptors: entries("fd")?,
        threads: entries("task")?,
        connections: connections.parse()?,
    })
}
