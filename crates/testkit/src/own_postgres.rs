//! A PostgreSQL of one test's own, which it may break: durable, with `fsync`, unlike the one that the tests share.

use private_postgres::{Cluster, Options};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::TestDatabase;

/// A running server with a migrated database. It ends with the value, its data too.
#[derive(Debug)]
pub struct OwnPostgres {
    cluster: Cluster,
    _folder: TempDir,
}

impl OwnPostgres {
    /// Starts a server with other options than the usual ones, and migrates its database.
    pub async fn start(options: impl FnOnce(Options) -> Options) -> Self {
        let folder = tempfile::tempdir().expect("a folder for the cluster");
        let options = options(Options::new(folder.path()).throw_away(true));
        let started = tokio::task::spawn_blocking(move || {
            let cluster = Cluster::start(options).unwrap_or_else(|e| panic!("PostgreSQL: {e}"));
            adapter_postgres::migrate(&cluster.url("postgres"), &mut |_| {}).expect("the database is migrated");
            cluster
        });
        Self {
            cluster: started.await.expect("the cluster's thread ended"),
            _folder: folder,
        }
    }

    /// The migrated database.
    pub fn database(&self) -> TestDatabase {
        TestDatabase::elsewhere(&self.cluster.url("postgres"))
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Stops every process of the server in its tracks (SIGSTOP): connections stay, and nothing is answered.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets all of them go on (SIGCONT).
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// The server first, so that it has no new children behind our back.
    fn signal(&self, signal: Signal) {
        let server = self.cluster.server_process().expect("the server runs");
        let children = std::fs::read_to_string(format!("/proc/{server}/task/{server}/children"))
            .expect("the server's processes are listed");
        let children = children
            .split_whitespace()
            .map(|id| id.parse().expect("a process id"));
        for id in std::iter::once(server).chain(children) {
            let id = i32::try_from(id).ok().and_then(Pid::from_raw);
            // A child may have ended meanwhile.
            drop(kill_process(id.expect("a process id"), signal));
        }
    }
}
