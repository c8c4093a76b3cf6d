//! `seller-api migrate`.

use std::{process::ExitCode, time::Duration};

use adapter_postgres::{Database, DatabaseSettings, MigrationStep};
use anyhow::Context as _;

use super::{block_on, output, quiet, schema};
use crate::{config::Loaded, logging};

/// Bring the database's schema up to date
///
/// Applies the migrations that this version has and the database lacks, each in a transaction of its own, under a lock:
/// two at once are harmless. Refuses a schema that needs a newer program. Uses `database.direct_url` where it is set, so that no pooler is between, else the database's
/// URL; needs no `keys.sealing`. A running `serve` of the version before goes on working. Ended half-way, by Ctrl-C or a lost
/// database, it may be run again: a migration is applied as a whole or not at all.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Args {}

const EXAMPLES: &str = "\
Examples:
  DATABASE_URL=postgres://seller_api:secret@db.internal/seller_api seller-api migrate
  SELLER_API__DATABASE__DIRECT_URL=postgres://… seller-api migrate --config /etc/seller-api.toml";

/// Within the time of one question, so that a host which says nothing is told by its name.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

impl Args {
    #[expect(clippy::unused_self, reason = "every command has the same shape")]
    pub(super) fn run(self, loaded: &Loaded) -> anyhow::Result<ExitCode> {
        logging::start(&quiet(loaded));
        let database = &loaded.config.database;
        let url = database.direct_url.as_ref().or(database.url.as_ref()).context(
            "no database is configured: set DATABASE_URL, or `database.direct_url` or `database.url`, to \
             postgres://user:password@host:5432/name",
        )?;
        let settings = DatabaseSettings {
            connect_timeout: CONNECT_TIMEOUT,
            ..database.settings(url.expose(), loaded.config.rate_limit.default)
        };
        block_on(async { schema::refuse_newer(&Database::new(settings)?).await })?;
        let report = adapter_postgres::migrate(url.expose(), &mut |step| say(&step))?;
        let count = report.applied.len();
        output::print(match count {
            0 => "the schema was up to date already".to_owned(),
            _ => format!("the schema is up to date; applied {count}"),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

fn say(step: &MigrationStep) {
    output::note(format_args!(
        "applying {} ({} of {})",
        step.name, step.number, step.of
    ));
}
