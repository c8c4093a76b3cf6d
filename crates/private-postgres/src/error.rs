//! What can go wrong with a private cluster. Each message is fit to be shown to the person at the terminal.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::MINIMUM_VERSION;

/// Why a cluster could not be found, started or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No server binaries of a sufficient version on this machine.
    #[error("found no PostgreSQL server of version {MINIMUM_VERSION} or newer{}; {install}", found_instead(.older))]
    NotInstalled {
        /// Major versions that were found, all of them too old.
        older: Vec<u32>,
        /// What to do, with the command of this platform.
        install: String,
    },
    /// The folder named for the binaries holds none that can be used.
    #[error("{} holds no PostgreSQL server of version {MINIMUM_VERSION} or newer (`postgres` and `initdb`)", .folder.display())]
    NoBinariesIn {
        /// The folder that was named.
        folder: PathBuf,
    },
    /// The data were made by a major version that is not installed.
    #[error(
        "the data in {} were made by PostgreSQL {made_by}, which is not installed (found {found}): install it or start with fresh data",
        .folder.display()
    )]
    OtherVersion {
        /// The cluster's folder.
        folder: PathBuf,
        /// Major version of the data.
        made_by: u32,
        /// Major version of the binaries at hand.
        found: u32,
    },
    /// Another process owns the cluster in this folder.
    #[error("the folder {} is in use by another process{}", .folder.display(), numbered(.process.as_ref()))]
    InUse {
        /// The cluster's folder.
        folder: PathBuf,
        /// The owner's process id, where it left one.
        process: Option<u32>,
    },
    /// The folder cannot be made, read or written.
    #[error("the folder {} cannot be used: is it writable?", .folder.display())]
    Folder {
        /// The folder or file concerned.
        folder: PathBuf,
        /// The operation's error.
        #[source]
        source: io::Error,
    },
    /// The folder belongs to another account than the one that runs this.
    #[error("the folder {} belongs to another user (id {owner})", .folder.display())]
    OtherOwner {
        /// The folder concerned.
        folder: PathBuf,
        /// Its owner's user id.
        owner: u32,
    },
    /// Run as root, and the machine has neither of the accounts.
    #[error(
        "PostgreSQL does not run as root, and this machine has neither an account `postgres` nor `nobody` to run it"
    )]
    NoAccount,
    /// A program could not be run.
    #[error("cannot run {}", .program.display())]
    Run {
        /// The program's path.
        program: PathBuf,
        /// The operation's error.
        #[source]
        source: io::Error,
    },
    /// `initdb` failed.
    #[error("initdb failed: {output}")]
    Initdb {
        /// What it printed.
        output: String,
    },
    /// A program of PostgreSQL's that copies or promotes failed.
    #[error("{program} failed: {output}")]
    Program {
        /// Its name.
        program: &'static str,
        /// What it printed.
        output: String,
    },
    /// The server ended before it was ready.
    #[error("PostgreSQL did not start{}; the end of {}:\n{log}", cramped(.free.as_ref()), .log_file.display())]
    NotStarted {
        /// How many bytes its disk had left, where that can be told.
        free: Option<u64>,
        /// The server's log.
        log_file: PathBuf,
        /// Its last lines.
        log: String,
    },
    /// The server was not ready in time.
    #[error("PostgreSQL was not ready within {waited:?}; the end of {}:\n{log}", .log_file.display())]
    NotReady {
        /// How long it was given.
        waited: Duration,
        /// The server's log.
        log_file: PathBuf,
        /// Its last lines.
        log: String,
    },
    /// An earlier server of this folder cannot be ended.
    #[error("an earlier PostgreSQL in {} does not end{}", .folder.display(), numbered(.process.as_ref()))]
    Leftover {
        /// The cluster's folder.
        folder: PathBuf,
        /// One of its processes, where any is known.
        process: Option<u32>,
    },
}

impl Error {
    /// For `map_err` on what is done to the file or folder `path`.
    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Folder {
            folder: path.to_owned(),
            source,
        }
    }
}

/// What PostgreSQL takes at once where it needs more room for its log: a file of it.
const TAKEN_AT_ONCE: u64 = 16 * 1024 * 1024;

/// A full disk by its name. The log may have no room for it, and speaks of damaged data besides.
fn cramped(free: Option<&u64>) -> String {
    free.filter(|free| **free < TAKEN_AT_ONCE)
        .map(|free| {
            let (free, taken) = (free >> 20, TAKEN_AT_ONCE >> 20);
            format!(": its disk is full ({free} MB are free, and it takes {taken} at once), and it starts once there is space")
        })
        .unwrap_or_default()
}

fn found_instead(older: &[u32]) -> String {
    match older.iter().max() {
        Some(version) => format!(" (only version {version})"),
        None => String::new(),
    }
}

fn numbered(process: Option<&u32>) -> String {
    process
        .map(|process| format!(" (process {process})"))
        .unwrap_or_default()
}
