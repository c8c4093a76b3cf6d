//! Creates a cluster's data and runs its server under a guard, which stops the server when the owner ends.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use crate::leftover::{self, PidFile};
use crate::paths::{self, Account, ClusterPaths};
use crate::{Binaries, Connection, Error};

const GUARD: &str = include_str!("guard.sh");
const POLL: Duration = Duration::from_millis(2);
/// How long a server may take to become ready, crash recovery included.
const START_TIMEOUT: Duration = Duration::from_mins(1);
/// A log that is longer than this, in bytes, is replaced at a start.
const LONGEST_LOG: u64 = 8 * 1024 * 1024;

/// A running server with its guard. Dropping it closes the owner's pipe.
pub(crate) struct Server {
    guard: Child,
    owner: Option<ChildStdin>,
    pub(crate) process: Pid,
}

impl Server {
    /// Stops the processes of an earlier owner and starts a server with these settings. The data must exist.
    pub(crate) fn start(
        paths: &ClusterPaths,
        binaries: &Binaries,
        settings: &[String],
        delete_at_end: bool,
    ) -> Result<Self, Error> {
        let life = leftover::end(paths)?;
        paths.clear_socket()?;
        let log = paths.open_log(LONGEST_LOG)?;
        let log_start = log.metadata().map_err(Error::at(&paths.log()))?.len();
        let shell = PathBuf::from("/bin/sh");
        let mut command = paths.account.command(&shell);
        command.args(["-c", GUARD, "postgres-guard"]);
        // Throw-away data need no orderly shutdown.
        if delete_at_end {
            command.arg("QUIT").arg(&paths.root);
        } else {
            command.args(["INT", ""]);
        }
        command
            .arg(binaries.program("postgres"))
            .arg("-D")
            .arg(paths.data());
        command.args(settings.iter().flat_map(|setting| ["-c", setting]));
        command.stdin(Stdio::piped()).stdout(life).stderr(log);
        let mut guard = command.spawn().map_err(|source| Error::Run {
            program: shell,
            source,
        })?;
        let owner = guard.stdin.take();
        let begun = Instant::now();
        loop {
            if !is_running(&mut guard) {
                return Err(Error::NotStarted {
                    log: tail(&paths.log(), log_start),
                    log_file: paths.log(),
                });
            }
            if let Some(PidFile {
                server: process,
                is_ready: true,
            }) = PidFile::read(&paths.data())
            {
                return Ok(Self {
                    guard,
                    owner,
                    process,
                });
            }
            if begun.elapsed() > START_TIMEOUT {
                // The command still has the lock that the server inherited.
                drop((owner, command));
                end(&mut guard, paths)?;
                return Err(Error::NotReady {
                    waited: START_TIMEOUT,
                    log: tail(&paths.log(), log_start),
                    log_file: paths.log(),
                });
            }
            thread::sleep(POLL);
        }
    }

    /// Whether the server runs: the guard exits with it.
    pub(crate) fn is_running(&mut self) -> bool {
        is_running(&mut self.guard)
    }

    /// Closes the owner's pipe of a dead server, so that its guard takes no action later.
    pub(crate) fn release(&mut self) {
        drop(self.owner.take());
    }

    /// Stops the server and makes sure that none of its processes is alive, even if its guard was killed.
    pub(crate) fn stop(mut self, paths: &ClusterPaths) -> Result<(), Error> {
        self.release();
        end(&mut self.guard, paths)
    }
}

fn is_running(guard: &mut Child) -> bool {
    matches!(guard.try_wait(), Ok(None))
}

/// Ends the processes of a guard whose pipe is closed, and takes its exit status: no zombie remains.
fn end(guard: &mut Child, paths: &ClusterPaths) -> Result<(), Error> {
    drop(leftover::end(paths)?);
    let _ = guard.wait();
    Ok(())
}

/// The major version that made the data; `None` if they are missing or incomplete.
pub(crate) fn version_of(data: &Path) -> Option<u32> {
    data.join("global/pg_control").is_file().then_some(())?;
    fs::read_to_string(data.join("PG_VERSION"))
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// Creates the data unless they exist: with `initdb`, or as a standby's copy of a running cluster. Data get
/// their final name once complete; incomplete data of an interrupted run are created again.
pub(crate) fn ensure_data(
    paths: &ClusterPaths,
    binaries: &Binaries,
    primary: Option<&Connection>,
) -> Result<(), Error> {
    let life = leftover::end(paths)?;
    let data = paths.data();
    if let Some(made_by) = version_of(&data) {
        if made_by == binaries.version() {
            return Ok(());
        }
        return Err(Error::OtherVersion {
            folder: paths.folder.clone(),
            made_by,
            found: binaries.version(),
        });
    }
    let unfinished = paths.root.join("data.new");
    paths::remove(&unfinished)?;
    if data.exists() {
        tracing::warn!(folder = %data.display(), "the data directory is incomplete: recreating it");
        paths::remove(&data)?;
    }
    let program = binaries.program(if primary.is_some() {
        "pg_basebackup"
    } else {
        "initdb"
    });
    let mut command = paths.account.command(&program);
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
        // Unicode character classes and case, collation by code point.
        command.args(["--no-instructions", "--locale=C.UTF-8", "--lc-collate=C"]);
    }
    command.args(["--no-sync", "--pgdata"]).arg(&unfinished);
    // The program reads nothing from it. If this process is killed, the program still holds the lock and the
    // next start waits for it.
    run(command.stdin(life))?;
    fs::rename(&unfinished, &data).map_err(Error::at(&data))
}

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

/// The last lines of `file` after the offset `start`. Empty if the log is unreadable.
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
