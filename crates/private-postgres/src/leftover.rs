//! Stops processes that an earlier owner left running in a data folder.
//!
//! A process gets a signal only if it is a PostgreSQL process and its working folder is this data folder. A
//! zombie has no working folder, so it counts as dead.

use std::fs::{self, File};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::Error;
use crate::paths::{self, ClusterPaths};

/// The content of `postmaster.pid` (PostgreSQL source, `miscadmin.h`: `LOCK_FILE_LINE_…`).
pub(crate) struct PidFile {
    pub(crate) server: Pid,
    pub(crate) is_ready: bool,
}

impl PidFile {
    pub(crate) fn read(data: &Path) -> Option<Self> {
        // It has the path of the folder.
        let bytes = fs::read(data.join("postmaster.pid")).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let server = text.lines().next()?.trim().parse().ok().and_then(Pid::from_raw)?;
        let is_ready = text.lines().nth(7).is_some_and(|state| state.trim() == "ready");
        Some(Self { server, is_ready })
    }
}

/// Waits until the earlier owner's processes have ended, and signals them to end. Returns the lock file
/// `life`, locked: proof that none is alive. The next server inherits it.
pub(crate) fn end(paths: &ClusterPaths) -> Result<File, Error> {
    let (path, data) = (paths.life(), paths.data());
    let life = paths::open_lock(&path)?;
    let begun = Instant::now();
    while !paths::try_lock(&life, &path)? {
        let left = processes_in(&data);
        let server = PidFile::read(&data)
            .map(|file| file.server)
            .filter(|pid| left.contains(pid));
        // Fast shutdown, then immediate shutdown, then SIGKILL. Backends without a server get no fast
        // shutdown.
        let (signal, to) = match (begun.elapsed().as_secs(), server) {
            (0..10, Some(server)) => (Signal::INT, vec![server]),
            (0..13, _) => (Signal::QUIT, left),
            (13..16, _) => (Signal::KILL, left),
            _ => return Err(Error::Leftover(paths.folder.clone())),
        };
        for pid in to {
            // The process may have ended meanwhile.
            let _ = kill_process(pid, signal);
        }
        thread::sleep(Duration::from_millis(5));
    }
    paths::remove(&data.join("postmaster.pid"))?;
    Ok(life)
}

/// The PostgreSQL processes, servers and backends, whose working folder is `data`.
fn processes_in(data: &Path) -> Vec<Pid> {
    let works_here = |process: &Path| {
        fs::read_link(process.join("cwd")).is_ok_and(|folder| folder == data)
            && fs::read_to_string(process.join("comm")).is_ok_and(|name| name.contains("postgres"))
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter(|entry| works_here(&entry.path()))
        .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}
