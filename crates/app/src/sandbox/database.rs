//! The sandbox's database: a private cluster, or a configured database that nothing else uses.

use std::sync::Arc;

use adapter_postgres::{Database, Layout, distribute, finish, migrate};
use anyhow::{Context as _, bail};
use kernel::StoreError;
use private_postgres::Cluster;
use tokio::task::spawn_blocking;

use super::data_dir::{CLAIM, DataDir};
use crate::config::{Loaded, Secret};
use crate::readiness::require_schema;
use crate::wiring;

/// The name of the mark in the database that identifies a sandbox.
const MARK: &str = "kind";
const SANDBOX: &str = "sandbox";

/// The database of the sandbox.
pub(super) struct SandboxDatabase {
    pub(super) url: String,
    /// The private PostgreSQL, restarted if it dies; `None` with a configured database.
    cluster: Option<Arc<Cluster>>,
}

impl SandboxDatabase {
    /// The configured database, claimed; otherwise a private cluster, started.
    pub(super) async fn open(loaded: &Loaded, data_dir: &DataDir, fresh: bool) -> anyhow::Result<Self> {
        if let Some(url) = &loaded.config.database.url {
            claim(loaded, data_dir, url).await?;
            return Ok(Self {
                url: url.expose().to_owned(),
                cluster: None,
            });
        }
        let options = private_postgres::Options::new(data_dir.folder().join("postgres")).fresh(fresh);
        let cluster = spawn_blocking(|| Cluster::start_supervised(options)).await??;
        Ok(Self {
            url: cluster.url("postgres"),
            cluster: Some(cluster),
        })
    }

    /// Migrates the database and marks it as a sandbox.
    pub(super) async fn migrate_and_mark(
        &self,
        database: &Database,
        layout: Layout,
        data_dir: &DataDir,
    ) -> anyhow::Result<()> {
        migrate(&self.url, drop).await?;
        // No other program uses it.
        finish(&self.url).await?;
        if layout == Layout::Citus {
            distribute(&self.url, false).await?;
        }
        database.set_mark(MARK, SANDBOX).await?;
        data_dir.remove(CLAIM)
    }

    /// Stops the private cluster.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        if let Some(cluster) = self.cluster {
            spawn_blocking(move || cluster.stop())
                .await?
                .context("PostgreSQL was not ended properly")?;
        }
        Ok(())
    }
}

/// Fails unless the configured database is empty or a sandbox's. The claim records that it was, in case a start
/// is killed between the migrations and the mark, when no seller is there yet.
async fn claim(loaded: &Loaded, data_dir: &DataDir, url: &Secret) -> anyhow::Result<()> {
    let source = loaded.source("database.url").unwrap_or_default();
    let database = wiring::database(&loaded.config)?;
    let fits = require_schema(&database, true).await;
    fits.with_context(|| format!("the database named in {source} cannot be used"))?;
    let is_claimed = data_dir.read(CLAIM)?.as_deref() == Some(url.expose());
    let is_free = is_free(&database, is_claimed).await;
    if !is_free.context("cannot look into the database")? {
        bail!(
            "the database named in {source} holds data and is not marked as a sandbox, so it is left alone: name an \
             empty one, or none to use a private PostgreSQL"
        )
    }
    data_dir.write(CLAIM, url.expose().as_bytes())
}

/// Whether it is empty, or a sandbox's, or one that a start has claimed and not filled.
async fn is_free(database: &Database, is_claimed: bool) -> Result<bool, StoreError> {
    Ok(database.is_empty().await?
        || database.mark(MARK).await?.as_deref() == Some(SANDBOX)
        || is_claimed && database.has_sellers().await? == Some(false))
}
