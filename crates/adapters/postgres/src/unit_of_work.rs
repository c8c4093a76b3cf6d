//! Transactions: how they begin, which statements they send, and how they end.
//!
//! A round trip costs more than a small statement. So writes whose result is not needed are queued and sent,
//! pipelined, with the next read or at the end. The outbox goes last: delivery queues are locked after
//! everything else, in the same order by all transactions, and for the shortest time.

use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::sql_types::{Text, Timestamptz};
use diesel::{QueryDsl, QueryResult};
use diesel_async::methods::{ExecuteDsl, LoadQuery};
use diesel_async::pooled_connection::deadpool::Object;
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use futures_util::future::{BoxFuture, join_all, try_join_all};
use futures_util::join;
use kernel::{Claim, StoreError, StoredResponse, TransactionError};
use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::Span;
use usecases::{LockSet, Transaction, Turn, UnitOfWork};

use crate::connection::BEGIN;
use crate::connection::error::{AnswerTimeout, is_rolled_back, store_error, with_timeout};
use crate::connection::pool::{Connections, Leased};
use crate::layout::Layout;
use crate::observe::{StatementTimes, TRANSACTION};
use crate::outbox::Outbox;
use crate::sealing::Sealing;
use crate::sql::at_most_one;
use crate::statement::{Only, Prepared, Returns, statements};
use crate::turns::Admission;
use crate::{ANSWER_TIMEOUT, idempotency, observe};

statements! {
    "unit_of_work.sql";
    OPEN: (Text, Text, Text) -> Opened;
    pub(crate) PLAN_BY_VALUES: ();
}

type Opened = Only<Timestamptz, DateTime<Utc>>;

diesel::table! {
    /// Only on Citus, where it stays empty.
    distributed_writes (id) {
        id -> SmallInt,
    }
}

/// Maximum duration of a transaction.
pub(crate) const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a transaction waits for its turn. The rest of [`ANSWER_TIMEOUT`] is for its connection and its begin, whose delay would
/// look like the database's.
const TURN_TIMEOUT: Duration = Duration::from_millis(2_200);
/// How long a transaction waits for a row lock: longer than another one usually holds it.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// Time for a statement's response on the network, in addition to the server's statement timeout.
const NETWORK_TIME: Duration = Duration::from_millis(500);

/// Opens transactions over the pool.
#[derive(Clone)]
pub(crate) struct PgUnitOfWork {
    pub(crate) connections: Connections,
    pub(crate) statement_timeout: Duration,
    pub(crate) layout: Layout,
    pub(crate) sealing: Sealing,
    /// Notified after each commit that has woken a delivery queue.
    pub(crate) queued: Arc<Notify>,
    /// The operating system's user of a command line.
    pub(crate) os_user: Option<String>,
    pub(crate) begin_times: StatementTimes,
    pub(crate) statement_times: StatementTimes,
    pub(crate) commit_times: StatementTimes,
}

#[async_trait]
impl UnitOfWork for PgUnitOfWork {
    async fn begin_within(
        &self,
        locks: &LockSet,
        limit: Duration,
    ) -> Result<Box<dyn Transaction>, StoreError> {
        let transaction = self.open_transaction(locks, limit.min(TURN_TIMEOUT)).await?;
        Ok(Box::new(transaction))
    }

    async fn turn(&self, locks: &LockSet, limit: Duration) -> Result<Turn, StoreError> {
        let limit = limit.min(ANSWER_TIMEOUT);
        self.connections.turns.take(locks, limit).await.map(Turn::new)
    }
}

impl PgUnitOfWork {
    pub(crate) async fn open_transaction(
        &self,
        locks: &LockSet,
        turn_timeout: Duration,
    ) -> Result<Tx, StoreError> {
        let units = self.clone();
        let begin = move |connection, admission| units.begin_on(connection, admission);
        self.connections.take(locks, turn_timeout, begin).await
    }

