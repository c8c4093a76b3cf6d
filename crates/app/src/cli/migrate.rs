//! `seller-api migrate`.

use std::sync::atomic::Ordering;

use adapter_postgres::{Database, DatabaseSettings, MissingMigration, SchemaState};
use anyhow::Context as _;
use kernel::error_chain;
use serde_json::{Value, json};

use crate::admin::listing::{Format, Listed};
use crate::command::note;
use crate::config::{Loaded, Secret};
use crate::readiness::require_schema;

#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Show the missing migrations, which locks they take and about how many rows those tables have, or with
    /// --finish what that would do, and change nothing
    #[arg(long, conflicts_with = "distribute")]
    dry_run: bool,
    #[command(flatten)]
    distribution: Distribution,
    /// Once every process runs this version: let the schema admit no older one, for good, and begin what an
    /// older one would misread
    #[arg(long, conflicts_with = "distribute")]
    finish: bool,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, clap::Args)]
struct Distribution {
    /// Also distribute offers and orders by seller over the workers of a Citus cluster; the database is its
    /// coordinator's
    #[arg(long)]
    distribute: bool,
    /// Distribute also if this locks the tables for long, since they hold many rows
    #[arg(long, requires = "distribute")]
    with_data: bool,
}

pub(super) async fn migrate(loaded: &Loaded, options: &Options) -> anyhow::Result<()> {
    let format = options.format;
    let database = &loaded.config.database;
    let url = database.direct_url.as_ref().or(database.url.as_ref()).context(
        "no database is configured: set DATABASE_URL, or `database.direct_url` or `database.url`, to \
         postgres://user:password@host:5432/name",
    )?;
    let settings = |url: &Secret| loaded.config.database_settings(url.expose());
    let serving = database.url.as_ref();
    if let Some(serving) = serving.filter(|_| database.direct_url.is_some())
        && let Ok(there) = Database::new(settings(serving))?.here().await
    {
        let here = Database::new(settings(url))?.here().await?;
        anyhow::ensure!(
            here == there,
            "`database.direct_url` leads to another database than `database.url`; nothing was changed"
        );
    }
    let was_finished = is_finished(settings(url), !options.finish).await?;
    if options.finish {
        if options.dry_run && !was_finished {
            let would = "the schema would admit no older version of the program any more, and the journal would begin, \
                         empty; no table would be locked";
            return Ok(format.said(&json!({ "finished": false, "already": false }), would)?);
        }
        if !options.dry_run {
            adapter_postgres::finish(url.expose()).await?;
        }
        let done = if was_finished {
            "the schema was finished already"
        } else {
            "the schema is finished: it admits no older version of the program any more"
        };
        return Ok(format.changed(&json!({ "finished": true, "already": was_finished }), done)?);
    }
    if options.dry_run {
        let missing = adapter_postgres::missing_migrations(url.expose()).await?;
        if missing.is_empty() {
            note("the schema is up to date");
            warn_of_fault(serving.map(settings)).await;
            return Ok(());
        }
        note("locks without a remark are exclusive, so that reads wait as well; rows are estimates");
        return Ok(format.list(&missing)?);
    }
    let applied = adapter_postgres::migrate(url.expose(), note).await?;
    let done = match applied.len() {
        0 => "the schema was up to date already".to_owned(),
        count => format!("the schema is up to date; applied {count}"),
    };
    let mut printed = format.changed(&json!({ "applied": applied }), done);
    if !is_finished(settings(url), true).await? {
        note(
            "it still admits the version before: once every process runs this one, run `seller-api migrate --finish`",
        );
    }
    let Distribution {
        distribute,
        with_data,
    } = options.distribution;
    if distribute {
        let is_new = adapter_postgres::distribute(url.expose(), with_data).await?;
        let done = if is_new {
            "the tables are distributed"
        } else {
            "the tables were distributed already"
        };
        printed = printed.and(format.changed(&json!({ "distributed": is_new }), done));
    }
    warn_of_fault(serving.map(settings)).await;
    Ok(printed?)
}

/// Whether the schema admits no program of the previous release. Fails if this program cannot use it; with
/// `migrates`, only if no migration can fix that.
async fn is_finished(settings: DatabaseSettings, migrates: bool) -> anyhow::Result<bool> {
    let database = Database::new(settings)?;
    require_schema(&database, migrates).await?;
    Ok(database.finished_flag().load(Ordering::Relaxed))
}

async fn warn_of_fault(serving: Option<DatabaseSettings>) {
    let Some(serving) = serving else { return };
    let cannot = |error: anyhow::Error| {
        Some(format!(
            "`database.url` cannot be used: {}",
            error_chain(error.as_ref())
        ))
    };
    if let Some(fault) = serving_fault(serving).await.unwrap_or_else(cannot) {
        note(format_args!("warning: {fault}"));
    }
}

/// Why the processes that serve cannot use what was migrated.
async fn serving_fault(serving: DatabaseSettings) -> anyhow::Result<Option<String>> {
    let serving = Database::new(serving)?;
    let state = serving.schema_state().await?;
    if !matches!(state, SchemaState::Ready | SchemaState::Missing) {
        return Ok(Some(format!("for `database.url`, {state}")));
    }
    if let Some(statements) = serving.missing_grants().await? {
        let forbidden = SchemaState::Forbidden { statements };
        return Ok(Some(format!("for `database.url`, {forbidden}")));
    }
    let elsewhere = "`database.url` leads by its search_path to another schema: there are no tables";
    Ok((state == SchemaState::Missing).then(|| elsewhere.to_owned()))
}

impl Listed for MissingMigration {
    const COLUMNS: &'static str = "migration locks rows";

    fn cell(&self, member: &str) -> Option<String> {
        let count = |(table, rows): (&&str, &Option<i64>)| {
            let rows = rows.map_or_else(|| "?".to_owned(), |rows| rows.to_string());
            format!("{table} {rows}")
        };
        (member == "rows").then(|| self.rows.iter().map(count).collect::<Vec<_>>().join(", "))
    }

    fn object(&self) -> Value {
        json!({ "migration": self.name, "locks": self.locks, "rows": self.rows })
    }
}
