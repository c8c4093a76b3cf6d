//! The requirement on a pooler between the program and the server: it must support named prepared statements,
//! that is, make them available on whichever server connection a transaction gets.

use std::time::Duration;

use kernel::StoreError;
use tokio::{sync::Mutex, time::timeout};
use tokio_postgres::{Client, Error, error::SqlState};

use super::{Connector, error::with_timeout};
use crate::ANSWER_TIMEOUT;

/// How long the check waits for a second server connection; a pooler with a single one provides none.
const SECOND_CONNECTION_TIMEOUT: Duration = Duration::from_millis(500);

/// Whether prepared statements are known to be supported.
#[derive(Debug, Default)]
pub(crate) struct Pooler {
    /// Locked during a check: of two checks at once, one could take the server connection on which the other
    /// relies.
    is_proven: Mutex<bool>,
}

impl Pooler {
    /// False if a prepared statement is not found again. Checks on two connections of its own, until it has
    /// succeeded once.
    pub(crate) async fn supports_prepared_statements(
        &self,
        connector: &Connector,
    ) -> Result<bool, StoreError> {
        let check = with_timeout(ANSWER_TIMEOUT, async {
            let mut is_proven = self.is_proven.lock().await;
            if !*is_proven {
                let (preparing, blocking) = (connector.open_bare().await?, connector.open_bare().await?);
                *is_proven = match is_still_prepared(&preparing, &blocking).await {
                    Ok(found) => found,
                    Err(error) if is_statement_error(&error) => false,
                    Err(error) => return Err(StoreError::Unavailable(error.into())),
                };
            }
            Ok(*is_proven)
        });
        check.await
    }
}

/// Prepares a statement, and executes it while the server connection that prepared it is most likely busy: a
/// pooler hands out the most recently used one first.
async fn is_still_prepared(preparing: &Client, blocking: &Client) -> Result<bool, Error> {
    // Another process may use the same statement name for a different statement.
    let random = blocking
        .query_typed("select gen_random_uuid()::text", &[])
        .await?;
    let expected: String = random.first().map(|row| row.get(0)).unwrap_or_default();
    let statement = preparing.prepare(&format!("select '{expected}'")).await?;
    blocking.batch_execute("begin").await?;
    let found = match timeout(SECOND_CONNECTION_TIMEOUT, preparing.query_one(&statement, &[])).await {
        Ok(row) => row?.try_get::<_, String>(0).is_ok_and(|found| found == expected),
        Err(_) => true,
    };
    blocking.batch_execute("rollback").await?;
    Ok(found)
}

/// True if a statement name is unknown, belongs to another process, or names a statement of another kind. A
/// pooler that ends the connection has lost the server.
fn is_statement_error(error: &Error) -> bool {
    let codes = [
        SqlState::INVALID_SQL_STATEMENT_NAME,
        SqlState::DUPLICATE_PSTATEMENT,
        SqlState::PROTOCOL_VIOLATION,
    ];
    error
        .as_db_error()
        .is_some_and(|error| codes.contains(error.code()) && error.severity() != "FATAL")
}
