//! Applies migrations, and says which ones are missing.

use std::{collections::BTreeMap, convert::Infallible, time::Duration};

use diesel::sql_types::Text;
use rust_embed::Embed;
use tokio::{select, time::sleep};
use tokio_postgres::{Client, SimpleQueryMessage, error::SqlState};

use crate::connection::error::is_permission_denied;
use crate::connection::url::DatabaseUrlError;
use crate::connection::{BEGIN, BEGIN_UNLIMITED, ConnectError, Connector, url};
use crate::layout::MAX_ROWS_WITHOUT_CONFIRMATION;
use crate::statement::statements;

statements! {
    "migrations.sql";
    /// Every migration run takes this advisory lock first; the bytes of "sellerap".
    TRY_LOCK: ();
    INDEX_PROGRESS: ();
    PLACE: ();
    VERSIONS: ();
    FORGET_FACTS: (Text);
    ADD_VERSION: (Text);
    FINISH: (Text);
    TABLE_ROWS: (Text);
}

/// The oldest program that a finished schema admits: the release that added operations whose effects older
/// ones would misread.
pub(crate) const OLDEST_IF_FINISHED: &str = "1.1.0";

/// Has a table of the locks that each migration takes.
const README: &str = include_str!("../../../../migrations/README.md");

/// The migrations. One with a `metadata.toml` has no transaction.
#[derive(Embed)]
#[folder = "../../../migrations"]
#[include = "*/up.sql"]
#[include = "*/metadata.toml"]
struct Files;

/// The names of all embedded migrations, in order.
fn embedded() -> Vec<String> {
    let names = Files::iter().filter_map(|path| path.strip_suffix("/up.sql").map(ToOwned::to_owned));
    let mut names = names.collect::<Vec<_>>();
    names.sort();
    names
}

/// The version of the migration of this name, as it is stored.
fn version(name: &str) -> &str {
    name.split('_').next().unwrap_or(name)
}

/// The versions of all embedded migrations.
pub(crate) fn embedded_versions() -> Vec<String> {
    embedded().iter().map(|name| version(name).to_owned()).collect()
}

/// The table as Diesel's own tools make it.
const CREATE_VERSIONS: &str = "create table if not exists __diesel_schema_migrations \
    (version varchar(50) primary key, run_on timestamp not null default CURRENT_TIMESTAMP)";
/// From this migration on, each statement is sent alone: see [`run`].
const FIRST_ALONE: &str = "0025";
const LOCK_PAUSE: Duration = Duration::from_millis(100);
/// Between two looks at an index that is being built.
const WATCH_PAUSE: Duration = Duration::from_secs(2);
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A migration that is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingMigration {
    pub name: String,
    /// Its locks on tables that are there before it, as `migrations/README.md` states them.
    pub locks: String,
    /// About how many rows each table has that `locks` names; None if it is not there, or was never analyzed.
    pub rows: BTreeMap<&'static str, Option<i64>>,
}

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why the migrations were not all applied. Those applied before the failure stay.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    #[error("the database URL {0}")]
    Url(#[from] DatabaseUrlError),
    /// The database cannot be reached, or the lock cannot be taken.
    #[error("the database cannot be reached")]
    Unreachable(#[source] Cause),
    #[error(
        "the role may not change the schema: let the URL of the migrations (`database.direct_url`, else `database.url`) name the role that \
         owns the database and its tables"
    )]
    Forbidden(#[source] Cause),
    #[error(
        "the search_path begins with another schema than the tables', and new ones would be created there: take it out of the URL, if it \
         is there, or run {statement} If those tables are another installation's, let search_path name this one's schema alone"
    )]
    AnotherSchema { statement: String },
    /// A migration failed and was rolled back.
    #[error("the migration {name} failed")]
    Failed {
        /// Its directory name.
        name: String,
        #[source]
        cause: Cause,
    },
    #[error(
        "the database is not on a Citus coordinator with workers: on every node CREATE EXTENSION citus, then call citus_set_coordinator_host \
         and citus_add_node on the coordinator"
    )]
    NoWorker,
    /// Nothing has changed.
    #[error(
        "the tables hold more than {MAX_ROWS_WITHOUT_CONFIRMATION} offers or orders, and are locked while these move: stop `serve` and \
         `worker`, then repeat with --with-data"
    )]
    HoldsData,
    /// A statement outside the migrations failed.
    #[error("the migrations could not be run")]
    Internal(#[source] Cause),
}

