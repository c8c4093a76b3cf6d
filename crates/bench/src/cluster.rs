//! A temporary PostgreSQL cluster with durable writes, as in production.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use private_postgres::Options;
use procfs::Current as _;
use tokio_postgres::{NoTls, SimpleQueryMessage};

/// A running cluster. Dropping it stops the server and deletes its data.
#[derive(Debug)]
pub(crate) struct Cluster {
    cluster: private_postgres::Cluster,
    folder: tempfile::TempDir,
}

impl Cluster {
    /// Starts a cluster below `folder`, or below the system's temporary folder.
    pub(crate) async fn start(folder: Option<&Path>) -> anyhow::Result<Self> {
        let folder = match folder {
            Some(folder) => tempfile::tempdir_in(folder),
            None => tempfile::tempdir(),
        }
        .context("no temporary folder")?;
        let options = Options::new(folder.path().join("cluster"))
            .delete_at_end(true)
            .setting("shared_buffers", shared_buffers()?)
            .setting("maintenance_work_mem", "256MB")
            // Checkpoints are so rare that they do not hit one measurement and spare another.
            .setting("max_wal_size", "8GB")
            .setting("checkpoint_timeout", "30min");
        let cluster = tokio::task::spawn_blocking(|| private_postgres::Cluster::start(options)).await??;
        Ok(Self { cluster, folder })
    }

    pub(crate) fn url(&self, database: &str) -> String {
        self.cluster.url(database)
    }

    /// The process id of the postmaster.
    pub(crate) fn pid(&self) -> anyhow::Result<u32> {
        self.cluster.server_process().context("PostgreSQL has ended")
    }

    /// The path of one of PostgreSQL's client programs, of the server's version.
    pub(crate) fn client_program(&self, name: &str) -> PathBuf {
        self.cluster.binaries().program(name)
    }

    /// The path of a file that is deleted with the cluster.
    pub(crate) fn scratch_file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs statements and returns the first column of their rows.
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

    /// Runs a query that returns one value.
    pub(crate) async fn value(&self, database: &str, sql: &str) -> anyhow::Result<String> {
        let value = self.sql(database, sql).await?.pop();
        value.with_context(|| format!("no row: {sql}"))
    }
}

/// A quarter of the machine's memory, as `docs/operations/README.md` advises.
fn shared_buffers() -> anyhow::Result<String> {
    let total = procfs::Meminfo::current()?.mem_total;
    Ok(format!("{}MB", total / 4 / 1_048_576))
}
