//! A PostgreSQL server for one test, which the test may break. It is durable (`fsync`), unlike the server
//! that tests share.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use private_postgres::{Cluster, Options};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::TestDatabase;

/// A running server with a migrated database. Dropping it stops the server and deletes its data.
#[derive(Debug)]
pub struct OwnPostgres {
    cluster: Cluster,
    _folder: TempDir,
}

impl OwnPostgres {
    /// Starts a server with changed options and migrates its database.
    pub async fn start(options: impl FnOnce(Options) -> Options) -> Self {
        Self::start_on(&std::env::temp_dir(), options).await
    }

    /// Like [`Self::start`], with all data below the folder `disk`.
    pub async fn start_on(disk: &Path, options: impl FnOnce(Options) -> Options) -> Self {
        let folder = open_folder(disk);
        let options = options(Options::new(folder.path()).delete_at_end(true));
        let started = tokio::task::spawn_blocking(move || {
            Cluster::start(options).unwrap_or_else(|e| panic!("PostgreSQL: {e}"))
        });
        let cluster = started.await.expect("the cluster's thread ended");
        let migrated = adapter_postgres::migrate(&cluster.url("postgres"), drop).await;
        migrated.expect("the database is migrated");
        Self {
            cluster,
            _folder: folder,
        }
    }

    pub fn database(&self) -> TestDatabase {
        TestDatabase::at_url(&self.cluster.url("postgres"))
    }

    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Stops every process of the server (SIGSTOP): connections stay open, and nothing is answered.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Continues every process of the server (SIGCONT).
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Signals the server first, so that it starts no new children meanwhile.
    fn signal(&self, signal: Signal) {
        let server = self.cluster.server_process().expect("the server runs");
        let send = |id: u32| {
            let id = i32::try_from(id).ok().and_then(Pid::from_raw);
            // A child may have exited meanwhile.
            kill_process(id.expect("a process id"), signal).unwrap_or_default();
        };
        send(server);
        children(server).into_iter().for_each(send);
    }
}

/// A folder for a server, whose account has to pass through it.
pub(crate) fn open_folder(disk: &Path) -> TempDir {
    let folder = tempfile::tempdir_in(disk).expect("a folder for the cluster");
    set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("the folder is opened");
    folder
}

/// The child processes of a process (proc(5)).
fn children(of: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("processes are listed");
    let ids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        // State and parent follow the name, which may contain any character.
        let parent = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.split(' ').nth(1));
        parent.is_some_and(|parent| parent == of.to_string())
    })
    .collect()
}
