//! A PostgreSQL cluster with one owner.

use std::fmt;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::paths::{self, ClusterPaths};
use crate::server::{self, Server};
use crate::{Binaries, Connection, Error, leftover};
use parking_lot::Mutex;

/// How long a dead server can stay unnoticed.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);
/// The longest pause between two attempts to restart the server.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The server's settings. Huge pages are off because a container may see pages that it is not allowed to
/// touch.
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
    delete_at_end: bool,
    primary: Option<Connection>,
}

impl Options {
    /// A durable cluster in `folder`. The folder is created if missing and must hold nothing else.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            settings: Vec::new(),
            fresh: false,
            delete_at_end: false,
            primary: None,
        }
    }

    /// Adds a server setting (`shared_buffers`, `1GB`). The last value of a name wins, also over the crate's
    /// own settings.
    #[must_use]
    pub fn setting(mut self, name: impl fmt::Display, value: impl fmt::Display) -> Self {
        self.settings.push(format!("{name}={value}"));
        self
    }

    /// Whether to delete the data of earlier owners before the start.
    #[must_use]
    pub fn fresh(mut self, fresh: bool) -> Self {
        self.fresh = fresh;
        self
    }

    /// Whether to delete the data when their owner ends.
    #[must_use]
    pub fn delete_at_end(mut self, delete_at_end: bool) -> Self {
        self.delete_at_end = delete_at_end;
        self
    }

    /// If the folder holds no data yet: copies the running cluster `primary` and follows it as a standby
    /// until [`Cluster::promote`].
    #[must_use]
    pub fn standby_of(mut self, primary: Connection) -> Self {
        self.primary = Some(primary);
        self
    }
}

/// A running PostgreSQL whose data folder only this process uses. The server stops when this value is stopped
/// or dropped, and when the process dies.
pub struct Cluster {
    paths: ClusterPaths,
    binaries: Binaries,
    settings: Vec<String>,
    delete_at_end: bool,
    /// `None` once stopped.
    server: Mutex<Option<Server>>,
    _lock: FolderLock,
}

/// Gives the folder up at once: a child that another thread is starting has the open file until it executes
/// its program.
struct FolderLock(File);

impl Drop for FolderLock {
    fn drop(&mut self) {
        // If it fails, closing the file does it.
        let _ = self.0.unlock();
    }
}

impl Cluster {
    /// Starts the cluster of a folder; creates it if there is none. Fails at once with [`Error::InUse`] if
    /// the folder has another owner. A server that a dead owner left behind is stopped first.
    pub fn start(options: Options) -> Result<Self, Error> {
        let folder = paths::make_folder(&options.folder)?;
        let lock = FolderLock(paths::lock_folder(&folder)?);
        let mut paths = ClusterPaths::prepare(&folder)?;
        if options.fresh {
            drop(leftover::end(&paths)?);
            paths.remove()?;
            paths = ClusterPaths::prepare(&folder)?;
        }
        let binaries = Binaries::for_data_of(server::version_of(&paths.data()))?;
        server::ensure_data(&paths, &binaries, options.primary.as_ref())?;
        let mut settings: Vec<_> = SETTINGS.iter().map(ToString::to_string).collect();
        let socket_folder = paths.connection().socket_folder().display().to_string();
        settings.push(format!("unix_socket_directories=\"{socket_folder}\""));
        settings.extend(options.settings);
        let server = Server::start(&paths, &binaries, &settings, options.delete_at_end)?;
        tracing::debug!(folder = %folder.display(), pid = %server.process.as_raw_nonzero(), "PostgreSQL is ready");
        Ok(Self {
            paths,
            binaries,
            settings,
            delete_at_end: options.delete_at_end,
            server: Mutex::new(Some(server)),
            _lock: lock,
        })
    }

    /// Like [`Self::start`]; it also restarts a server that dies, within a fraction of a second, until the
    /// cluster is stopped. A restart cuts connections; [`Self::connection`] stays the same.
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

    /// How to connect. A restart does not change it.
    pub fn connection(&self) -> Connection {
        self.paths.connection()
    }

    /// The URL of `database`, as [`Connection::url`] makes it.
    pub fn url(&self, database: &str) -> String {
        self.connection().url(database)
    }

    pub fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    pub fn log_file(&self) -> PathBuf {
        self.paths.log()
    }

    /// The folder of PostgreSQL's own files.
    pub fn data_folder(&self) -> PathBuf {
        self.paths.data()
    }

    /// The server's process id; `None` once stopped.
    pub fn server_process(&self) -> Option<u32> {
        let server = self.server.lock();
        let process = server.as_ref()?.process.as_raw_nonzero();
        u32::try_from(process.get()).ok()
    }

    pub fn is_running(&self) -> bool {
        self.server.lock().as_mut().is_some_and(Server::is_running)
    }

    /// Restarts a dead server with the same connection and returns whether it was dead. Does nothing once
    /// stopped.
    pub fn restart_if_dead(&self) -> Result<bool, Error> {
        let mut server = self.server.lock();
        let Some(dead) = server.as_mut() else {
            return Ok(false);
        };
        if dead.is_running() {
            return Ok(false);
        }
        dead.release();
        // If the start fails, the dead server stays in place, so that the next call tries again.
        let next = Server::start(&self.paths, &self.binaries, &self.settings, self.delete_at_end)?;
        *server = Some(next);
        Ok(true)
    }

    /// Promotes a standby to primary and waits until it is one. The old primary must be dead: otherwise there
    /// are two primaries.
    pub fn promote(&self) -> Result<(), Error> {
        server::promote(&self.paths.account, &self.binaries, &self.paths.data())
    }

    /// Stops the server by a fast shutdown: it disconnects clients and writes all data. A second call does
    /// nothing.
    pub fn stop(&self) -> Result<(), Error> {
        let Some(server) = self.server.lock().take() else {
            return Ok(());
        };
        server.stop(&self.paths)?;
        if self.delete_at_end {
            self.paths.remove()
        } else {
            Ok(())
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            let cause: &dyn std::error::Error = &error;
            tracing::warn!(error = cause, "PostgreSQL did not shut down cleanly");
        }
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Cluster")
            .field("folder", &self.paths.folder)
            .finish_non_exhaustive()
    }
}

/// Restarts the server if it is dead. Returns the pause until the next check.
fn watch(cluster: &Cluster, pause: Duration) -> Duration {
    match cluster.restart_if_dead() {
        Ok(false) => WATCH_INTERVAL,
        Ok(true) => {
            tracing::warn!("PostgreSQL died and was restarted");
            WATCH_INTERVAL
        }
        Err(error) => {
            let cause: &dyn std::error::Error = &error;
            tracing::error!(error = cause, "PostgreSQL died and does not start");
            (pause * 2).min(LONGEST_PAUSE)
        }
    }
}
