//! A throw-away PostgreSQL cluster that syncs to disk like a real one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use private_postgres::{Durability, Options};
use tokio::process::Command;
use tokio_postgres::{NoTls, SimpleQueryMessage};

/// What differs from PostgreSQL's defaults beside the memory: room for the write-ahead log of the filling, so that
/// measurements are not about checkpoints.
const SETTINGS: [(&str, &str); 3] = [
    ("max_wal_size", "8GB"),
    ("checkpoint_timeout", "30min"),
    ("maintenance_work_mem", "256MB"),
];

/// A running cluster. It ends with the value, with all its data.
#[derive(Debug)]
pub(crate) struct Cluster {
    cluster: private_postgres::Cluster,
    folder: tempfile::TempDir,
}

impl Cluster {
    /// Starts one under the system's temporary folder, or under `base`.
    pub(crate) async fn start(shared_buffers: &str, base: Option<&Path>) -> anyhow::Result<Self> {
        let folder = match base {
            Some(base) => tempfile::tempdir_in(base),
            None => tempfile::tempdir(),
        }
        .context("no temporary folder")?;
        let options = SETTINGS.into_iter().fold(
            Options::new(folder.path().join("cluster"))
                .durability(Durability::Durable)
                .throw_away(true)
                .setting("shared_buffers", shared_buffers),
            |options, (name, value)| options.setting(name, value),
        );
        let cluster = tokio::task::spawn_blocking(|| private_postgres::Cluster::start(options)).await??;
        Ok(Self { cluster, folder })
    }

    /// The URL of a database.
    pub(crate) fn url(&self, database: &str) -> String {
        self.cluster.url(database)
    }

    /// The URL of a database for those who reach the cluster by the socket of another folder.
    pub(crate) fn url_through(&self, folder: &Path, database: &str) -> String {
        let folder = folder.to_string_lossy().replace('%', "%25").replace('/', "%2F");
        format!(
            "postgres://{}@{folder}/{database}",
            self.cluster.connection().user()
        )
    }

    /// The unix socket that the server listens on.
    pub(crate) fn socket(&self) -> PathBuf {
        let connection = self.cluster.connection();
        let name = format!(".s.PGSQL.{}", connection.port());
        connection.socket_folder().join(name)
    }

    /// A folder for files of this run, which ends with the cluster.
    pub(crate) fn scratch(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The server's log.
    pub(crate) fn log_file(&self) -> PathBuf {
        self.cluster.log_file()
    }

    /// The process id of the server.
    pub(crate) fn server(&self) -> anyhow::Result<u32> {
        self.cluster.server_process().context("PostgreSQL has ended")
    }

    /// The path of one of PostgreSQL's programs.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.cluster.binaries().program(name)
    }

    /// The arguments by which PostgreSQL's client programs find the cluster.
    pub(crate) fn client_arguments(&self) -> [OsString; 6] {
        let connection = self.cluster.connection();
        [
            "--host".into(),
            connection.socket_folder().into(),
            "--port".into(),
            connection.port().to_string().into(),
            "--username".into(),
            connection.user().into(),
        ]
    }

    /// Runs SQL and gives the first column of all rows as text; nothing for a null.
    pub(crate) async fn sql(&self, database: &str, sql: &str) -> anyhow::Result<Vec<String>> {
        let (client, connection) = tokio_postgres::connect(&self.url(database), NoTls).await?;
        let connection = tokio::spawn(connection);
        let messages = client.simple_query(sql).await.with_context(|| sql.to_owned());
        drop(client);
        connection.await??;
        let rows = messages?.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        Ok(rows.collect())
    }

    /// Runs `psql -c command` and tells how long it took, starting and connecting included.
    pub(crate) async fn psql(&self, database: &str, command: &str) -> anyhow::Result<Duration> {
        let begun = std::time::Instant::now();
        let output = Command::new(self.program("psql"))
            .args([
                "--no-psqlrc",
                "--quiet",
                "--set",
                "ON_ERROR_STOP=1",
                "--command",
                command,
            ])
            .args(self.client_arguments())
            .args(["--dbname", database])
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .context("psql does not start")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "psql failed: {errors}");
        Ok(begun.elapsed())
    }
}
