//! What statements need beside their text.

use chrono::TimeDelta;
use kernel::StoreError;

/// A time span in microseconds for SQL, saturating at about 292 000 years.
pub(crate) fn microseconds(span: TimeDelta) -> i64 {
    span.num_microseconds().unwrap_or(i64::MAX)
}

/// The leased rows that can be read. An unreadable row is logged and skipped: returned as an error, it would block all
/// rows leased with it, again and again.
pub(crate) fn readable<T>(rows: impl Iterator<Item = Result<T, StoreError>>) -> Vec<T> {
    let log =
        |error: &StoreError| tracing::error!(error = %error, "an unreadable row of a queue was skipped");
    rows.filter_map(|row| row.inspect_err(log).ok()).collect()
}

/// Collects one value per item into an array parameter.
pub(crate) fn column<'a, A, T>(items: &'a [A], value: impl Fn(&'a A) -> T) -> Vec<T> {
    items.iter().map(value).collect()
}
