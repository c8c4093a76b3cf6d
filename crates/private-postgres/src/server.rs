//! Making a cluster's data, and running its server under a guard that ends it with its owner.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::leftover::{self, PidFile};
use crate::place::{self, Account, Place};
use crate::{Binaries, Connection, Error};

const GUARD: &str = include_str!("guard.sh");
const POLL: Duration = Duration::from_millis(2);
/// How long a server may take to become ready, crash recovery included.
const START_TIMEOUT: Duration = Duration::from_mins(1);
/// A log longer than this is begun anew at a start, in bytes.
const LONGEST_LOG: u64 = 8 * 1024 * 1024;

/// A running server with its guard. The owner is gone when this is dropped.
pub(crate) struct Server {
    guard: Child,
    owner: Option<ChildStdin>,
    process: Pid,
}

impl Server {
    /// Ends what an earlier owner left, and starts a server with these settings. Its data are there.
    pub(crate) fn start(
        place: &Place,
        binaries: &Binaries,
        settings: &[String],
        throw_away: bool,
    ) -> Result<Self, Error> {
        let life = leftover::end(place)?;
        place.clear_socket()?;
        let log = place.open_log(LONGEST_LOG)?;
        let log_start = log.metadata().map_err(Error::at(&place.log()))?.len();
        let shell = PathBuf::from("/bin/sh");
        let mut command = place.account.command(&shell);
        command.args(["-c", GUARD, "postgres-guard"]);
        // The end of throw-away data need not be orderly.
        if throw_away {
            command.arg("QUIT").arg(place.root());
        } else {
            command.args(["INT", ""]);
        }
        command
            .arg(binaries.program("postgres"))
            .arg("-D")
            .arg(place.data());
        command.args(settings.iter().flat_map(|setting| ["-c", setting]));
        command.stdin(Stdio::piped()).stdout(life).stderr(log);
        let mut guard = command.spawn().map_err(|source| Error::Run {
            program: shell,
            source,
        })?;
        let mut owner = guard.stdin.take();
        let begun = Instant::now();
        loop {
            let is_running = is_running(&mut guard);
            let file = PidFile::read(&place.data());
            if !is_running {
                return Err(Error::NotStarted {
                    free: free(&place.data()),
                    log: tail(&place.log(), log_start),
                    log_file: place.log(),
                });
            }
            if let Some(PidFile {
                server: process,
                is_ready: true,
            }) = file
            {
                return Ok(Self {
                    guard,
                    owner,
                    process,
                });
            }
            if begun.elapsed() > START_TIMEOUT {
                drop(owner.take());
                end(&mut guard, file.map(|file| file.server));
                return Err(Error::NotReady {
                    waited: START_TIMEOUT,
                    log: tail(&place.log(), log_start),
                    log_file: place.log(),
                });
            }
            thread::sleep(POLL);
        }
    }

    pub(crate) fn process(&self) -> Pid {
        self.process
    }

    /// Whether the server runs, as the guard ends with it.
    pub(crate) fn is_running(&mut self) -> bool {
        is_running(&mut self.guard)
    }

    /// Ceases to be the owner of a dead server, so that its guard does nothing later on.
    pub(crate) fn release(&mut self) {
        drop(self.owner.take());
    }

    /// Ends the server, and makes sure that nothing of it lives, even if its guard was killed.
    pub(crate) fn stop(mut self, place: &Place) -> Result<(), Error> {
        self.release();
        end(&mut self.guard, Some(self.process));
        leftover::end(place).map(drop)
    }
}

fn is_running(guard: &mut Child) -> bool {
    matches!(guard.try_wait(), Ok(None))
}

/// Waits for a guard whose owner has gone, and ends it and its server where that takes too long.
fn end(guard: &mut Child, server: Option<Pid>) {
    let mut ends_within = |patience: Duration| {
        let begun = Instant::now();
        while is_running(guard) {
            if begun.elapsed() > patience {
                return false;
            }
            thread::sleep(POLL);
        }
        true
    };
    if ends_within(Duration::from_secs(10)) {
        return;
    }
    // Signals to a process that has ended meanwhile fail, as they should.
    let _ = server.map(|server| kill_process(server, Signal::QUIT));
    if !ends_within(Duration::from_secs(5)) {
        let _ = kill_process_group(Pid::from_child(guard), Signal::KILL);
        let _ = guard.wait();
    }
}

/// The major version that has made the data, if they are whole.
pub(crate) fn version_of(data: &Path) -> Option<u32> {
    data.join("global/pg_control").is_file().then_some(())?;
    fs::read_to_string(data.join("PG_VERSION"))
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// Makes the data unless they are there: anew, or as a copy of a running cluster and its standby. Half-made ones, of an `initdb` that was killed,
/// are made again: whole ones get their name last.
pub(crate) fn ensure_data(
    place: &Place,
    binaries: &Binaries,
    primary: Option<&Connection>,
) -> Result<(), Error> {
    let life = leftover::end(place)?;
    let data = place.data();
    if let Some(made_by) = version_of(&data) {
        if made_by == binaries.version() {
            return Ok(());
        }
        return Err(Error::OtherVersion {
            folder: place.folder().to_owned(),
            made_by,
            found: binaries.version(),
        });
    }
    let unfinished = place.root().join("data.new");
    place::remove(&unfinished)?;
    if data.exists() {
        tracing::warn!(folder = %data.display(), "these data are not whole: making them again");
        place::remove(&data)?;
    }
    let program = binaries.program(if primary.is_some() {
        "pg_basebackup"
    } else {
        "initdb"
    });
    let mut command = place.account.command(&program);
    if let Some(primary) = primary {
        command.args([
            "--write-recovery-conf",
            "--wal-method=stream",
            "--checkpoint=fast",
            "--no-password",
        ]);
        command.args(["--username", primary.user()]);
        command.arg("--host").arg(primary.socket_folder());
    } else {
        command.args([
            "--username=postgres",
            "--encoding=UTF8",
            "--auth-local=trust",
            "--auth-host=reject",
        ]);
        // Letters and their case by Unicode, order by code point.
        command.args(["--no-instructions", "--locale=C.UTF-8", "--lc-collate=C"]);
    }
    command.args(["--no-sync", "--pgdata"]).arg(&unfinished);
    // It reads nothing. If this process is killed, the next start waits for it, since it holds the lock.
    run(command.stdin(life))?;
    fs::rename(&unfinished, &data).map_err(Error::at(&data))
}

/// Makes a standby a primary.
pub(crate) fn promote(account: &Account, binaries: &Binaries, data: &Path) -> Result<(), Error> {
    run(account
        .command(&binaries.program("pg_ctl"))
        .args(["promote", "-D"])
        .arg(data))
}

fn run(command: &mut Command) -> Result<(), Error> {
    let program = PathBuf::from(command.get_program());
    let output = command.output().map_err(|source| Error::Run {
        program: program.clone(),
        source,
    })?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<_> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    Err(Error::Program {
        program,
        output: lines.join("; "),
    })
}

/// How many bytes are free on a folder's disk for everybody, where that can be told.
fn free(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// The last lines of what was written into `file` from the offset `start` on. Without a readable log, nothing.
fn tail(file: &Path, start: u64) -> String {
    const LINES: usize = 12;
    const BYTES: u64 = 8 * 1024;
    let read = || {
        let mut file = File::open(file)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(start.max(length.saturating_sub(BYTES))))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map(|_| bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.len().saturating_sub(LINES);
    lines.get(last..).unwrap_or_default().join("\n")
}
