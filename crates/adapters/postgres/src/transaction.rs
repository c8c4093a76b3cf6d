//! An open transaction and its ends.

use std::{
    panic::Location,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::QueryResult;
use diesel_async::{AsyncPgConnection, SimpleAsyncConnection, pooled_connection::deadpool::Object};
use futures_util::join;
use kernel::{CommitError, StoreError};
use orders::PollSchedule;
use tokio::{runtime::Handle, sync::Notify, time::Instant};
use tracing::Span;
use usecases::Transaction;

use crate::{
    error::{Silence, is_surely_undone, store_error},
    meters::TransactionTimes,
    outbox::Outbox,
    pending::{Pending, Write, send_all},
    sealing::Sealing,
    spans,
};

/// No transaction lasts longer.
pub(crate) const TRANSACTION_MAX: Duration = Duration::from_secs(10);
/// What a statement's answer may take on its way, on top of the time that the server gives the statement.
const ON_THE_WAY: Duration = Duration::from_millis(500);
/// A rollback that takes longer is left to the end of the connection.
const ROLLBACK_MAX: Duration = Duration::from_secs(2);

/// A connection of the pool that may be in a transaction. Unless it is given back expressly, it is closed: the pool never
/// sees it again, and the server rolls back.
pub(crate) struct Leased(Option<Object<AsyncPgConnection>>);

impl Leased {
    pub(crate) fn new(connection: Object<AsyncPgConnection>) -> Self {
        Self(Some(connection))
    }

    #[expect(
        clippy::expect_used,
        reason = "it is there until `give_back`, which consumes the value, and until the drop"
    )]
    pub(crate) fn connection(&self) -> &AsyncPgConnection {
        self.0.as_deref().expect("the connection is leased")
    }

    /// Gives the connection back to the pool: no transaction is open on it.
    pub(crate) fn give_back(mut self) {
        drop(self.0.take());
    }

    async fn roll_back(self) {
        let mut connection = self.connection();
        let rolled_back = tokio::time::timeout(ROLLBACK_MAX, connection.batch_execute("rollback")).await;
        if matches!(rolled_back, Ok(Ok(()))) {
            self.give_back();
        }
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            drop(Object::take(connection));
        }
    }
}

/// What writing needs beside the database.
#[derive(Debug, Clone)]
pub(crate) struct Tools {
    pub(crate) sealing: Sealing,
    pub(crate) schedule: PollSchedule,
    /// Told of each commit that has woken a lane of deliveries.
    pub(crate) queued: Arc<Notify>,
}

/// A transaction: every port that changes something is implemented over it.
pub(crate) struct Tx {
    /// Nothing once the transaction has ended.
    leased: Option<Leased>,
    now: DateTime<Utc>,
    ends: Instant,
    statement_max: Duration,
    /// Statements that were begun and did not succeed, or have not yet.
    unsettled: AtomicUsize,
    pending: Pending,
    tools: Tools,
    times: TransactionTimes,
}

impl Tx {
    /// A transaction that has yet to be begun.
    pub(crate) fn new(
        leased: Leased,
        statement_timeout: Duration,
        tools: Tools,
        times: TransactionTimes,
    ) -> Self {
        Self {
            leased: Some(leased),
            now: DateTime::UNIX_EPOCH,
            ends: Instant::now() + TRANSACTION_MAX,
            statement_max: statement_timeout + ON_THE_WAY,
            unsettled: AtomicUsize::new(0),
            pending: Pending::default(),
            tools,
            times,
        }
    }

    /// It was begun at this instant of the database's clock.
    pub(crate) const fn begun(&mut self, now: DateTime<Utc>) {
        self.now = now;
    }

    /// It may have been begun or not: the connection is of no more use.
    pub(crate) fn never_begun(mut self) {
        drop(self.leased.take());
    }

    pub(crate) const fn tools(&self) -> &Tools {
        &self.tools
    }

