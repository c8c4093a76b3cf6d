//! A throw-away server that all test processes of a run share.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::account::Account;
use crate::guard::Until;
use crate::lease::Lease;
use crate::note::fnv1a;
use crate::place::{self, Place};
use crate::server::Server;
use crate::{Binaries, Connection, Durability, Error, Options, files, leftover, lock, memory};

/// How to run a shared server. Processes with equal settings share one.
#[derive(Clone, Debug)]
pub struct SharedOptions {
    base: PathBuf,
    binaries: Option<PathBuf>,
    max_connections: u16,
    settings: Vec<(String, String)>,
    grace: Duration,
}

impl Default for SharedOptions {
    /// 500 connections; ends ten seconds after the last process that uses it.
    fn default() -> Self {
        Self {
            base: std::env::temp_dir(),
            binaries: None,
            max_connections: 500,
            settings: Vec::new(),
            grace: Duration::from_secs(10),
        }
    }
}

impl SharedOptions {
    /// The folder under which the server's folder lies, instead of the system's for temporary files.
    #[must_use]
    pub fn base(mut self, folder: impl Into<PathBuf>) -> Self {
        self.base = folder.into();
        self
    }

    /// The folder that holds `postgres` and `initdb`, instead of looking for one.
    #[must_use]
    pub fn binaries(mut self, folder: impl Into<PathBuf>) -> Self {
        self.binaries = Some(folder.into());
        self
    }

    /// How many clients the server admits at once.
    #[must_use]
    pub fn max_connections(mut self, count: u16) -> Self {
        self.max_connections = count;
        self
    }

    /// A setting of the server; the last one of a name counts, over the crate's own too.
    #[must_use]
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// How long the server outlives the last process that uses it; the process that starts it decides.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// The server's folder, named by the user and by what distinguishes one server from another.
    fn folder(&self) -> PathBuf {
        let version = env!("CARGO_PKG_VERSION");
        let kind = format!(
            "{version} {:?} {} {:?}",
            self.binaries, self.max_connections, self.settings
        );
        let user = rustix::process::geteuid().as_raw();
        self.base
            .join(format!("private-postgres-{user}-{:016x}", fnv1a(kind.as_bytes())))
    }

    fn server_options(&self, folder: &Path) -> Options {
        let mut options = Options::new(folder)
            .durability(Durability::Ephemeral)
            .max_connections(self.max_connections)
            .throw_away(true);
        options.binaries.clone_from(&self.binaries);
        options.settings.clone_from(&self.settings);
        options
    }
}

/// How long a living server that grants no lease is given, before it counts as left over.
const LEASE_PATIENCE: Duration = Duration::from_secs(3);

/// A process's share in a server that is kept alive by those who use it, and ends with its data a while after they all
/// have gone, in whatever way. To be kept for as long as the server is used.
pub struct SharedCluster {
    folder: PathBuf,
    connection: Connection,
    _stake: Stake,
}

/// What keeps the server alive, and is never read.
enum Stake {
    Started { _server: Server },
    Joined { _lease: Lease },
}

impl SharedCluster {
    /// Joins the running server, or starts one where there is none. Of processes that come at once one starts it, the
    /// others wait for that.
    pub fn join(options: &SharedOptions) -> Result<Self, Error> {
        let folder = place::make_own_folder(&options.folder())?;
        let lock_file = folder.join("lock");
        let lock = lock::open_lock(&lock_file)?;
        lock.lock().map_err(Error::at(&lock_file))?;
        let account = Account::choose()?;
        let found = Place::find(&folder, account)?;
        if let Some(place) = &found {
            if let Some(lease) = lease_of(place) {
                let stake = Stake::Joined { _lease: lease };
                return Ok(Self {
                    folder,
                    connection: place.connection(),
                    _stake: stake,
                });
            }
            drop(leftover::end(place)?);
            place.remove()?;
        }
        Self::start(options, folder, account)
    }

    fn start(options: &SharedOptions, folder: PathBuf, account: Account) -> Result<Self, Error> {
        let once = folder.join("once");
        files::remove(&once)?;
        fs::create_dir(&once).map_err(Error::at(&once))?;
        let place = Place::prepare(&folder, account, memory::folder())?;
        let server_options = options.server_options(&folder);
        let binaries = Binaries::find(options.binaries.as_deref())?;
        let until = Until::LeasesEnd {
            leases: &leases(&place),
            grace: options.grace,
        };
        let server = Server::start(&place, &binaries, &server_options, until)?;
        Ok(Self {
            folder,
            connection: place.connection(),
            _stake: Stake::Started { _server: server },
        })
    }

    /// How to connect.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The URL of `database`, as [`Connection::url`] makes it.
    pub fn url(&self, database: &str) -> String {
        self.connection.url(database)
    }

    /// The folder that holds the server's locks and names where its data lie.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Does `work` unless it has been done under this `name` in the server's life; who comes meanwhile waits for it.
    /// Tells whether it did it. Work that failed, or whose process died, is done again by the next, so it begins by
    /// clearing what an earlier attempt may have left.
    pub fn once<E>(&self, name: &str, work: impl FnOnce() -> Result<(), E>) -> Result<bool, OnceError<E>> {
        // A hash makes any name fit for a file.
        let path = self
            .folder
            .join("once")
            .join(format!("{:016x}", fnv1a(name.as_bytes())));
        let mut file: File = lock::open_lock(&path)?;
        file.lock().map_err(Error::at(&path))?;
        let mut done = String::new();
        file.read_to_string(&mut done).map_err(Error::at(&path))?;
        if !done.is_empty() {
            return Ok(false);
        }
        work().map_err(OnceError::Work)?;
        file.write_all(b"done\n").map_err(Error::at(&path))?;
        Ok(true)
    }
}

/// Why work was not done.
#[derive(Debug, thiserror::Error)]
pub enum OnceError<E> {
    /// The record of what has been done cannot be used.
    #[error(transparent)]
    Record(#[from] Error),
    /// The work itself failed.
    #[error("{0}")]
    Work(E),
}

/// Takes a lease of the server that lives in a place. A guard on a busy machine may be a moment late to open its pipe,
/// and one that is about to end takes its server with it: so it is asked again while the server lives, for a while.
fn lease_of(place: &Place) -> Option<Lease> {
    let patience = Instant::now() + LEASE_PATIENCE;
    while leftover::serves(&place.data()) {
        if let Some(lease) = Lease::take(&leases(place)) {
            return leftover::serves(&place.data()).then_some(lease);
        }
        if Instant::now() > patience {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    None
}

fn leases(place: &Place) -> PathBuf {
    place.root().join("leases")
}
