//! The pool's connections, and autocommitted single statements over them.

use std::sync::Arc;
use std::time::Duration;

use diesel::QueryResult;
use diesel_async::methods::{ExecuteDsl, LoadQuery};
use diesel_async::pooled_connection::deadpool::{Object, Pool};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection as _};
use futures_util::future::BoxFuture;
use kernel::{SellerId, StoreError};
use metrics::Histogram;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use tracing::Instrument as _;
use usecases::LockSet;

use super::Connector;
use super::error::{AnswerTimeout, ends_connection, store_error, with_timeout};
use crate::ANSWER_TIMEOUT;
use crate::observe::StatementTimes;
use crate::sql::at_most_one;
use crate::statement::{Prepared, Returns};
use crate::turns::{Admission, Turns};

/// Timeout of a rollback; after it, the connection is closed, which rolls back.
const ROLLBACK_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a statement whose caller has gone may still take. Opening another connection costs more than most of them, and
/// whoever resets requests could make the program do that for each.
const ABANDONED_TIMEOUT: Duration = Duration::from_millis(100);

/// A pooled connection that may be in a transaction. Unless it is returned, it is closed: it does not return
/// to the pool, and the server rolls back.
pub(crate) struct Leased {
    connection: Option<Object<AsyncPgConnection>>,
    /// For a statement in autocommit mode, its caller's place in its shares of the pool: see [`Drop`]. None for a unit of work,
    /// which has a statement timeout.
    abandoning: Option<(Arc<Connector>, Admission)>,
}

impl Leased {
    pub(crate) const fn new(
        connection: Object<AsyncPgConnection>,
        abandoning: Option<(Arc<Connector>, Admission)>,
    ) -> Self {
        Self {
            connection: Some(connection),
            abandoning,
        }
    }

    #[expect(
        clippy::expect_used,
        reason = "it is there until `return_to_pool`, which consumes the value, and until the drop"
    )]
    pub(crate) fn connection(&self) -> &AsyncPgConnection {
        self.connection.as_deref().expect("the connection is leased")
    }

    /// Gives the connection back to the pool: no transaction is open on it.
    pub(crate) fn return_to_pool(mut self) {
        drop(self.connection.take());
    }

    pub(crate) async fn roll_back(self) {
        let mut connection = self.connection();
        let rolled_back = tokio::time::timeout(ROLLBACK_TIMEOUT, connection.batch_execute("rollback")).await;
        if matches!(rolled_back, Ok(Ok(()))) {
            self.return_to_pool();
        }
    }
}

/// A statement under way either ends soon, and the pool has the connection again, or is cancelled, so that a caller that
/// repeats it while a lock is held leaves nothing behind. Until then the caller's share counts it.
impl Drop for Leased {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        let Some((connector, admission)) = self.abandoning.take() else {
            drop(Object::take(connection));
            return;
        };
        let ending = async move {
            let mut queued = &*connection;
            let ended = tokio::time::timeout(ABANDONED_TIMEOUT, queued.batch_execute("")).await;
            if !matches!(ended, Ok(Ok(()))) {
                connector.cancel(Object::take(connection), |connection| connection);
            }
            drop(admission);
        };
        // Where there is none, the program ends.
        if let Ok(runtime) = Handle::try_current() {
            drop(runtime.spawn(ending));
        }
    }
}

/// The connections of a pool, and the turns at them.
#[derive(Clone)]
pub(crate) struct Connections {
    pub(crate) connector: Arc<Connector>,
    pub(crate) pool: Pool<AsyncPgConnection>,
    pub(crate) turns: Arc<Turns>,
    /// How long callers wait for a connection, including opening a new one.
    pub(crate) waits: Histogram,
}

impl Connections {
    /// Waits up to `turn_timeout` for a turn, takes a connection and calls `begin`; at most a read's time limit in all. After the turn,
    /// the work is a task's: if the caller gives up, a connection that is being opened is still finished, and
    /// is in the pool for the next caller, who would have less time to open one. `begin` is not called for a
    /// caller that has gone.
    pub(crate) async fn take<T, F>(
        &self,
        locks: &LockSet,
        turn_timeout: Duration,
        begin: impl FnOnce(Object<AsyncPgConnection>, Admission) -> F + Send + 'static,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let ends = Instant::now() + ANSWER_TIMEOUT;
        let admission = self.turns.take(locks, turn_timeout).await?;
        let (pool, waits) = (self.pool.clone(), self.waits.clone());
        let (caller, _waiting) = oneshot::channel::<()>();
        let beginning = async move {
            let start = Instant::now();
            let connection = pool.get().await;
            waits.record(start.elapsed());
            let connection = connection.map_err(|error| StoreError::Unavailable(error.into()))?;
            if caller.is_closed() {
                return Err(AnswerTimeout(ANSWER_TIMEOUT).into());
            }
            begin(connection, admission).await
        };
        let task = tokio::spawn(beginning.in_current_span());
        let ended = timeout_at(ends, task).await;
        ended
            .map_err(|_| AnswerTimeout(ANSWER_TIMEOUT))?
            .map_err(StoreError::unexpected)?
    }
}

