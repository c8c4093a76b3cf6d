//! What is measured of the database: how long statements take, by what they are for, how long a connection is waited for, and
//! how many questions go together. Handles are looked up where connections are made, never at a statement.

use metrics::Histogram;
use tokio::time::Instant;
use tracing::Span;

use crate::spans;

/// How long statements take, by what they are for.
#[derive(Clone)]
pub(crate) struct StatementTimes {
    statement: &'static str,
    times: Histogram,
}

impl StatementTimes {
    /// The times of statements for one use, which is a label of bounded choice.
    pub(crate) fn of(statement: &'static str) -> Self {
        Self {
            statement,
            times: metrics::histogram!("database_statement_duration_seconds", "statement" => statement),
        }
    }

    /// Waits for a statement's answer in a span of its own, and notes how long that took. One that is given up is not noted.
    pub(crate) async fn take<T, E>(&self, answer: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        self.take_in(spans::of(self.statement), answer).await
    }

    /// As [`Self::take`], in a span that was made for it.
    pub(crate) async fn take_in<T, E>(
        &self,
        span: Span,
        answer: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let begun = Instant::now();
        let answer = spans::within(span, answer).await;
        self.times.record(begun.elapsed());
        answer
    }
}

/// How long a connection of the pool is waited for, the opening of a new one included.
#[derive(Clone)]
pub(crate) struct PoolWaits(Histogram);

impl PoolWaits {
    pub(crate) fn new() -> Self {
        Self(metrics::histogram!("database_pool_wait_seconds"))
    }

    /// Waits for a connection, and notes how long that took, in vain or not.
    pub(crate) async fn take<F: Future>(&self, connection: F) -> F::Output {
        let begun = Instant::now();
        let connection = connection.await;
        self.0.record(begun.elapsed());
        connection
    }
}

/// How many questions go together as one statement.
pub(crate) struct GroupSizes(Histogram);

impl GroupSizes {
    pub(crate) fn of(statement: &'static str) -> Self {
        Self(metrics::histogram!("database_group_size", "statement" => statement))
    }

    pub(crate) fn note(&self, size: usize) {
        self.0
            .record(u32::try_from(size).map_or(f64::INFINITY, f64::from));
    }
}

/// How long the parts of transactions take.
#[derive(Clone)]
pub(crate) struct TransactionTimes {
    pub(crate) begin: StatementTimes,
    pub(crate) within: StatementTimes,
    pub(crate) commit: StatementTimes,
}

impl TransactionTimes {
    /// What all statements between the begin and the commit are called.
    pub(crate) const WITHIN: &str = "transaction";

    pub(crate) fn new() -> Self {
        Self {
            begin: StatementTimes::of("begin"),
            within: StatementTimes::of(Self::WITHIN),
            commit: StatementTimes::of("commit"),
        }
    }
}
