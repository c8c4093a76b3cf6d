//! What statements need beside their text.

use std::io::Write as _;

use chrono::TimeDelta;
use diesel::deserialize::{FromSql, FromSqlRow};
use diesel::expression::AsExpression;
use diesel::pg::{Pg, PgValue};
use diesel::serialize::{IsNull, Output, ToSql};
use diesel::sql_types::{Json, Nullable, SingleValue};
use diesel::{deserialize, serialize};
use kernel::StoreError;
use serde::{Deserialize, Serialize};

diesel::define_sql_function! {
    fn coalesce<T: SingleValue>(first: Nullable<T>, second: Nullable<T>) -> Nullable<T>;
}

/// A time span in microseconds for SQL, saturating at about 292 000 years.
pub(crate) fn microseconds(span: TimeDelta) -> i64 {
    span.num_microseconds().unwrap_or(i64::MAX)
}

/// The row of a statement that returns at most one. Several are an error: one may be another seller's.
pub(crate) fn at_most_one<T>(mut rows: Vec<T>) -> Result<Option<T>, StoreError> {
    let row = rows.pop();
    if !rows.is_empty() {
        return Err(StoreError::unexpected("a statement for one row returned several"));
    }
    Ok(row)
}

/// A leased row, if it can be read. An unreadable one is logged and skipped: returned as an error, it would
/// block all rows of its queue, again and again.
pub(crate) fn readable<T>(row: Result<T, StoreError>) -> Option<T> {
    let log =
        |error: &StoreError| tracing::error!(error = %error, "an unreadable row of a queue was skipped");
    row.inspect_err(log).ok()
}

/// Collects one value per item into an array parameter.
pub(crate) fn column<'a, A, T>(items: &'a [A], value: impl Fn(&'a A) -> T) -> Vec<T> {
    items.iter().map(value).collect()
}

/// A JSON document as in its column, not parsed yet.
#[derive(Debug, AsExpression, FromSqlRow)]
#[diesel(sql_type = Json)]
pub(crate) struct Document(Vec<u8>);

impl FromSql<Json, Pg> for Document {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        Ok(Self(value.as_bytes().to_vec()))
    }
}

impl ToSql<Json, Pg> for Document {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        out.write_all(&self.0)?;
        Ok(IsNull::No)
    }
}

impl Document {
    pub(crate) fn of(value: &impl Serialize) -> Result<Self, StoreError> {
        serde_json::to_vec(value)
            .map(Self)
            .map_err(StoreError::unexpected)
    }

    pub(crate) const fn length(&self) -> usize {
        self.0.len()
    }

    /// Errors name the position, never the text, which may be a buyer's data.
    pub(crate) fn read<'a, T: Deserialize<'a>>(&'a self, column: &str) -> Result<T, String> {
        serde_json::from_slice(&self.0)
            .map_err(|error| format!("{column} cannot be read at column {}", error.column()))
    }
}