    async fn begin_on(
        self,
        connection: Object<AsyncPgConnection>,
        admission: Admission,
    ) -> Result<Tx, StoreError> {
        self.connections.connector.require_usable()?;
        let leased = Leased::new(connection, None);
        // PostgreSQL's transaction begins at some time after this.
        let sent = Instant::now();
        let begun = self.begin_times.measure(self.open(leased.connection()));
        // After a failure it is unknown whether the transaction has begun, so the connection is closed.
        let now = with_timeout(ANSWER_TIMEOUT, begun).await?;
        Ok(Tx {
            held: Some((leased, admission)),
            now,
            ends: sent + TRANSACTION_TIMEOUT,
            unsettled: AtomicUsize::new(0),
            writes: Mutex::default(),
            outbox: Mutex::default(),
            has_distributed_write: AtomicBool::default(),
            woken: Arc::default(),
            units: self,
        })
    }

    /// Sends BEGIN together with the statement that reads the clock and sets the timeouts, in one round trip.
    /// The timeouts apply to this transaction alone: session settings would stay on a connection that
    /// PgBouncer then gives to another client.
    async fn open(&self, connection: &AsyncPgConnection) -> Result<DateTime<Utc>, StoreError> {
        let statement = milliseconds(self.statement_timeout);
        let lock = milliseconds(LOCK_TIMEOUT.min(self.statement_timeout));
        let mut opening = vec![BEGIN.to_owned()];
        if self.layout == Layout::Citus {
            // Citus forwards SET LOCAL to the workers, but not set_config. It forwards the whole text of the
            // message, so each SET is sent alone.
            opening.extend([
                "set local citus.propagate_set_commands = 'local'".to_owned(),
                format!("set local statement_timeout = {statement}"),
                format!("set local lock_timeout = {lock}"),
            ]);
        }
        let reading = OPEN.bind((statement, lock, milliseconds(TRANSACTION_TIMEOUT)));
        let opening = opening
            .iter()
            .map(async |command| (&mut { connection }).batch_execute(command).await);
        let (begun, read) = join!(
            try_join_all(opening),
            reading.get_result::<Opened>(&mut { connection })
        );
        begun.map_err(store_error)?;
        let read = read.inspect_err(|error| self.connections.connector.notice(error));
        Ok(read.map_err(store_error)?.0)
    }
}

fn milliseconds(time: Duration) -> String {
    time.as_millis().to_string()
}

/// Sends a statement that waited for the next read or the end of the transaction, and checks its effect.
pub(crate) type Write =
    Box<dyn for<'c> FnOnce(&'c AsyncPgConnection) -> BoxFuture<'c, Result<(), StoreError>> + Send>;

/// A write of which the number of changed rows is checked.
pub(crate) fn checked<S>(
    statement: S,
    check: impl FnOnce(usize) -> Result<(), StoreError> + Send + Sync + 'static,
) -> Write
where
    S: Send + Sync + 'static,
    for<'c> Prepared<S>: ExecuteDsl<&'c AsyncPgConnection>,
{
    Box::new(|mut connection| {
        Box::pin(async move {
            let changed = Prepared(statement).execute(&mut connection).await;
            check(changed.map_err(store_error)?)
        })
    })
}

