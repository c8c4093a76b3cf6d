//! A cluster with one owner.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::place::{self, Place};
use crate::server::{self, Server};
use crate::{Binaries, Connection, Error, leftover};

/// How long a dead server can go unnoticed.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);
/// The longest wait between two attempts to start it.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The server's settings. Huge pages are off because a container may see pages that it is not allowed to touch.
const SETTINGS: &[&str] = &[
    "listen_addresses=",
    "port=5432",
    "max_connections=200",
    "logging_collector=off",
    "log_destination=stderr",
    "log_line_prefix=%m [%p] ",
    "log_timezone=UTC",
    "timezone=UTC",
    "log_checkpoints=off",
    "huge_pages=off",
];

/// How to run a cluster.
#[derive(Clone, Debug)]
pub struct Options {
    folder: PathBuf,
    settings: Vec<String>,
    fresh: bool,
    throw_away: bool,
    primary: Option<Connection>,
}

impl Options {
    /// A durable cluster in `folder`, which is made where missing and belongs to the cluster alone.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            settings: Vec::new(),
            fresh: false,
            throw_away: false,
            primary: None,
        }
    }

    /// A setting of the server (`shared_buffers`, `1GB`). The last one of a name counts, over the crate's own too.
    #[must_use]
    pub fn setting(mut self, name: impl fmt::Display, value: impl fmt::Display) -> Self {
        self.settings.push(format!("{name}={value}"));
        self
    }

    /// Whether to delete what earlier owners left in the folder, before the start.
    #[must_use]
    pub fn fresh(mut self, fresh: bool) -> Self {
        self.fresh = fresh;
        self
    }

    /// Whether the data end with their owner.
    #[must_use]
    pub fn throw_away(mut self, throw_away: bool) -> Self {
        self.throw_away = throw_away;
        self
    }

    /// The running cluster to copy where the folder holds no data yet, and to follow then as its standby, until [`Cluster::promote`].
    #[must_use]
    pub fn standby_of(mut self, primary: Connection) -> Self {
        self.primary = Some(primary);
        self
    }
}

/// A running PostgreSQL whose data folder this process alone uses. It stops when this is stopped or dropped, and when
/// the process dies.
pub struct Cluster {
    place: Place,
    binaries: Binaries,
    settings: Vec<String>,
    throw_away: bool,
    /// `None` once stopped.
    server: Mutex<Option<Server>>,
    _lock: File,
}

impl Cluster {
    /// Starts the cluster of a folder, and makes it where there is none. Fails at once with [`Error::InUse`] where
    /// another owner has it. What is left of a dead owner's server is ended first.
    pub fn start(options: Options) -> Result<Self, Error> {
        let folder = place::make_folder(&options.folder)?;
        let lock = place::own(&folder)?;
        let mut place = Place::prepare(&folder)?;
        if options.fresh {
            drop(leftover::end(&place)?);
            place.remove()?;
            place = Place::prepare(&folder)?;
        }
        let binaries = Binaries::for_data_of(server::version_of(&place.data()))?;
        server::ensure_data(&place, &binaries, options.primary.as_ref())?;
        let mut settings: Vec<_> = SETTINGS.iter().map(ToString::to_string).collect();
        let socket_folder = place.connection().socket_folder().display().to_string();
        settings.push(format!("unix_socket_directories=\"{socket_folder}\""));
        settings.extend(options.settings);
        let server = Server::start(&place, &binaries, &settings, options.throw_away)?;
        tracing::debug!(folder = %folder.display(), pid = %server.process().as_raw_nonzero(), "PostgreSQL is ready");
        Ok(Self {
            place,
            binaries,
            settings,
            throw_away: options.throw_away,
            server: Mutex::new(Some(server)),
            _lock: lock,
        })
    }

    /// Starts it as [`Self::start`] does, and its server again within a fraction of a second of its death, until it is stopped.
    /// Connections are lost, the way to connect stays.
    pub fn start_supervised(options: Options) -> Result<Arc<Self>, Error> {
        let cluster = Arc::new(Self::start(options)?);
        let watched = Arc::downgrade(&cluster);
        thread::spawn(move || {
            let mut pause = WATCH_INTERVAL;
            loop {
                thread::sleep(pause);
                let Some(cluster) = watched.upgrade() else {
                    return;
                };
                pause = watch(&cluster, pause);
            }
        });
        Ok(cluster)
    }

    /// How to connect. It stays the same when the server is started again.
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
        let server = self.server();
        let process = server.as_ref()?.process().as_raw_nonzero();
        u32::try_from(process.get()).ok()
    }

    /// Whether the server runs.
    pub fn is_running(&self) -> bool {
        self.server().as_mut().is_some_and(Server::is_running)
    }

    /// Starts the server again if it has died, with the same connection, and returns whether it had. Does nothing once stopped.
    pub fn restart_if_dead(&self) -> Result<bool, Error> {
        let mut server = self.server();
        let Some(dead) = server.as_mut() else {
            return Ok(false);
        };
        if dead.is_running() {
            return Ok(false);
        }
        dead.release();
        // After a failure the dead one stays here, so that it is tried again.
        let next = Server::start(&self.place, &self.binaries, &self.settings, self.throw_away)?;
        *server = Some(next);
        Ok(true)
    }

    /// Makes a standby a primary, which it stays, and waits until it is one. Its old primary has to be dead, or there are two.
    pub fn promote(&self) -> Result<(), Error> {
        server::promote(&self.place.account, &self.binaries, &self.place.data())
    }

    /// Ends the server by a fast shutdown: clients are cut off, all data are written. Stopping twice is harmless.
    pub fn stop(&self) -> Result<(), Error> {
        let Some(server) = self.server().take() else {
            return Ok(());
        };
        server.stop(&self.place)?;
        if self.throw_away {
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

/// Starts the server again if it is dead. Returns the pause until the next look.
fn watch(cluster: &Cluster, pause: Duration) -> Duration {
    match cluster.restart_if_dead() {
        Ok(false) => WATCH_INTERVAL,
        Ok(true) => {
            tracing::warn!("PostgreSQL had died and was started again");
            WATCH_INTERVAL
        }
        Err(error) => {
            let cause: &dyn std::error::Error = &error;
            tracing::error!(error = cause, "PostgreSQL has died and does not start");
            (pause * 2).min(LONGEST_PAUSE)
        }
    }
}
