//! A `PgBouncer` in transaction mode in front of a test's database.

use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs};

use tempfile::TempDir;
use tokio::net::UnixStream;

use crate::{TestDatabase, report_skipped, wait_until};

const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Any number works: the socket is in a separate folder.
const PORT: u16 = 6432;
const SETTINGS: &str = "pgbouncer.ini";
const MISSING: &str = "no PgBouncer: run tests/pgbouncer/install";

/// A running pooler. Dropping it kills it.
#[derive(Debug)]
pub struct PgBouncer {
    child: Child,
    url: String,
    folder: TempDir,
}

impl PgBouncer {
    /// Whether `tests/pgbouncer/install` has installed one below the target folder. If not, a test reports
    /// that and is skipped; under `CI` it fails.
    pub fn is_installed() -> bool {
        let found = program().is_some();
        assert!(found || env::var_os("CI").is_none(), "{MISSING}");
        if !found {
            report_skipped(MISSING);
        }
        found
    }

    /// Starts a pooler with this many connections to the database, and this many prepared statements kept per
    /// connection. With 0 it keeps none, as before version 1.21.
    pub async fn start(database: &TestDatabase, connections: u32, statements: u32) -> Self {
        let socket = database.socket_folder();
        let folder = tempfile::tempdir().expect("a folder for the pooler");
        // PgBouncer refuses to run as root, and only its owner can use the server's socket.
        let owner = fs::metadata(&socket).expect("the cluster's socket folder");
        let own = |path: &Path| chown(path, Some(owner.uid()), Some(owner.gid()));
        let settings = folder.path().join(SETTINGS);
        let (url, path) = (database.url_at(folder.path(), PORT), folder.path().display());
        // With `auth_type = any` the pooler needs the name of a role.
        let user = url.split(['/', '@']).nth(2).expect("a user");
        let text = format!(
            "[databases]\n* = host={} port=5432 user={user}\n[pgbouncer]\nlisten_addr =\nlisten_port = {PORT}\nunix_socket_dir = {path}\n\
             logfile = {path}/log\nauth_type = any\npool_mode = transaction\ndefault_pool_size = {connections}\n\
             max_prepared_statements = {statements}\nmax_client_conn = 1000\n",
            socket.display()
        );
        fs::write(&settings, text).expect("the settings are written");
        own(folder.path()).expect("the folder is given away");
        own(&settings).expect("the settings are given away");
        let child = spawn(folder.path());
        let started = Self { child, url, folder };
        started.listens().await;
        started
    }

    /// Ends it and starts it again, with this many prepared statements kept per connection.
    pub async fn restart(&mut self, statements: u32) {
        self.child.kill().expect("PgBouncer is killed");
        self.child.wait().expect("PgBouncer ends");
        let settings = self.folder.path().join(SETTINGS);
        let text = fs::read_to_string(&settings).expect("the settings are there");
        // The last of two counts.
        let text = format!("{text}max_prepared_statements = {statements}\n");
        fs::write(&settings, text).expect("the settings are written");
        self.child = spawn(self.folder.path());
        self.listens().await;
    }

    /// The database's URL through the pooler.
    pub fn url(&self) -> &str {
        &self.url
    }

    async fn listens(&self) {
        let socket = self.folder.path().join(format!(".s.PGSQL.{PORT}"));
        let path = socket.as_path();
        let listens = || async move { UnixStream::connect(path).await.is_ok() };
        let log = || fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        let failure = || format!("PgBouncer does not listen:\n{}", log());
        wait_until(START_TIMEOUT, listens, failure).await;
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        // The process may have exited already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Starts it in its folder, as the folder's owner.
fn spawn(folder: &Path) -> Child {
    let owner = fs::metadata(folder).expect("the folder is there");
    Command::new(program().expect(MISSING))
        .args(["--quiet", SETTINGS])
        .uid(owner.uid())
        .gid(owner.gid())
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("PgBouncer starts")
}

/// The executable that was installed for this program's build.
fn program() -> Option<PathBuf> {
    let own = env::current_exe().ok()?;
    let places = own.ancestors().map(|folder| folder.join("pgbouncer/pgbouncer"));
    places.into_iter().find(|place| place.is_file())
}
