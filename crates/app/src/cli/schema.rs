//! The schema as commands find it that work on the database and are over soon: they do not wait for it as `serve` does.

use adapter_postgres::{Database, SchemaState};

use super::exit::Stopped;
use crate::readiness::{READ_ONLY, STATEMENTS_FORGOTTEN, TooOld};

/// Refuses a database whose schema this program cannot work with, and says what to do.
pub(super) async fn require(database: &Database) -> anyhow::Result<()> {
    match database.schema_state().await? {
        SchemaState::Ready => Ok(()),
        SchemaState::StatementsForgotten => Err(forgotten()),
        SchemaState::ReadOnly => Err(read_only()),
        SchemaState::Missing => Err(needs_migration("has no schema yet")),
        SchemaState::Behind { pending } => Err(needs_migration(&format!("lacks {pending} migrations"))),
        SchemaState::NeedsNewerBinary { oldest } => Err(TooOld { oldest }.into()),
    }
}

fn needs_migration(why: &str) -> anyhow::Error {
    Stopped::Schema(format!("the database {why}: run `seller-api migrate`")).into()
}

fn forgotten() -> anyhow::Error {
    Stopped::Schema(STATEMENTS_FORGOTTEN.to_owned()).into()
}

fn read_only() -> anyhow::Error {
    Stopped::Schema(READ_ONLY.to_owned()).into()
}

/// Refuses a database whose schema has moved on beyond this program.
pub(super) async fn refuse_newer(database: &Database) -> anyhow::Result<()> {
    match database.schema_state().await? {
        SchemaState::NeedsNewerBinary { oldest } => Err(TooOld { oldest }.into()),
        SchemaState::StatementsForgotten => Err(forgotten()),
        SchemaState::ReadOnly => Err(read_only()),
        SchemaState::Ready | SchemaState::Missing | SchemaState::Behind { .. } => Ok(()),
    }
}
