//! Bringing the schema up to date.

use std::{sync::mpsc, thread};

use diesel::{
    migration::{Migration, MigrationSource},
    pg::Pg,
};
use diesel_async::{AsyncMigrationHarness, SimpleAsyncConnection};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};
use tokio::runtime;

use crate::connection::{
    ConnectError, Connector,
    error::is_forbidden,
    url::{self, DatabaseUrlError},
};

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../../migrations");

/// Everybody who migrates this database takes this advisory lock first; the bytes of "sellerap".
const LOCK: i64 = 0x7365_6c6c_6572_6170;
const CONNECT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// A migration that is about to be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationStep {
    /// Its folder's name, such as `0001_foundation`.
    pub name: String,
    /// Its number among those that are missing, from 1.
    pub number: usize,
    /// How many are missing.
    pub of: usize,
}

/// What has been done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationReport {
    /// The migrations that were applied now, in order; empty where none was missing.
    pub applied: Vec<String>,
}

/// Why the schema was not brought up to date. What had been applied by then stays.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// The URL is no good.
    #[error("the database URL {0}")]
    Url(#[from] DatabaseUrlError),
    /// The database cannot be reached, or the lock not be taken.
    #[error("the database cannot be reached")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The role may not change the schema.
    #[error(
        "the role may not change the schema: let the URL of the migrations (`database.direct_url`, else `database.url`) name the role that \
         owns the database and its tables"
    )]
    Forbidden(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A migration failed and was rolled back.
    #[error("the migration {name} failed")]
    Failed {
        /// Its folder's name.
        name: String,
        /// Why.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The machine has no thread left, or the like.
    #[error("the migrations could not be run")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Applies the migrations that are missing, each in a transaction of its own, and blocks until they are. Waits while somebody
/// else migrates, so that two at once are harmless. `progress` hears of each migration before it begins.
///
/// Works on a runtime in a thread of its own, so it may be called from anywhere. The URL has to lead to the server itself or
/// to a PgBouncer: the lock belongs to a transaction that is held open on a connection of its own, not to a session.
pub fn migrate(url: &str, progress: &mut dyn FnMut(MigrationStep)) -> Result<MigrationReport, MigrateError> {
    let connector = Connector::new(url::parse(url)?, CONNECT_TIMEOUT);
    let (steps, heard) = mpsc::channel();
    thread::scope(|scope| {
        let worker = scope.spawn(move || {
            // The harness blocks in place, which only this kind of runtime permits.
            let runtime = runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build();
            let runtime = runtime.map_err(|error| MigrateError::Internal(error.into()))?;
            runtime.block_on(under_lock(&connector, &steps))
        });
        heard.iter().for_each(progress);
        worker
            .join()
            .unwrap_or_else(|_| Err(MigrateError::Internal("the thread panicked".into())))
    })
}

async fn under_lock(
    connector: &Connector,
    steps: &mpsc::Sender<MigrationStep>,
) -> Result<MigrationReport, MigrateError> {
    let unreachable = |error: ConnectError| MigrateError::Unreachable(error.into());
    let holder = connector.open().await.map_err(unreachable)?;
    let lock = format!(
        "begin; set local statement_timeout = 0; set local lock_timeout = 0;
         set local idle_in_transaction_session_timeout = 0; select pg_advisory_xact_lock({LOCK})"
    );
    let taken = holder.connection().batch_execute(&lock).await;
    taken.map_err(|error| MigrateError::Unreachable(error.into()))?;
    let connection = connector.open_for_pool().await;
    let connection = connection.map_err(|error| MigrateError::Unreachable(error.into()))?;
    let mut harness = AsyncMigrationHarness::new(connection);
    let report = apply(&mut harness, steps);
    drop(harness);
    // The lock ends with the connection anyway.
    drop(holder.connection().batch_execute("commit").await);
    report
}

fn apply(
    harness: &mut impl MigrationHarness<Pg>,
    steps: &mpsc::Sender<MigrationStep>,
) -> Result<MigrationReport, MigrateError> {
    let pending = harness.pending_migrations(MIGRATIONS).map_err(|cause| {
        if is_forbidden(cause.as_ref()) {
            return MigrateError::Forbidden(cause);
        }
        MigrateError::Internal(cause)
    })?;
    let of = pending.len();
    let mut report = MigrationReport {
        applied: Vec::with_capacity(of),
    };
    for (n, migration) in pending.iter().enumerate() {
        let name = migration.name().to_string();
        // Whoever listened has gone: the migrations go on.
        let _ = steps.send(MigrationStep {
            name: name.clone(),
            number: n + 1,
            of,
        });
        harness.run_migration(migration).map_err(|cause| {
            if is_forbidden(cause.as_ref()) {
                return MigrateError::Forbidden(cause);
            }
            MigrateError::Failed {
                name: name.clone(),
                cause,
            }
        })?;
        report.applied.push(name);
    }
    Ok(report)
}

/// The versions of all embedded migrations, in order.
pub(crate) fn embedded_versions() -> diesel::migration::Result<Vec<String>> {
    let migrations: Vec<Box<dyn Migration<Pg>>> = MIGRATIONS.migrations()?;
    let mut versions = migrations
        .iter()
        .map(|m| m.name().version().to_string())
        .collect::<Vec<_>>();
    versions.sort();
    Ok(versions)
}
