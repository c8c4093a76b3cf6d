//! A `PgBouncer` in transaction mode in front of a test's database.

use std::{
    env,
    fmt::Write as _,
    fs,
    os::unix::{
        fs::{MetadataExt as _, chown},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;
use tokio::{net::UnixStream, time::sleep};
use tokio_postgres::{Config, config::Host};

use crate::TestDatabase;

const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Any number works: the socket is in a separate folder.
const PORT: u16 = 6432;

/// A running pooler. Dropping it kills it.
#[derive(Debug)]
pub struct PgBouncer {
    child: Child,
    url: String,
    folder: TempDir,
}

impl PgBouncer {
    /// Whether `tests/pgbouncer/install` has installed one below the target folder. If not, a test reports that and is skipped; under
    /// `CI` it fails.
    pub fn is_installed() -> bool {
        let found = program().is_some();
        assert!(
            found || env::var_os("CI").is_none(),
            "no PgBouncer: run tests/pgbouncer/install"
        );
        found
    }

    /// Starts a pooler with this many connections to the database, and this many prepared statements kept per connection. With 0 it
    /// keeps none, as before version 1.21.
    pub async fn before(database: &TestDatabase, connections: u32, statements: u32) -> Self {
        let program = program().expect("PgBouncer is installed: run tests/pgbouncer/install");
        let config: Config = database.url().parse().expect("the URL of a test's database");
        let Some(Host::Unix(socket)) = config.get_hosts().first() else {
            panic!("the test's cluster listens on a unix socket");
        };
        let folder = tempfile::tempdir().expect("a folder for the pooler");
        // PgBouncer refuses to run as root, and only its owner can use the server's socket.
        let owner = fs::metadata(socket).expect("the cluster's socket folder");
        let own = |path: &Path| chown(path, Some(owner.uid()), Some(owner.gid()));
        let settings = folder.path().join("pgbouncer.ini");
        let text = settings_of(&config, socket, folder.path(), connections, statements);
        fs::write(&settings, text).expect("the settings are written");
        own(folder.path()).expect("the folder is given away");
        own(&settings).expect("the settings are given away");
        let child = Command::new(program)
            .arg("--quiet")
            .arg(&settings)
            .uid(owner.uid())
            .gid(owner.gid())
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("PgBouncer starts");
        let host = folder.path().to_str().expect("a path in UTF-8");
        let url = format!(
            "postgres://{}@{}:{PORT}/{}",
            config.get_user().expect("a user"),
            host.replace('/', "%2F"),
            config.get_dbname().expect("a name"),
        );
        let started = Self { child, url, folder };
        started.listens().await;
        started
    }

    /// The database's URL through the pooler.
    pub fn url(&self) -> &str {
        &self.url
    }

    async fn listens(&self) {
        let socket = self.folder.path().join(format!(".s.PGSQL.{PORT}"));
        let reached = tokio::time::timeout(START_TIMEOUT, async {
            while UnixStream::connect(&socket).await.is_err() {
                sleep(Duration::from_millis(5)).await;
            }
        });
        if reached.await.is_err() {
            let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            panic!("PgBouncer does not listen:\n{log}");
        }
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        // The process may have exited already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The executable that was installed for this program's build.
fn program() -> Option<PathBuf> {
    let own = env::current_exe().ok()?;
    let places = own.ancestors().map(|folder| folder.join("pgbouncer/pgbouncer"));
    places.into_iter().find(|place| place.is_file())
}

fn settings_of(config: &Config, socket: &Path, folder: &Path, connections: u32, statements: u32) -> String {
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let user = config.get_user().expect("a user");
    let mut text = format!(
        "[databases]\n* = host={} port={port} user={user}\n[pgbouncer]\n",
        socket.display()
    );
    for (name, value) in [
        ("listen_addr", String::new()),
        ("listen_port", PORT.to_string()),
        ("unix_socket_dir", folder.display().to_string()),
        ("logfile", folder.join("log").display().to_string()),
        ("auth_type", "any".to_owned()),
        ("pool_mode", "transaction".to_owned()),
        ("default_pool_size", connections.to_string()),
        ("max_prepared_statements", statements.to_string()),
        ("max_client_conn", "1000".to_owned()),
    ] {
        writeln!(text, "{name} = {value}").expect("a string takes everything");
    }
    text
}
