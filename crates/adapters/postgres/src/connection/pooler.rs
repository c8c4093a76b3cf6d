//! The requirement on a pooler between the program and the server: it must support named prepared statements, that is,
//! make them available on whichever server connection a transaction gets.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use kernel::StoreError;
use tokio::time::timeout;
use tokio_postgres::{Client, Error, SimpleQueryMessage, error::SqlState};

use super::{Connector, error::within};
use crate::ANSWER_WITHIN;

/// How long the check waits for a second server connection; a pooler with a single one provides none.
const PATIENCE: Duration = Duration::from_millis(500);

/// Whether prepared statements are known to be supported.
#[derive(Debug, Default)]
pub(crate) struct Pooler {
    is_proven: AtomicBool,
}

impl Pooler {
    /// False if a prepared statement is not found again. Checks on two connections of its own, until it has succeeded
    /// once.
    pub(crate) async fn keeps_statements(&self, connector: &Connector) -> Result<bool, StoreError> {
        if self.is_proven.load(Ordering::Acquire) {
            return Ok(true);
        }
        let asked = within(ANSWER_WITHIN, async {
            let (asking, holding) = (connector.open_bare().await?, connector.open_bare().await?);
            match finds_again(&asking, &holding).await {
                Ok(found) => Ok(found),
                Err(error) if tells_of_names(&error) => Ok(false),
                Err(error) => Err(StoreError::Unavailable(error.into())),
            }
        });
        let keeps = asked.await?;
        self.is_proven.store(keeps, Ordering::Release);
        Ok(keeps)
    }
}

/// Prepares a statement, and executes it while the server connection that prepared it is most likely busy: a pooler
/// hands out the most recently used one first.
async fn finds_again(asking: &Client, holding: &Client) -> Result<bool, Error> {
    // Another process may use the same statement name for a different statement.
    let drawn = holding.simple_query("select gen_random_uuid()").await?;
    let expected = drawn.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    });
    let expected = expected.unwrap_or_default();
    let statement = asking.prepare(&format!("select '{expected}'")).await?;
    holding.batch_execute("begin").await?;
    let found = match timeout(PATIENCE, asking.query_one(&statement, &[])).await {
        Ok(row) => row?.try_get::<_, String>(0).is_ok_and(|found| found == expected),
        Err(_) => true,
    };
    holding.batch_execute("rollback").await?;
    Ok(found)
}

/// True if a statement name is unknown, belongs to another process, or names a statement of another kind.
fn tells_of_names(error: &Error) -> bool {
    let codes = [
        SqlState::INVALID_SQL_STATEMENT_NAME,
        SqlState::DUPLICATE_PSTATEMENT,
        SqlState::PROTOCOL_VIOLATION,
    ];
    error.code().is_some_and(|code| codes.contains(code))
}
