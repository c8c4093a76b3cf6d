//! Finding and ending what an earlier owner left running in a data folder.
//!
//! A process is only ever touched when it is a PostgreSQL one that works in this very data folder: its working folder on
//! Linux, its command line elsewhere. Zombies have neither, so they count as dead.

use std::fs::{self, File};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::place::Place;
use crate::{Error, files, lock};

/// What a server writes into `postmaster.pid` (PostgreSQL source, `miscadmin.h`: `LOCK_FILE_LINE_…`).
pub(crate) struct PidFile {
    pub(crate) server: Pid,
    pub(crate) ready: bool,
}

impl PidFile {
    pub(crate) fn read(data: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(data.join("postmaster.pid")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let server = text.lines().next()?.trim().parse().ok().and_then(Pid::from_raw)?;
        let ready = text.lines().nth(7).is_some_and(|state| state.trim() == "ready");
        Some(Self { server, ready })
    }
}

/// Whether a server that accepts connections works in `data`.
pub(crate) fn serves(data: &Path) -> bool {
    PidFile::read(data).is_some_and(|file| file.ready && processes::works_in(file.server, data))
}

/// Waits for all that an earlier owner left, ending it step by step, and takes the lock that proves there is nothing:
/// the next server inherits it.
pub(crate) fn end(place: &Place) -> Result<File, Error> {
    let (path, data) = (place.life(), place.data());
    let life = lock::open_lock(&path)?;
    let mut locked = false;
    for step in STEPS {
        let begun = Instant::now();
        let mut patience = step.patience;
        while begun.elapsed() < patience {
            locked = locked || lock::try_lock(&life, &path)?;
            let left = processes::all_in(&data);
            if locked && left.is_empty() {
                files::remove(&data.join("postmaster.pid"))?;
                return Ok(life);
            }
            let server = PidFile::read(&data)
                .map(|file| file.server)
                .filter(|pid| left.contains(pid));
            if server.is_none() && !left.is_empty() {
                // Backends end by themselves when their server has died.
                patience = patience.min(BACKENDS);
            }
            let signalled = left.iter().filter(|pid| step.everybody || server == Some(**pid));
            for pid in signalled {
                // It may have ended by itself; what cannot be ended shows in the end.
                let _ = kill_process(*pid, step.signal);
            }
            thread::sleep(PAUSE);
        }
    }
    let process = processes::all_in(&data)
        .first()
        .map(|pid| pid.as_raw_nonzero().get());
    let process = process.and_then(|pid| u32::try_from(pid).ok());
    Err(Error::Leftover {
        folder: place.folder().to_owned(),
        process,
    })
}

struct Step {
    signal: Signal,
    everybody: bool,
    patience: Duration,
}

const BACKENDS: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(5);

/// Fast shutdown, immediate shutdown, the end.
const STEPS: [Step; 3] = [
    Step {
        signal: Signal::INT,
        everybody: false,
        patience: Duration::from_secs(10),
    },
    Step {
        signal: Signal::QUIT,
        everybody: true,
        patience: Duration::from_secs(3),
    },
    Step {
        signal: Signal::KILL,
        everybody: true,
        patience: Duration::from_secs(3),
    },
];

#[cfg(target_os = "linux")]
mod processes {
    use std::fs;
    use std::path::Path;

    use rustix::process::Pid;

    /// The PostgreSQL processes, servers and backends, that work in `data`.
    pub(super) fn all_in(data: &Path) -> Vec<Pid> {
        let Ok(entries) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        entries
            .flatten()
            .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
            .filter(|pid| works_in(*pid, data))
            .collect()
    }

    /// Whether the process is a PostgreSQL one whose working folder is `data`.
    pub(super) fn works_in(pid: Pid, data: &Path) -> bool {
        let process = Path::new("/proc").join(pid.as_raw_nonzero().to_string());
        fs::read_link(process.join("cwd")).is_ok_and(|folder| folder == data)
            && fs::read_to_string(process.join("comm"))
                .is_ok_and(|name| name.contains("postgres") || name.contains("postmaster"))
    }
}

#[cfg(not(target_os = "linux"))]
mod processes {
    use std::path::Path;
    use std::process::Command;

    use rustix::process::Pid;

    use super::PidFile;

    /// The server that works in `data`; backends, which cannot be told, end with it.
    pub(super) fn all_in(data: &Path) -> Vec<Pid> {
        let server = PidFile::read(data).map(|file| file.server);
        server.filter(|pid| works_in(*pid, data)).into_iter().collect()
    }

    /// Whether the process is alive and was started with `-D data`.
    pub(super) fn works_in(pid: Pid, data: &Path) -> bool {
        let pid = pid.as_raw_nonzero().to_string();
        let output = Command::new("ps")
            .args(["-ww", "-o", "stat=,command=", "-p", &pid])
            .output();
        let Ok(output) = output else { return false };
        let line = String::from_utf8_lossy(&output.stdout);
        let line = line.trim_start();
        !line.starts_with('Z')
            && line.contains("postgres")
            && line.contains(&format!("-D {} ", data.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "4711\n/data\n1700000000\n5432\n/socket\n\n  123 456\nready   \n";

    #[test]
    fn reads_pid_files() {
        let file = PidFile::parse(FILE).unwrap();
        assert_eq!(file.server.as_raw_nonzero().get(), 4711);
        assert!(file.ready);
        assert!(
            !PidFile::parse(&FILE.replace("ready   ", "starting"))
                .unwrap()
                .ready
        );
        assert!(!PidFile::parse("4711\n").unwrap().ready);
        assert!(PidFile::parse("").is_none());
        assert!(PidFile::parse("0\n").is_none());
    }

    #[test]
    fn a_foreign_process_is_never_a_server_of_ours() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!processes::works_in(rustix::process::getpid(), folder.path()));
        assert!(processes::all_in(folder.path()).is_empty());
        // A program of another name may well work in the folder: somebody's shell.
        let shell = std::process::Command::new("sleep")
            .arg("60")
            .current_dir(folder.path())
            .spawn();
        let mut shell = shell.unwrap();
        let data = fs::canonicalize(folder.path()).unwrap();
        assert!(!processes::works_in(Pid::from_child(&shell), &data));
        shell.kill().unwrap();
        shell.wait().unwrap();
    }
}