/// A write that must change this many rows of the table.
pub(crate) fn changing<S>(table: &'static str, rows: usize, statement: S) -> Write
where
    S: Send + Sync + 'static,
    for<'c> Prepared<S>: ExecuteDsl<&'c AsyncPgConnection>,
{
    checked(statement, move |changed| expect_rows(table, changed, rows))
}

/// A write that may change any number of rows.
pub(crate) fn changing_any<S>(statement: S) -> Write
where
    S: Send + Sync + 'static,
    for<'c> Prepared<S>: ExecuteDsl<&'c AsyncPgConnection>,
{
    checked(statement, |_| Ok(()))
}

/// Fails if a statement changed a different number of rows than expected.
pub(crate) fn expect_rows(table: &str, changed: usize, expected: usize) -> Result<(), StoreError> {
    if changed == expected {
        return Ok(());
    }
    Err(StoreError::unexpected(format!(
        "{changed} rows of {table} were saved instead of {expected}"
    )))
}

/// A transaction; implements every port that changes state.
pub(crate) struct Tx {
    /// None once the transaction has ended.
    held: Option<(Leased, Admission)>,
    now: DateTime<Utc>,
    ends: Instant,
    /// Statements that have failed, were dropped, or are still running.
    unsettled: AtomicUsize,
    writes: Mutex<Vec<Write>>,
    outbox: Mutex<Outbox>,
    /// Whether offers or orders were written.
    has_distributed_write: AtomicBool,
    /// Whether a sent statement has woken a delivery queue.
    woken: Arc<AtomicBool>,
    /// What has opened it.
    pub(crate) units: PgUnitOfWork,
}

impl Tx {
    /// How long a response to a statement may take.
    fn statement_max(&self) -> Duration {
        self.units.statement_timeout + NETWORK_TIME
    }

    #[expect(
        clippy::expect_used,
        reason = "only `commit` and the drop take it, and both consume the value"
    )]
    pub(crate) fn connection(&self) -> &AsyncPgConnection {
        let (leased, _) = self.held.as_ref().expect("the transaction is open");
        leased.connection()
    }

    /// All rows of a statement.
    #[track_caller]
    pub(crate) fn rows<'t, S>(&'t self, statement: S) -> BoxFuture<'t, Result<Vec<S::Row>, StoreError>>
    where
        S: Returns + Send + 't,
        Prepared<S>: LoadQuery<'t, &'t AsyncPgConnection, S::Row>,
    {
        Box::pin(self.run(async move { Prepared(statement).get_results(&mut self.connection()).await }))
    }

    /// The row of a statement that returns at most one.
    #[track_caller]
    pub(crate) fn row<'t, S>(&'t self, statement: S) -> BoxFuture<'t, Result<Option<S::Row>, StoreError>>
    where
        S: Returns + Send + 't,
        Prepared<S>: LoadQuery<'t, &'t AsyncPgConnection, S::Row>,
    {
        let rows = self.rows(statement);
        Box::pin(async move { at_most_one(rows.await?) })
    }

    /// The number of rows that a statement changed.
    #[track_caller]
    pub(crate) fn execute<'t, S>(&'t self, statement: S) -> BoxFuture<'t, Result<usize, StoreError>>
    where
        S: Send + 't,
        Prepared<S>: ExecuteDsl<&'t AsyncPgConnection>,
    {
        Box::pin(self.run(async move { Prepared(statement).execute(&mut self.connection()).await }))
    }

    /// Sends the queued writes and then a statement. Every statement goes through here or through
    /// [`Self::finish_with`], so that a transaction with a failed or dropped statement is never considered
    /// committed.
    #[track_caller]
    pub(crate) fn run<T: Send>(
        &self,
        statement: impl Future<Output = QueryResult<T>> + Send,
    ) -> impl Future<Output = Result<T, StoreError>> + Send {
        let place = Location::caller();
        async move {
            let writes = std::mem::take(&mut *self.writes.lock());
            let span = observe::span(TRANSACTION);
            observe::record_location(&span, place);
            observe::record_batch_size(&span, writes.len().saturating_add(1));
            let both = async {
                let (written, answer) = join!(send_all(writes, self.connection()), statement);
                written?;
                let answer = answer.inspect_err(|error| self.units.connections.connector.notice(error));
                answer.map_err(store_error)
            };
            self.settle(span, both).await
        }
    }

    /// Queues a statement until the next read or the end.
    pub(crate) fn write_later(&self, write: Write) {
        self.writes.lock().push(write);
    }

    /// The announcements written at the end.
    pub(crate) fn outbox(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock()
    }

    /// Call it in every transaction that writes offers or orders: on Citus it makes the commit two-phase.
    pub(crate) fn mark_distributed_write(&self) {
        let is_distributed = self.units.layout == Layout::Citus;
        if is_distributed && !self.has_distributed_write.swap(true, Ordering::Relaxed) {
            self.write_later(changing_any(diesel::delete(distributed_writes::table.find(1))));
        }
    }

    /// Records whether a delivery queue was woken: this process's workers are notified after the commit.
    pub(crate) fn wakes_queue(&self, is_woken: bool) {
        self.woken.fetch_or(is_woken, Ordering::Relaxed);
    }

    /// Sends all queued writes, and then `last`.
    pub(crate) async fn finish_with(&self, last: Option<Write>) -> Result<(), StoreError> {
        let mut writes = std::mem::take(&mut *self.writes.lock());
        writes.extend(std::mem::take(&mut *self.outbox()).into_writes(&self.woken));
        writes.extend(last);
        if writes.is_empty() {
            return Ok(());
        }
        let span = observe::span(TRANSACTION);
        observe::record_batch_size(&span, writes.len());
        self.settle(span, send_all(writes, self.connection())).await
    }

    async fn settle<T>(
        &self,
        span: Span,
        statements: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let limit = self
            .statement_max()
            .min(self.ends.saturating_duration_since(Instant::now()));
        self.unsettled.fetch_add(1, Ordering::Relaxed);
        let answer = self.units.statement_times.measure_in(span, statements);
        let answer = with_timeout(limit, answer).await?;
        self.unsettled.fetch_sub(1, Ordering::Relaxed);
        Ok(answer)
    }
}

