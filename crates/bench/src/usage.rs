//! CPU time of processes, from `/proc`.

use std::time::Duration;

use anyhow::Context as _;
use procfs::process::{Process, Stat, all_processes};

/// CPU time of one process.
pub(crate) fn of_process(pid: u32) -> anyhow::Result<Duration> {
    let stat = stat(pid)?;
    Ok(ticks(stat.utime + stat.stime))
}

/// CPU time of PostgreSQL: the postmaster, its children, and its children that have exited.
pub(crate) fn of_postgres(postmaster: u32) -> anyhow::Result<Duration> {
    loop {
        let before = stat(postmaster)?;
        let children: u64 = children(postmaster)?.map(|child| child.utime + child.stime).sum();
        // A child that exited in between would be in neither sum, or in both: then read again.
        if ended(&stat(postmaster)?) == ended(&before) {
            return Ok(ticks(before.utime + before.stime + ended(&before) + children));
        }
    }
}

/// CPU time of this process's children that have exited.
pub(crate) fn of_ended_children() -> anyhow::Result<Duration> {
    Ok(ticks(ended(&stat(std::process::id())?)))
}

fn stat(pid: u32) -> anyhow::Result<Stat> {
    let process = Process::new(i32::try_from(pid)?).with_context(|| format!("process {pid} has ended"))?;
    Ok(process.stat()?)
}

/// Ticks of children that were waited for. The kernel's type is signed; they are never negative.
fn ended(stat: &Stat) -> u64 {
    u64::try_from(stat.cutime + stat.cstime).unwrap_or_default()
}

fn children(pid: u32) -> anyhow::Result<impl Iterator<Item = Stat>> {
    let parent = i32::try_from(pid)?;
    // A process that exits meanwhile is counted by its parent.
    let stats = all_processes()?.filter_map(|process| process.ok()?.stat().ok());
    Ok(stats.filter(move |stat| stat.ppid == parent))
}

fn ticks(count: u64) -> Duration {
    Duration::from_micros(count * 1_000_000 / procfs::ticks_per_second())
}
