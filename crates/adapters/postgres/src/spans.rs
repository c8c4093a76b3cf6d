//! Spans of statements: what a trace tells of the database. They have the statement's name, and never its text or values.
//!
//! Only what is done for something that is traced itself has a span: what workers ask for over and over is of no use to a trace.

use std::panic::Location;

use tracing::{Instrument, Level, Span, field::Empty};

/// The target of everything that goes to traces and not to the log.
const SPANS: &str = "spans";

/// The span of a statement that the metrics know by this name, under the one that it is asked in.
pub(crate) fn of(statement: &'static str) -> Span {
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

/// Waits for the answer in the span. Of a failure it tells that it was one: its text may hold values.
pub(crate) async fn within<T, E>(span: Span, answer: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let answer = answer.instrument(span.clone()).await;
    if answer.is_err() {
        span.record("otel.status_code", "ERROR");
    }
    answer
}
