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
    /// The URL for migrations.
    direct_url: String,
    /// The private PostgreSQL, restarted if it dies; `None` with a configured database.
    cluster: Option<Arc<Cluster>>,
}

impl SandboxDatabase {
    /// The configured database, claimed; otherwise a private cluster, started.
    pub(super) async fn open(loaded: &Loaded, data_dir: &DataDir, fresh: bool) -> anyhow::Result<Self> {
        let config = &loaded.config.database;
        if let Some(url) = &config.url {
            let direct = config.direct_url.as_ref().unwrap_or(url);
            claim(loaded, data_dir, [url, direct]).await?;
            return Ok(Self {
                url: url.expose().to_owned(),
                direct_url: direct.expose().to_owned(),
                cluster: None,
            });
        }
        let options = private_postgres::Options::new(data_dir.folder().join("postgres")).fresh(fresh);
        let cluster = spawn_blocking(|| Cluster::start_supervised(options)).await??;
        let url = cluster.url("postgres");
        Ok(Self {
            direct_url: url.clone(),
            url,
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
        migrate(&self.direct_url, drop).await?;
        // No other program uses it.
        finish(&self.direct_url).await?;
        if layout == Layout::Citus {
            distribute(&self.direct_url, false).await?;
        }
        database.set_mark(MARK, SANDBOX).await?;
        data_dir.remove(CLAIM)
    }

    /// Stops the private cluster.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        if let Some(cluster) = self.cluster {
            spawn_blocking(move || cluster.stop())
                .await?
                .context("PostgreSQL did not shut down cleanly")?;
        }
        Ok(())
    }
}

/// Fails unless each database that is named is empty or a sandbox's: that of the migrations need not be the
/// service's. The claim records that they were, in case a start is killed between the migrations and the mark,
/// when no seller is there yet.
async fn claim(loaded: &Loaded, data_dir: &DataDir, urls: [&Secret; 2]) -> anyhow::Result<()> {
    let claim = urls.map(Secret::expose).join("\n");
    let is_claimed = data_dir.read(CLAIM)?.as_deref() == Some(&*claim);
    for (key, url) in ["database.url", "database.direct_url"].into_iter().zip(urls) {
        let Some(source) = loaded.source(key) else {
            continue;
        };
        let mut config = loaded.config.clone();
        config.database.url = Some(url.clone());
        let database = wiring::database(&config)?;
        let fits = require_schema(&database, true).await;
        fits.with_context(|| format!("the database named in {source} cannot be used"))?;
        let is_free = is_free(&database, is_claimed).await;
        if !is_free.context("cannot look into the database")? {
            bail!(
                "the database named in {source} holds data and is not marked as a sandbox, so it is left alone: name an \
                 empty one, or none to use a private PostgreSQL"
            )
        }
    }
    data_dir.write(CLAIM, claim.as_bytes())
}

/// Whether it is empty, or a sandbox's, or one that a start has claimed and not filled.
async fn is_free(database: &Database, is_claimed: bool) -> Result<bool, StoreError> {
    Ok(database.is_empty().await?
        || database.mark(MARK).await?.as_deref() == Some(SANDBOX)
        || is_claimed && database.has_sellers().await? == Some(false))
}
