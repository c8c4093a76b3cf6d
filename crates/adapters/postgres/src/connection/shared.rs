//! One connection that many callers share. It is opened on first use and reopened when it has died.

use std::sync::Arc;

use diesel::QueryResult;
use diesel_async::{AsyncPgConnection, RunQueryDsl, methods::LoadQuery};
use futures_util::future::BoxFuture;
use kernel::StoreError;
use tokio::sync::Mutex;

use super::error::{AnswerTimeout, ends_connection, store_error};
use super::{Connector, OpenConnection};
use crate::statement::{Prepared, Returns};
use crate::{ANSWER_TIMEOUT, observe::StatementTimes};

/// A connection on which several callers pipeline reads and single statements, never a transaction.
pub(crate) struct SharedConnection {
    connector: Arc<Connector>,
    current: Mutex<Option<Arc<OpenConnection>>>,
    /// Whether a statement that is given up is cancelled.
    cancels: bool,
    times: StatementTimes,
}

impl SharedConnection {
    /// `statement` is the label in the metrics; `cancels`: whether one that is given up is cancelled.
    pub(crate) fn new(connector: Arc<Connector>, statement: &'static str, cancels: bool) -> Self {
        Self {
            connector,
            current: Mutex::new(None),
            cancels,
            times: StatementTimes::of(statement),
        }
    }

    /// Runs one statement with the timeout of a read, including the time to open the connection.
    pub(crate) async fn ask<T, F>(
        &self,
        statement: impl FnOnce(Arc<OpenConnection>) -> F,
    ) -> Result<T, StoreError>
    where
        F: Future<Output = QueryResult<T>>,
    {
        let end = tokio::time::Instant::now() + ANSWER_TIMEOUT;
        let timed_out = |_| StoreError::from(AnswerTimeout(ANSWER_TIMEOUT));
        let open = tokio::time::timeout_at(end, self.connection())
            .await
            .map_err(timed_out)??;
        self.connector.require_usable()?;
        let answer = self.times.measure(statement(Arc::clone(&open)));
        match tokio::time::timeout_at(end, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                self.connector.notice(&error);
                if ends_connection(&error) {
                    self.discard(&open).await;
                }
                Err(store_error(error))
            }
            Err(elapsed) => {
                self.discard(&open).await;
                if self.cancels {
                    self.connector.cancel(open, |open| open.connection());
                }
                Err(timed_out(elapsed))
            }
        }
    }

    /// All rows of a statement.
    pub(crate) fn rows<'t, S>(&'t self, statement: S) -> BoxFuture<'t, Result<Vec<S::Row>, StoreError>>
    where
        S: Returns + Send + 't,
        Prepared<S>: for<'c> LoadQuery<'t, &'c AsyncPgConnection, S::Row>,
    {
        Box::pin(
            self.ask(|open| async move { Prepared(statement).get_results(&mut open.connection()).await }),
        )
    }

    async fn connection(&self) -> Result<Arc<OpenConnection>, StoreError> {
        let mut current = self.current.lock().await;
        if let Some(open) = current.as_ref().filter(|open| open.is_open()) {
            return Ok(Arc::clone(open));
        }
        let open = Arc::new(self.connector.open().await?);
        *current = Some(Arc::clone(&open));
        Ok(open)
    }

    /// The connection does not respond, or no longer leads to the primary: new callers get another one.
    /// Callers still waiting on it keep it until they time out.
    async fn discard(&self, dead: &Arc<OpenConnection>) {
        self.current.lock().await.take_if(|open| Arc::ptr_eq(open, dead));
    }
}
