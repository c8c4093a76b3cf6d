//! What is measured and traced of the database. Handles are looked up where connections are made, never at a statement.
//!
//! Spans have a statement's name, and never its text or values. Only what is done for something that is traced itself has a
//! span: what workers ask for over and over is of no use to a trace.

use std::panic::Location;

use metrics::Histogram;
use tokio::time::Instant;
use tracing::{Instrument, Level, Span, field::Empty};

/// The target of everything that goes to traces and not to the log.
const SPANS: &str = "spans";

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

    /// Waits for a statement's answer in a span of its own, and records how long that took. One that is given up is not recorded.
    pub(crate) async fn take<T, E>(&self, answer: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        self.take_in(span(self.statement), answer).await
    }

    /// As [`Self::take`], in a span that was made for it.
    pub(crate) async fn take_in<T, E>(
        &self,
        span: Span,
        answer: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let begun = Instant::now();
        let answer = within(span, answer).await;
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

    /// Waits for a connection, and records how long that took, in vain or not.
    pub(crate) async fn take<F: Future>(&self, connection: F) -> F::Output {
        let begun = Instant::now();
        let connection = connection.await;
        self.0.record(begun.elapsed());
        connection
    }
}

/// How many questions go together as one statement.
pub(crate) struct BatchSizes(Histogram);

impl BatchSizes {
    pub(crate) fn of(statement: &'static str) -> Self {
        Self(metrics::histogram!("database_group_size", "statement" => statement))
    }

    pub(crate) fn record(&self, size: usize) {
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
    /// The name of all statements between the begin and the commit.
    pub(crate) const WITHIN: &str = "transaction";

    pub(crate) fn new() -> Self {
        Self {
            begin: StatementTimes::of("begin"),
            within: StatementTimes::of(Self::WITHIN),
            commit: StatementTimes::of("commit"),
        }
    }
}

/// The span of a statement of this name in the metrics, below the current one.
pub(crate) fn span(statement: &'static str) -> Span {
    if !tracing::span_enabled!(target: SPANS, Level::INFO) || Span::current().is_disabled() {
        return Span::none();
    }
    tracing::info_span!(
        target: SPANS,
        "statement",
        otel.name = statement,
        otel.kind = "client",
        otel.status_code = Empty,
        db.system.name = "postgresql",
        db.query.summary = statement,
        db.operation.batch.size = Empty,
        code.file.path = Empty,
        code.line.number = Empty,
    )
}

/// Notes how many questions, or writes, went together.
pub(crate) fn of_many(span: &Span, size: usize) {
    span.record("db.operation.batch.size", i64::try_from(size).unwrap_or(i64::MAX));
}

/// Notes which of the statements of a transaction it is: those have no names.
pub(crate) fn asked_at(span: &Span, place: &'static Location<'static>) {
    span.record("code.file.path", place.file());
    span.record("code.line.number", i64::from(place.line()));
}

/// Waits for the answer in the span. A failure is marked without its text, which may hold values.
pub(crate) async fn within<T, E>(span: Span, answer: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let answer = answer.instrument(span.clone()).await;
    if answer.is_err() {
        span.record("otel.status_code", "ERROR");
    }
    answer
}
