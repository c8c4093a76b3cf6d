//! The requirement on a pooler between the program and the server: it must support named prepared statements,
//! that is, make them available on whichever server connection a transaction gets.

use std::sync::atomic::Ordering;
use std::time::Duration;

use kernel::StoreError;
use tokio::{time::timeout, try_join};
use tokio_postgres::{Client, Error, error::SqlState};

use super::{Connector, error::with_timeout};
use crate::ANSWER_TIMEOUT;

/// How long the check waits for a second server connection; a pooler with a single one provides none.
const SECOND_CONNECTION_TIMEOUT: Duration = Duration::from_millis(500);

/// How often the statement has to be found.
const ROUNDS: usize = 5;

const UNDECIDED: &str = "the pooler in front of the database has lost a prepared statement, and has no second connection \
    free to show that it keeps others: if it has only one, restart this process";

impl Connector {
    /// False if a prepared statement is not found again. Checks on two connections of its own, until it has
    /// succeeded, and again once a statement was lost: a pooler may be restarted with other settings, or another
    /// one take its place.
    pub(crate) async fn keeps_statements(&self) -> Result<bool, StoreError> {
        let check = with_timeout(ANSWER_TIMEOUT, async {
            let mut is_proven = self.is_proven.lock().await;
            let is_doubted = self.loses_statements.load(Ordering::Relaxed);
            if !*is_proven || is_doubted {
                let (preparing, blocking) =
                    try_join!(Box::pin(self.open_bare()), Box::pin(self.open_bare()))?;
                *is_proven = match is_still_prepared(&preparing, &blocking).await {
                    Ok(None) if is_doubted => return Err(StoreError::Unavailable(UNDECIDED.into())),
                    Ok(found) => found.unwrap_or(true),
                    Err(error) if is_statement_error(&error) => false,
                    Err(error) => return Err(StoreError::Unavailable(error.into())),
                };
                self.loses_statements.store(!*is_proven, Ordering::Relaxed);
            }
            Ok(*is_proven)
        });
        check.await
    }
}

/// Prepares a statement, and executes it while the server connection that prepared it is most likely busy: a
/// pooler hands out the most recently used one first. Other clients may come in between, hence the rounds. `None`
/// if there is no second connection.
async fn is_still_prepared(preparing: &Client, blocking: &Client) -> Result<Option<bool>, Error> {
    // Another process may use the same statement name for a different statement.
    let random = blocking
        .query_typed("select gen_random_uuid()::text", &[])
        .await?;
    let expected: String = random.first().map(|row| row.get(0)).unwrap_or_default();
    let statement = preparing.prepare(&format!("select '{expected}'")).await?;
    blocking.batch_execute("begin").await?;
    for _ in 0..ROUNDS {
        let found = timeout(SECOND_CONNECTION_TIMEOUT, preparing.query_one(&statement, &[])).await;
        let Ok(row) = found else { return Ok(None) };
        if row?.try_get::<_, String>(0).ok().as_ref() != Some(&expected) {
            return Ok(Some(false));
        }
        // Two messages: after the first one the pooler takes the connection back.
        try_join!(
            blocking.batch_execute("rollback"),
            blocking.batch_execute("begin")
        )?;
    }
    blocking.batch_execute("rollback").await?;
    Ok(Some(true))
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