/// Sends writes pipelined. The first failure is the cause of the later ones.
async fn send_all(writes: Vec<Write>, connection: &AsyncPgConnection) -> Result<(), StoreError> {
    let answers = join_all(writes.into_iter().map(|write| write(connection))).await;
    answers.into_iter().collect()
}

#[async_trait]
impl Transaction for Tx {
    fn now(&self) -> DateTime<Utc> {
        self.now
    }

    async fn complete(&self, claim: &Claim, answer: &StoredResponse) -> Result<(), StoreError> {
        idempotency::complete(self, claim, answer).await
    }

    async fn commit(mut self: Box<Self>) -> Result<(), TransactionError> {
        self.finish_with(None).await.map_err(TransactionError::Store)?;
        let rolled_back = |why: &str| Err(TransactionError::Store(StoreError::unexpected(why)));
        if AtomicUsize::load(&self.unsettled, Ordering::Relaxed) > 0 {
            return rolled_back("a statement of this transaction had failed");
        }
        let Some((leased, _admission)) = self.held.take() else {
            return rolled_back("the transaction had ended");
        };
        let mut connection = leased.connection();
        // In a failed transaction the server answers COMMIT with the tag ROLLBACK, which Diesel does not
        // report. In that case the statement sent before COMMIT fails, so COMMIT is not executed and the
        // failure is detected.
        let limit = self.statement_max();
        let commit = connection.batch_execute("select 1; commit");
        let committed = self.units.commit_times.measure(commit);
        match tokio::time::timeout(limit, committed).await {
            Ok(Ok(())) => {
                leased.return_to_pool();
                if AtomicBool::load(&self.woken, Ordering::Relaxed) {
                    self.units.queued.notify_one();
                }
                Ok(())
            }
            Ok(Err(error)) if is_rolled_back(&error) => Err(TransactionError::Store(store_error(error))),
            Ok(Err(error)) => Err(TransactionError::Unknown(store_error(error))),
            Err(_) => Err(TransactionError::Unknown(AnswerTimeout(limit).into())),
        }
    }
}

impl Drop for Tx {
    fn drop(&mut self) {
        let Some((leased, admission)) = self.held.take() else {
            return;
        };
        if let Ok(runtime) = Handle::try_current() {
            drop(runtime.spawn(async move {
                leased.roll_back().await;
                drop(admission);
            }));
        }
    }
}
