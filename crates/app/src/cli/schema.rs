//! The schema as commands find it that work on the database and are over soon: they do not wait for it as `serve` does.

use adapter_postgres::{Database, SchemaState};
use anyhow::bail;

use crate::readiness::TooOld;

/// Refuses a database whose schema this program cannot work with, and says what to do.
pub(super) async fn require(database: &Database) -> anyhow::Result<()> {
    match database.schema_state().await? {
        SchemaState::Ready => Ok(()),
        SchemaState::Missing => bail!("the database has no schema yet: run `seller-api migrate`"),
        SchemaState::Behind { pending } => {
            bail!("the database lacks {pending} migrations: run `seller-api migrate`")
        }
        SchemaState::NeedsNewerBinary { oldest } => Err(TooOld { oldest }.into()),
    }
}

/// Refuses a database whose schema has moved on beyond this program.
pub(super) async fn refuse_newer(database: &Database) -> anyhow::Result<()> {
    match database.schema_state().await? {
        SchemaState::NeedsNewerBinary { oldest } => Err(TooOld { oldest }.into()),
        SchemaState::Ready | SchemaState::Missing | SchemaState::Behind { .. } => Ok(()),
    }
}
