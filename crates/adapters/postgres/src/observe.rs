//! Metrics and traces of the database. Metric handles are created with connections, never per statement.
//!
//! Spans carry a statement's name, never its text or values. A span is made only within a traced operation:
//! the workers' repeated polls are of no use in a trace.

use std::panic::Location;

use kernel::SPANS;
use metrics::Histogram;
use tokio::time::Instant;
use tracing::{Instrument, Level, Span, field::Empty};

/// Statement durations, labelled by use.
#[derive(Clone)]
pub(crate) struct StatementTimes {
    statement: &'static str,
    times: Histogram,
}

impl StatementTimes {
    /// Durations for one use, a label with few distinct values.
    pub(crate) fn of(statement: &'static str) -> Self {
        Self {
            statement,
            times: metrics::histogram!("database_statement_duration_seconds", "statement" => statement),
        }
    }

    /// Awaits a statement's response in a new span and records its duration. A dropped statement is not
    /// recorded.
    pub(crate) async fn measure<T, E>(&self, answer: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        self.measure_in(span(self.statement), answer).await
    }

    /// As [`Self::measure`], in an existing span.
    pub(crate) async fn measure_in<T, E>(
        &self,
        span: Span,
        answer: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let begun = Instant::now();
        let answer = in_span(span, answer).await;
        self.times.record(begun.elapsed());
        answer
    }
}

/// The name of the phase of all statements between begin and commit.
pub(crate) const TRANSACTION: &str = "transaction";

/// A span for the statement of this name in the metrics, as a child of the current one.
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

/// Records the number of questions or writes in a batch.
pub(crate) fn record_batch_size(span: &Span, size: usize) {
    span.record("db.operation.batch.size", i64::try_from(size).unwrap_or(i64::MAX));
}

/// Records the source location of a transaction's statement, since these have no names.
pub(crate) fn record_location(span: &Span, place: &'static Location<'static>) {
    span.record("code.file.path", place.file());
    span.record("code.line.number", i64::from(place.line()));
}

/// Awaits the response in the span. A failure is marked without its text, which may contain values.
pub(crate) async fn in_span<T, E>(span: Span, answer: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let answer = answer.instrument(span.clone()).await;
    if answer.is_err() {
        span.record("otel.status_code", "ERROR");
    }
    answer
}
