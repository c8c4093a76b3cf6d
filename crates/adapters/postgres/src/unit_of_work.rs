//! Opening transactions.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::sql_types::{Text, Timestamptz};
use diesel_async::{
    AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection, pooled_connection::deadpool::Pool,
};
use futures_util::join;
use kernel::StoreError;
use std::time::Duration;
use tokio::time::Instant;
use usecases::{Transaction, UnitOfWork};

use crate::{
    ANSWER_WITHIN,
    error::{pool_error, store_error, within},
    meters::{PoolWaits, TransactionTimes},
    statement::statement,
    transaction::{Leased, TRANSACTION_MAX, Tools, Tx},
};

/// A transaction waits for a row at most this long: longer than any other one holds it in the ordinary course.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) struct Units {
    pub(crate) pool: Pool<AsyncPgConnection>,
    pub(crate) statement_timeout: Duration,
    pub(crate) tools: Tools,
    pub(crate) waits: PoolWaits,
    pub(crate) times: TransactionTimes,
}

/// Reads the clock and bounds the transaction. The bounds hold for this transaction alone: a session's would stay on a
/// connection that PgBouncer then gives to somebody else.
struct Opening {
    statement_timeout: String,
    lock_timeout: String,
    idle_timeout: String,
}

statement!(Opening => (Timestamptz, Text, Text, Text):
    "select api_now(), set_config('statement_timeout', ", statement_timeout: Text,
    ", true), set_config('lock_timeout', ", lock_timeout: Text,
    ", true), set_config('idle_in_transaction_session_timeout', ", idle_timeout: Text, ", true)");

#[async_trait]
impl UnitOfWork for Units {
    async fn begin(&self) -> Result<Box<dyn Transaction>, StoreError> {
        Ok(Box::new(self.open_transaction().await?))
    }
}

impl Units {
    /// The wait for a connection and the begin are bounded together.
    pub(crate) async fn open_transaction(&self) -> Result<Tx, StoreError> {
        let ends = Instant::now() + ANSWER_WITHIN;
        let left = || ends.saturating_duration_since(Instant::now());
        let taken = async { self.waits.take(self.pool.get()).await.map_err(pool_error) };
        let leased = Leased::new(within(left(), taken).await?);
        let mut tx = Tx::new(
            leased,
            self.statement_timeout,
            self.tools.clone(),
            self.times.clone(),
        );
        let begun = within(left(), self.times.begin.take(self.open(tx.connection())));
        match begun.await {
            Ok(now) => {
                tx.begun(now);
                Ok(tx)
            }
            Err(error) => {
                tx.never_begun();
                Err(error)
            }
        }
    }

    /// BEGIN and what follows it are sent together and cost one round trip.
    async fn open(&self, connection: &AsyncPgConnection) -> Result<DateTime<Utc>, StoreError> {
        let (mut first, mut second) = (connection, connection);
        let opening = Opening {
            statement_timeout: milliseconds(self.statement_timeout),
            lock_timeout: milliseconds(LOCK_TIMEOUT.min(self.statement_timeout)),
            idle_timeout: milliseconds(TRANSACTION_MAX),
        };
        let begun = first.batch_execute("begin isolation level read committed read write");
        let (begun, opened) = join!(
            begun,
            opening.get_result::<(DateTime<Utc>, String, String, String)>(&mut second)
        );
        begun.map_err(store_error)?;
        Ok(opened.map_err(store_error)?.0)
    }
}

fn milliseconds(time: Duration) -> String {
    time.as_millis().to_string()
}
