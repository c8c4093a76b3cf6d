//! Rare reads, and single statements that are their own transaction, over the pool.

use std::sync::Arc;

use diesel::QueryResult;
use diesel_async::{AsyncPgConnection, pooled_connection::deadpool::Pool};
use kernel::StoreError;

use crate::{
    ANSWER_WITHIN,
    error::{ends_connection, pool_error, store_error, within},
    meters::{PoolWaits, StatementTimes},
    transaction::Leased,
};

/// A way to the pool for what is not part of a transaction.
#[derive(Clone)]
pub(crate) struct Reads {
    pool: Pool<AsyncPgConnection>,
    waits: PoolWaits,
    times: StatementTimes,
}

impl Reads {
    /// A way for the statements that the metrics know by this name.
    pub(crate) fn new(pool: Pool<AsyncPgConnection>, statement: &'static str) -> Self {
        Self {
            pool,
            waits: PoolWaits::new(),
            times: StatementTimes::of(statement),
        }
    }

    /// Runs one statement and waits for its answer as long as a read may take, getting the connection included. A
    /// connection that does not answer, or no longer leads to the primary, is closed.
    pub(crate) async fn ask<T, F>(&self, statement: impl FnOnce(Arc<Leased>) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = QueryResult<T>>,
    {
        within(ANSWER_WITHIN, async {
            let leased = Arc::new(Leased::new(
                self.waits.take(self.pool.get()).await.map_err(pool_error)?,
            ));
            let answer = self.times.take(statement(Arc::clone(&leased))).await;
            let is_of_use = !answer.as_ref().is_err_and(ends_connection);
            if is_of_use && let Some(leased) = Arc::into_inner(leased) {
                leased.give_back();
            }
            answer.map_err(store_error)
        })
        .await
    }
}