/// How long a statement waits for its share. The rest of its time is for itself: under more load than a share bears,
/// statements would begin at its end, be given up, and take their connections with them.
const TURN_TIMEOUT: Duration = Duration::from_secs(2);

/// Sends statements in autocommit mode.
#[derive(Clone)]
pub(crate) struct Autocommit {
    connections: Connections,
    /// The shares of the pool in which the statements run; empty for those outside of all shares.
    locks: LockSet,
    /// Whether they run in a database that is not adopted too.
    for_any_database: bool,
    times: StatementTimes,
    timeout: Duration,
}

impl Autocommit {
    /// `statement` is the label in the metrics.
    pub(crate) fn new(connections: Connections, statement: &'static str) -> Self {
        Self {
            connections,
            locks: LockSet::default(),
            for_any_database: false,
            times: StatementTimes::of(statement),
            timeout: ANSWER_TIMEOUT,
        }
    }

    /// For statements in a seller's share of the pool. Whoever sends them MUST NOT have a transaction in that
    /// share.
    pub(crate) fn of_seller(&self, seller: SellerId) -> Self {
        self.sharing(LockSet::of_seller(seller))
    }

    /// For statements in these shares of the pool, unless this handle has shares already.
    pub(crate) fn sharing(&self, locks: LockSet) -> Self {
        let mut shared = self.clone();
        if shared.locks == LockSet::default() {
            shared.locks = locks;
        }
        shared
    }

    /// For statements about the database itself, which run in one that is not adopted too.
    pub(crate) fn of_any_database(self) -> Self {
        Self {
            for_any_database: true,
            ..self
        }
    }

    /// For statements that may take longer than a read.
    pub(crate) fn within(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// All rows of a statement.
    pub(crate) fn rows<'t, S>(&'t self, statement: S) -> BoxFuture<'t, Result<Vec<S::Row>, StoreError>>
    where
        S: Returns + Send + 't,
        Prepared<S>: for<'c> LoadQuery<'t, &'c AsyncPgConnection, S::Row>,
    {
        Box::pin(
            self.ask(|leased| async move { Prepared(statement).get_results(&mut leased.connection()).await }),
        )
    }

    /// The row of a statement that returns at most one.
    pub(crate) fn row<'t, S>(&'t self, statement: S) -> BoxFuture<'t, Result<Option<S::Row>, StoreError>>
    where
        S: Returns + Send + 't,
        Prepared<S>: for<'c> LoadQuery<'t, &'c AsyncPgConnection, S::Row>,
    {
        let rows = self.rows(statement);
        Box::pin(async move { at_most_one(rows.await?) })
    }

    /// The number of rows that a statement changed.
    pub(crate) fn execute<'t, S>(&'t self, statement: S) -> BoxFuture<'t, Result<usize, StoreError>>
    where
        S: Send + 't,
        Prepared<S>: for<'c> ExecuteDsl<&'c AsyncPgConnection>,
    {
        Box::pin(
            self.ask(|leased| async move { Prepared(statement).execute(&mut leased.connection()).await }),
        )
    }

    /// Runs one statement with its timeout, including the waits for the share and for a connection.
    /// It is cancelled once nobody waits for it. A connection that does not respond, or no longer leads to the primary, is
    /// closed.
    pub(crate) async fn ask<T, F>(&self, statement: impl FnOnce(Arc<Leased>) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = QueryResult<T>>,
    {
        with_timeout(self.timeout, async {
            let taken = self
                .connections
                .take(&self.locks, TURN_TIMEOUT, async |connection, admission| {
                    Ok((connection, admission))
                });
            let (connection, admission) = taken.await?;
            let connector = &self.connections.connector;
            if self.for_any_database {
                connector.require_statements()?;
            } else {
                connector.require_usable()?;
            }
            let abandoning = Some((Arc::clone(connector), admission));
            let leased = Arc::new(Leased::new(connection, abandoning));
            let answer = self.times.measure(statement(Arc::clone(&leased))).await;
            let is_usable = !answer.as_ref().is_err_and(ends_connection);
            if let Some(mut leased) = Arc::into_inner(leased) {
                leased.abandoning.take();
                if is_usable {
                    leased.return_to_pool();
                }
            }
            let answer = answer.inspect_err(|error| connector.notice(error));
            answer.map_err(store_error)
        })
        .await
    }
}
