//! The schema as commands find it that work on the database and are over soon: they do not wait for it as `serve` does.

use adapter_postgres::{Database, SchemaState};

use super::exit::Stopped;
use crate::readiness::{FORBIDDEN, READ_ONLY, STATEMENTS_FORGOTTEN, TooOld, not_english, not_unicode};

/// Refuses a database whose schema this program cannot work with, and says what to do.
pub(super) async fn require(database: &Database) -> anyhow::Result<()> {
    match database.schema_state().await? {
        SchemaState::Ready => Ok(()),
        SchemaState::StatementsForgotten => Err(unfit(STATEMENTS_FORGOTTEN)),
        SchemaState::ReadOnly => Err(unfit(READ_ONLY)),
        SchemaState::NotUnicode { encoding } => Err(unfit(not_unicode(&encoding))),
        SchemaState::NotEnglish { locale } => Err(unfit(not_english(&locale))),
        SchemaState::Forbidden => Err(unfit(FORBIDDEN)),
        SchemaState::Missing => Err(needs_migration("has no schema yet")),
        SchemaState::Behind { pending } => Err(needs_migration(&format!("lacks {pending} migrations"))),
        SchemaState::NeedsNewerBinary { oldest } => Err(TooOld { oldest }.into()),
    }
}

fn needs_migration(why: &str) -> anyhow::Error {
    unfit(format!("the database {why}: run `seller-api migrate`"))
}

fn unfit(why: impl Into<String>) -> anyhow::Error {
    Stopped::Schema(why.into()).into()
}

/// Refuses a database that no migration makes one to work with, such as one whose schema has moved on beyond this program.
pub(super) async fn refuse_newer(database: &Database) -> anyhow::Result<()> {
    match database.schema_state().await? {
        SchemaState::NeedsNewerBinary { oldest } => Err(TooOld { oldest }.into()),
        SchemaState::StatementsForgotten => Err(unfit(STATEMENTS_FORGOTTEN)),
        SchemaState::ReadOnly => Err(unfit(READ_ONLY)),
        SchemaState::NotUnicode { encoding } => Err(unfit(not_unicode(&encoding))),
        SchemaState::NotEnglish { locale } => Err(unfit(not_english(&locale))),
        SchemaState::Forbidden => Err(unfit(FORBIDDEN)),
        SchemaState::Ready | SchemaState::Missing | SchemaState::Behind { .. } => Ok(()),
    }
}