impl MigrateError {
    /// The failure of a statement: either the role lacks a right, or `otherwise`.
    pub(crate) fn of(cause: impl Into<Cause>, otherwise: impl FnOnce(Cause) -> Self) -> Self {
        let cause = cause.into();
        let is_forbidden = is_permission_denied(cause.as_ref());
        // The server's message alone, without the words that the client puts before it.
        let error = cause.downcast_ref().and_then(tokio_postgres::Error::as_db_error);
        let message = error.map(|error| match *error.code() {
            SqlState::LOCK_NOT_AVAILABLE | SqlState::T_R_DEADLOCK_DETECTED => {
                format!(
                    "{}: others work on its tables; run it again when they are done",
                    error.message()
                )
            }
            SqlState::DUPLICATE_TABLE => format!(
                "{}: another program's; give the service a database, or a schema, of its own",
                error.message()
            ),
            // Such as that of a Citus worker, which leads to the coordinator.
            _ => error.hint().map_or_else(
                || error.message().to_owned(),
                |hint| format!("{}: {hint}", error.message()),
            ),
        });
        let cause = message.map_or(cause, Cause::from);
        if is_forbidden {
            Self::Forbidden(cause)
        } else {
            otherwise(cause)
        }
    }
}

/// Applies the missing migrations, each in its own transaction or statement by statement. Waits while another
/// process migrates, so that concurrent runs are safe. `progress` is called with a line for people before each
/// migration, and every two seconds of an index's build.
///
/// A new database is finished at once, see [`finish`]: no older program has used it.
///
/// The URL may lead to the server or to a PgBouncer: the lock belongs to a transaction held open on its own
/// connection, not to a session.
pub async fn migrate(url: &str, progress: impl Fn(String) + Sync) -> Result<Vec<String>, MigrateError> {
    let connector = Connector::new(url::parse(url)?, CONNECT_TIMEOUT);
    let holder = connector.open_bare().await?;
    let taken = take_lock(&holder, &progress).await;
    taken.map_err(|error| MigrateError::Unreachable(error.into()))?;
    let client = connector.open_bare().await?;
    // The role's own limits would end the build of an index, which waits for others' snapshots.
    let unlimited = client
        .batch_execute("set statement_timeout = 0; set lock_timeout = 0; set time zone 'UTC'")
        .await;
    unlimited.map_err(|error| MigrateError::Unreachable(error.into()))?;
    // If this program is killed while it builds an index, the server stops, too, instead of going on into the
    // next run. Fails on servers whose operating system cannot notice it.
    let ends = client.batch_execute("set client_connection_check_interval = '200ms'");
    drop(ends.await);
    let watched = connector.open_bare().await?;
    let applied = select! {
        applied = apply(&client, &progress) => applied,
        never = watch(watched, &progress) => match never {},
    };
    // A pooler would give the session to others.
    let reset = "reset statement_timeout; reset lock_timeout; reset time zone; reset client_connection_check_interval";
    drop(client.batch_execute(reset).await);
    let applied = match applied {
        Ok(applied) if applied.first().is_some_and(|name| name.starts_with("0001_")) => {
            finish_over(&connector).await.map(|()| applied)
        }
        applied => applied,
    };
    // The lock ends with the connection in any case.
    drop(holder.batch_execute("commit").await);
    applied
}

impl From<ConnectError> for MigrateError {
    fn from(error: ConnectError) -> Self {
        Self::Unreachable(error.into())
    }
}

impl From<tokio_postgres::Error> for MigrateError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::of(error, Self::Internal)
    }
}

/// Begins a transaction that holds the lock and has no time limits.
///
/// It asks again and again, each time in a transaction of its own: an index that is built concurrently waits
/// for the end of each transaction that has a snapshot when it looks, as one has while it asks. So has a
/// prepared statement until its portal is closed, hence the simple protocol.
pub(crate) async fn take_lock(
    client: &Client,
    progress: impl Fn(String),
) -> Result<(), tokio_postgres::Error> {
    let mut tries = 0_u64;
    loop {
        client.batch_execute(BEGIN_UNLIMITED).await?;
        let answer = client.simple_query(TRY_LOCK.text).await?;
        let is_taken = |message: &SimpleQueryMessage| matches!(message, SimpleQueryMessage::Row(row) if row.get(0) == Some("t"));
        if answer.iter().any(is_taken) {
            return Ok(());
        }
        client.batch_execute("rollback").await?;
        tries += 1;
        if tries == 2 {
            progress("waiting for another process, which migrates".to_owned());
        }
        sleep(LOCK_PAUSE).await;
    }
}

/// Makes the schema admit no program of the previous release any more. The schema must be up to date. Running
/// processes notice it within seconds: an older one is not ready, and this one's begin what an older one
/// would misread.
pub async fn finish(url: &str) -> Result<(), MigrateError> {
    finish_over(&Connector::new(url::parse(url)?, CONNECT_TIMEOUT)).await
}

