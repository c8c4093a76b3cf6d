//! A cluster with one owner.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::Pid;

use crate::account::Account;
use crate::binaries::Installed;
use crate::guard::Until;
use crate::place::{self, Place};
use crate::server::Server;
use crate::{Binaries, Connection, Error, Options, initdb, leftover, lock};

/// A running PostgreSQL whose data folder this process alone uses. It stops when this is stopped or dropped, and when
/// the process dies.
pub struct Cluster {
    options: Options,
    binaries: Binaries,
    place: Place,
    /// `None` once stopped.
    server: Mutex<Option<Server>>,
    _owned: Vec<File>,
}

impl Cluster {
    /// Starts the cluster of a folder, making it where there is none. Fails at once with [`Error::InUse`] where
    /// another owner has it; what is left of a dead owner's server is ended first.
    pub fn start(options: Options) -> Result<Self, Error> {
        let installed = Installed::find(options.binaries.as_deref())?;
        let account = Account::choose()?;
        let folder = place::make_folder(&options.folder)?;
        let mut owned = vec![lock::own(&options.folder, &folder.join("lock"))?];
        let (mut place, mut elsewhere) = claim(&options, &folder, account)?;
        if options.fresh {
            drop(leftover::end(&place)?);
            place.remove()?;
            (place, elsewhere) = claim(&options, &folder, account)?;
        }
        owned.extend(elsewhere);
        let binaries = installed.for_data_of(initdb::version_of(&place.data()));
        let server = Server::start(&place, &binaries, &options, Until::OwnerEnds)?;
        tracing::debug!(folder = %folder.display(), pid = %server.process().as_raw_nonzero(), "PostgreSQL is ready");
        Ok(Self {
            options,
            binaries,
            place,
            server: Mutex::new(Some(server)),
            _owned: owned,
        })
    }

    /// How to connect; stays the same when the server is started again.
    pub fn connection(&self) -> Connection {
        self.place.connection()
    }

    /// The URL of `database`, as [`Connection::url`] makes it.
    pub fn url(&self, database: &str) -> String {
        self.connection().url(database)
    }

    /// The binaries in use.
    pub fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    /// The server's log.
    pub fn log_file(&self) -> PathBuf {
        self.place.log()
    }

    /// Where PostgreSQL's own files lie.
    pub fn data_folder(&self) -> PathBuf {
        self.place.data()
    }

    /// The server's process id, unless stopped.
    pub fn server_process(&self) -> Option<u32> {
        self.server()
            .as_ref()
            .and_then(|server| u32::try_from(raw(server.process())).ok())
    }

    /// The guard's process id, unless stopped.
    pub fn guard_process(&self) -> Option<u32> {
        self.server().as_ref().map(Server::guard_id)
    }

    /// Whether the server runs.
    pub fn is_running(&self) -> bool {
        self.server().as_mut().is_some_and(Server::is_running)
    }

    /// Starts the server again if it has died, with the same connection; tells whether it had. Does nothing once
    /// stopped.
    pub fn restart_if_dead(&self) -> Result<bool, Error> {
        let mut server = self.server();
        let Some(dead) = server.as_mut() else {
            return Ok(false);
        };
        if dead.is_running() {
            return Ok(false);
        }
        dead.release();
        // A failed start leaves the dead one here, so that it is tried again.
        let next = Server::start(&self.place, &self.binaries, &self.options, Until::OwnerEnds)?;
        *server = Some(next);
        Ok(true)
    }

    /// Makes a standby a primary, which it stays, and waits until it is one; its old primary has to be dead, or there are two.
    pub fn promote(&self) -> Result<(), Error> {
        let program = self.binaries.program("pg_ctl");
        let mut command = self.place.account.command(&program);
        command.args(["promote", "-D"]).arg(self.place.data());
        let output = command
            .stdin(Stdio::null())
            .output()
            .map_err(|source| Error::Run { program, source })?;
        if output.status.success() {
            return Ok(());
        }
        Err(Error::Program {
            program: "pg_ctl promote",
            output: initdb::printed(&output),
        })
    }

    /// Ends the server by a fast shutdown: clients are cut off, all data are written. Stopping twice is harmless.
    pub fn stop(&self) -> Result<(), Error> {
        let Some(server) = self.server().take() else {
            return Ok(());
        };
        server.stop(&self.place)?;
        if self.options.throw_away {
            self.place.remove()
        } else {
            Ok(())
        }
    }

    fn server(&self) -> MutexGuard<'_, Option<Server>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            let cause: &dyn std::error::Error = &error;
            tracing::warn!(error = cause, "PostgreSQL was not stopped in good order");
        }
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder: &Path = self.place.folder();
        formatter
            .debug_struct("Cluster")
            .field("folder", &folder)
            .finish_non_exhaustive()
    }
}

/// The cluster's place; with its own lock where it lies elsewhere, since a copy of the folder names the same place.
fn claim(options: &Options, folder: &Path, account: Account) -> Result<(Place, Option<File>), Error> {
    let place = Place::prepare(folder, account, None)?;
    let lock = place.root().join("lock");
    let elsewhere = place
        .is_outside()
        .then(|| lock::own(&options.folder, &lock))
        .transpose()?;
    Ok((place, elsewhere))
}

fn raw(pid: Pid) -> i32 {
    pid.as_raw_nonzero().get()
}
