//! Errors of a private cluster. Each message can be shown to the person at the terminal.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::binaries::MINIMUM_VERSION;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "found no PostgreSQL server of version {MINIMUM_VERSION} or newer{}; install one: `apt-get install postgresql` on Debian and \
         Ubuntu, `dnf install postgresql-server` on Fedora, `apk add postgresql` on Alpine, or see https://www.postgresql.org/download/",
        .newest.map(|version| format!(" (only version {version})")).unwrap_or_default()
    )]
    NotInstalled { newest: Option<u32> },
    #[error(
        "the data in {} were made by PostgreSQL {made_by}, which is not installed (found {found}): install it or start with fresh data",
        .folder.display()
    )]
    OtherVersion {
        folder: PathBuf,
        made_by: u32,
        found: u32,
    },
    #[error("the folder {} is in use by another process", .0.display())]
    InUse(PathBuf),
    #[error("the folder {} cannot be used: is it writable?", .folder.display())]
    Folder {
        folder: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "PostgreSQL does not run as root, and this machine has neither an account `postgres` nor `nobody` to run it"
    )]
    NoAccount,
    #[error("cannot run {}", .program.display())]
    Run {
        program: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} failed: {output}", .program.display())]
    Program { program: PathBuf, output: String },
    /// The server exited before it was ready.
    #[error("PostgreSQL did not start{}; the end of {}:\n{log}", full(.free.as_ref()), .log_file.display())]
    NotStarted {
        /// Free bytes on its disk, if known.
        free: Option<u64>,
        log_file: PathBuf,
        /// The log's last lines.
        log: String,
    },
    #[error("PostgreSQL was not ready within {waited:?}; the end of {}:\n{log}", .log_file.display())]
    NotReady {
        waited: Duration,
        log_file: PathBuf,
        /// The log's last lines.
        log: String,
    },
    #[error("an earlier PostgreSQL in {} does not end", .0.display())]
    Leftover(PathBuf),
}

impl Error {
    /// For `map_err` on operations on the file or folder `path`.
    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Folder {
            folder: path.to_owned(),
            source,
        }
    }
}

/// PostgreSQL allocates its write-ahead log in files of this size.
const WAL_FILE: u64 = 16 * 1024 * 1024;

/// Reports a full disk. The server's log may have no room to say so, and also mentions damaged data.
fn full(free: Option<&u64>) -> String {
    let text = |free: &u64| {
        format!(
            ": its disk is full ({} MB are free, and it takes {} at once), and it starts once there is space",
            free >> 20,
            WAL_FILE >> 20
        )
    };
    free.filter(|free| **free < WAL_FILE)
        .map(text)
        .unwrap_or_default()
}
