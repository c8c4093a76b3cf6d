//! A private PostgreSQL cluster, run with the machine's PostgreSQL binaries, that ends with its owner.
//!
//! A [`Cluster`] has one owner and one data folder; a second owner gets an error. The server stops when the
//! owner stops it, drops it or dies, also by `kill -9`. [`Cluster::start_supervised`] also restarts a server
//! that dies. All calls block.
//!
//! The server listens only on a unix socket, in a folder that only its account can enter. PostgreSQL does not
//! run as root, so root runs it under the account `postgres`, else `nobody`.
//!
//! # How a server ends with its owner
//!
//! `guard.sh` runs the server in a separate process group, so that Ctrl-C does not reach it. It reads a pipe
//! that the owner holds: the kernel closes the pipe however the owner dies. Guard and server inherit a locked
//! file, `life`: its lock is free exactly when no process of an earlier server is alive, even if the guard
//! was killed. If the lock is not free, the next start stops those processes, after it has checked that they
//! work in this data folder.
//!
//! # Files
//!
//! | in the folder | |
//! |---|---|
//! | `lock` | locked by the owner while it lives |
//! | `life` | locked by guard and server |
//! | `cluster/` | owned by the server's account: `data/`, `server.log`, `socket/`; or a link to `/var/tmp` if it cannot enter here |
//!
//! The socket is in `/tmp` if its path would be too long here.

mod binaries;
mod cluster;
mod leftover;
mod paths;
mod server;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use binaries::MINIMUM_VERSION;

pub use binaries::Binaries;
pub use cluster::{Cluster, Options};
pub use paths::{Connection, lock_folder};

/// Why a cluster cannot be used. Each message can be shown to the person at the terminal.
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
    #[error("PostgreSQL did not start; the end of {}:\n{log}", .log_file.display())]
    NotStarted {
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