    #[expect(
        clippy::expect_used,
        reason = "only `commit` and the drop take it, and both consume the value"
    )]
    pub(crate) fn connection(&self) -> &AsyncPgConnection {
        self.leased
            .as_ref()
            .expect("the transaction is open")
            .connection()
    }

    /// Waits for a statement over [`Self::connection`], and for the writes that go before it. Every statement goes through
    /// here or through [`Self::finish_with`], so that a transaction in which one failed or was given up is never taken for
    /// committed.
    #[track_caller]
    pub(crate) fn run<T>(
        &self,
        statement: impl Future<Output = QueryResult<T>>,
    ) -> impl Future<Output = Result<T, StoreError>> {
        let place = Location::caller();
        async move {
            let writes = self.pending.writes();
            let both = async {
                let (written, answer) = join!(send_all(&writes, self.connection()), statement);
                written?;
                answer.map_err(store_error)
            };
            let span = spans::of(TransactionTimes::WITHIN);
            spans::asked_at(&span, place);
            spans::of_many(&span, writes.len().saturating_add(1));
            self.settle(span, both).await
        }
    }

    /// Lets a write wait for the next read, or for the end.
    pub(crate) fn write_later(&self, write: Box<dyn Write>) {
        self.pending.add(write);
    }

    /// Notes what is told to others at the end.
    pub(crate) fn tell(&self, note: impl FnOnce(&mut Outbox)) {
        note(&mut self.pending.outbox());
    }

    /// Notes that a lane of deliveries was woken: workers of this process hear of it with the commit.
    pub(crate) fn wakes_lane(&self) {
        self.pending.wakes_lane();
    }

    /// Sends all that is still waiting, and `last` after it.
    pub(crate) async fn finish_with(&self, last: Option<Box<dyn Write>>) -> Result<(), StoreError> {
        let mut writes = self.pending.everything();
        writes.extend(last);
        if writes.is_empty() {
            return Ok(());
        }
        let span = spans::of(TransactionTimes::WITHIN);
        spans::of_many(&span, writes.len());
        self.settle(span, send_all(&writes, self.connection())).await
    }

    async fn settle<T>(
        &self,
        span: Span,
        statements: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let limit = self
            .statement_max
            .min(self.ends.saturating_duration_since(Instant::now()));
        self.unsettled.fetch_add(1, Ordering::Relaxed);
        let answer = tokio::time::timeout(limit, self.times.within.take_in(span, statements)).await;
        let answer = answer.map_err(|_| StoreError::from(Silence(limit)))??;
        self.unsettled.fetch_sub(1, Ordering::Relaxed);
        Ok(answer)
    }
}

#[async_trait]
impl Transaction for Tx {
    fn now(&self) -> DateTime<Utc> {
        self.now
    }

    async fn commit(mut self: Box<Self>) -> Result<(), CommitError> {
        self.finish_with(None).await.map_err(CommitError::RolledBack)?;
        if self.unsettled.load(Ordering::Relaxed) > 0 {
            return Err(CommitError::RolledBack(StoreError::unexpected(
                "a statement of this transaction had failed",
            )));
        }
        let Some(leased) = self.leased.take() else {
            return Err(CommitError::RolledBack(StoreError::unexpected(
                "the transaction had ended",
            )));
        };
        let mut connection = leased.connection();
        // In a transaction that has failed, COMMIT is answered with the tag ROLLBACK, which does not reach us. There the
        // statement before it fails, so that COMMIT is not carried out and the failure is seen.
        let limit = self.statement_max;
        let committed = self
            .times
            .commit
            .take(connection.batch_execute("select 1; commit"));
        match tokio::time::timeout(limit, committed).await {
            Ok(Ok(())) => {
                leased.give_back();
                if self.pending.has_woken() {
                    self.tools.queued.notify_one();
                }
                Ok(())
            }
            Ok(Err(error)) if is_surely_undone(&error) => Err(CommitError::RolledBack(store_error(error))),
            Ok(Err(error)) => Err(CommitError::Unknown(store_error(error))),
            Err(_) => Err(CommitError::Unknown(Silence(limit).into())),
        }
    }
}

impl Drop for Tx {
    fn drop(&mut self) {
        let Some(leased) = self.leased.take() else { return };
        if let Ok(runtime) = Handle::try_current() {
            drop(runtime.spawn(leased.roll_back()));
        }
    }
}
