//! The process that runs the server and ends it with its owner: `guard.sh` under `/bin/sh`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::Error;
use crate::account::Account;

const SCRIPT: &str = include_str!("guard.sh");
pub(crate) const POLL: Duration = Duration::from_millis(2);

/// Who decides how long the server runs.
pub(crate) enum Until<'a> {
    /// It ends with this process.
    OwnerEnds,
    /// It goes on after this process, until nobody has held a lease of the pipe `leases` for as long as `grace`.
    LeasesEnd { leases: &'a Path, grace: Duration },
}

/// What a guard needs to run its server.
pub(crate) struct Plan<'a> {
    pub(crate) account: Account,
    pub(crate) until: Until<'a>,
    /// Folder to be removed when the server has ended; its end need not be orderly then.
    pub(crate) remove: Option<&'a Path>,
    /// The locked file that guard and server hold while anything of them lives.
    pub(crate) life: File,
    pub(crate) log: File,
    /// The server's program and arguments.
    pub(crate) server: &'a Command,
}

/// A running guard, whose owner is gone when this is dropped.
pub(crate) struct Guard {
    child: Child,
    owner: Option<ChildStdin>,
}

impl Guard {
    pub(crate) fn spawn(plan: Plan<'_>) -> Result<Self, Error> {
        let shell = PathBuf::from("/bin/sh");
        let (leases, grace) = match plan.until {
            Until::OwnerEnds => (Path::new(""), Duration::ZERO),
            Until::LeasesEnd { leases, grace } => (leases, grace),
        };
        let mut command = plan.account.command(&shell);
        command
            .args(["-c", SCRIPT, "postgres-guard"])
            .arg(if plan.remove.is_some() { "QUIT" } else { "INT" })
            .arg(leases)
            .arg(grace.as_secs_f64().to_string())
            .arg(plan.remove.unwrap_or(Path::new("")))
            .arg(plan.server.get_program())
            .args(plan.server.get_args())
            .stdin(Stdio::piped())
            .stdout(plan.life)
            .stderr(plan.log);
        let mut child = command.spawn().map_err(|source| Error::Run {
            program: shell,
            source,
        })?;
        let owner = child.stdin.take();
        Ok(Self { child, owner })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether the server runs, as the guard ends with it.
    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Ceases to be the owner.
    pub(crate) fn release(&mut self) {
        drop(self.owner.take());
    }

    /// Ends the server, gently first; `server` is its process, where it is known.
    pub(crate) fn stop(mut self, server: Option<Pid>) {
        // Signals to a process that has ended meanwhile fail, as they should.
        self.release();
        if self.ends_within(Duration::from_secs(10)) {
            return;
        }
        if let Some(server) = server {
            let _ = kill_process(server, Signal::QUIT);
        }
        if self.ends_within(Duration::from_secs(5)) {
            return;
        }
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }

    fn ends_within(&mut self, patience: Duration) -> bool {
        let begun = Instant::now();
        while self.is_running() {
            if begun.elapsed() > patience {
                return false;
            }
            thread::sleep(POLL);
        }
        true
    }
}