async fn finish_over(connector: &Connector) -> Result<(), MigrateError> {
    let client = connector.open_bare().await?;
    // The journal may be long by now.
    client.batch_execute(BEGIN_UNLIMITED).await?;
    client.execute(FINISH.text, &[&OLDEST_IF_FINISHED]).await?;
    client.batch_execute("commit").await?;
    Ok(())
}

/// Reports how far the index is that is being built. The connection is its own: the build waits for the end of
/// older snapshots, and in the lock's transaction one could last as long as that.
async fn watch(client: Client, progress: impl Fn(String)) -> Infallible {
    loop {
        sleep(WATCH_PAUSE).await;
        let built = client.simple_query(INDEX_PROGRESS.text).await;
        for message in built.unwrap_or_default() {
            if let SimpleQueryMessage::Row(row) = message {
                progress(row.get(0).unwrap_or_default().to_owned());
            }
        }
    }
}

async fn apply(client: &Client, progress: impl Fn(String)) -> Result<Vec<String>, MigrateError> {
    let pending = pending(client).await?;
    client.batch_execute(CREATE_VERSIONS).await?;
    let of = pending.len();
    for (n, name) in pending.iter().enumerate() {
        progress(format!("applying {name} ({} of {of})", n + 1));
        let failed = |cause| MigrateError::Failed {
            name: name.clone(),
            cause,
        };
        let done = run(client, name).await;
        if done.is_err() {
            // Ends its transaction, if it has one.
            drop(client.batch_execute("rollback").await);
        }
        done.map_err(|cause| MigrateError::of(cause, failed))?;
    }
    Ok(pending)
}

/// Runs a migration, and stores its version. Its statements are sent alone: several in one message would be a
/// transaction, in which no index is built concurrently; and Citus forwards the whole message for some of them.
async fn run(client: &Client, name: &str) -> Result<(), Cause> {
    let file = Files::get(&format!("{name}/up.sql")).ok_or("up.sql is not embedded")?;
    let text = str::from_utf8(&file.data)?;
    let in_transaction = Files::get(&format!("{name}/metadata.toml")).is_none();
    if in_transaction {
        client.batch_execute(BEGIN).await?;
        // So that Citus applies `set local lock_timeout` on the workers too; without Citus it has no effect.
        client
            .batch_execute("set local citus.propagate_set_commands = 'local'")
            .await?;
    } else {
        client.execute(FORGET_FACTS.text, &[&version(name)]).await?;
    }
    // Earlier ones have functions, within which a statement seems to end. Whoever distributed a database has them.
    if in_transaction && name < FIRST_ALONE {
        client.batch_execute(text).await?;
    } else {
        for statement in text.split_inclusive(";\n") {
            client.batch_execute(statement).await?;
        }
    }
    client.execute(ADD_VERSION.text, &[&version(name)]).await?;
    if in_transaction {
        client.batch_execute("commit").await?;
    }
    Ok(())
}

/// The names of the migrations that are not applied, in order.
async fn pending(client: &Client) -> Result<Vec<String>, MigrateError> {
    let mut pending = embedded();
    let place = client.query_one(PLACE.text, &[]).await?;
    if let Some(statement) = place.get(1) {
        return Err(MigrateError::AnotherSchema { statement });
    }
    if place.get(0) {
        for row in client.query(VERSIONS.text, &[]).await? {
            pending.retain(|name| version(name) != row.get::<_, &str>(0));
        }
    }
    Ok(pending)
}

/// The migrations that [`migrate`] would apply, in order.
pub async fn missing_migrations(url: &str) -> Result<Vec<MissingMigration>, MigrateError> {
    let client = Connector::new(url::parse(url)?, CONNECT_TIMEOUT)
        .open_bare()
        .await?;
    let mut missing = Vec::new();
    for name in pending(&client).await? {
        let locks = stated_locks(&name);
        let mut rows = BTreeMap::new();
        for table in locks.iter().flat_map(|locks| locks.split('`').skip(1).step_by(2)) {
            let count = client.query_one(TABLE_ROWS.text, &[&table]).await?;
            rows.insert(table, count.get(0));
        }
        missing.push(MissingMigration {
            name,
            locks: locks.join("; ").replace('`', ""),
            rows,
        });
    }
    Ok(missing)
}

/// The cells of the table in `migrations/README.md`; a row that begins with an ellipsis continues the one
/// above.
fn stated_locks(name: &str) -> Vec<&'static str> {
    let (mut locks, mut is_its) = (Vec::new(), false);
    for row in README.lines() {
        let mut cells = row.split(" | ").map(|cell| cell.trim_start_matches("| "));
        let (Some(head), Some(up)) = (cells.next(), cells.nth(2)) else {
            continue;
        };
        is_its = head.starts_with(name) || is_its && head.starts_with('…');
        locks.extend(is_its.then_some(up));
    }
    locks
}
