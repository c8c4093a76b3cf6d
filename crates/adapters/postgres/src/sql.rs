//! Hand-written SQL: text, values and row type of a statement. Each statement is prepared once per connection.
//!
//! Diesel caches the prepared statements of its query builder, but not those of `sql_query`. A statement with a query
//! id of its own is cached like the former.

use std::marker::PhantomData;

use chrono::{DateTime, TimeDelta, Utc};
use diesel::pg::Pg;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::serialize::ToSql;
use diesel::sql_types::HasSqlType;
use diesel::{QueryResult, sql_types};
use kernel::StoreError;
use uuid::Uuid;

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

/// Builds a statement from text with interleaved values, with its row type in front:
/// `sql!((Uuid, i64): "select id, seen from t where owner = ", owner, " and seen > ", seen, "")`.
macro_rules! sql {
    (@list) => { () };
    (@list $value:expr, $($rest:expr,)*) => { ($value, $crate::sql::sql!(@list $($rest,)*)) };
    ($row:ty: $first:expr $(, $value:expr, $text:expr)* $(,)?) => {{
        struct Id;
        $crate::sql::Sql::<Id, $row, _>::new(&[$first $(, $text)*], $crate::sql::sql!(@list $($value,)*))
    }};
}
pub(crate) use sql;

/// Declares a row: a struct whose fields are the columns in order.
macro_rules! row {
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $type:ty,)*
    }) => {
        $(#[$meta])*
        #[derive(diesel::Queryable)]
        $vis struct $name { $($(#[$field_meta])* $field_vis $field: $type,)* }

        impl $crate::sql::Value for $name {
            type Sql = ($(<$type as $crate::sql::Value>::Sql,)*);
        }
    };
}
pub(crate) use row;

/// A Rust type with its SQL type.
pub(crate) trait Value {
    type Sql;
}

macro_rules! values {
    ($($type:ty => $sql:ident,)*) => { $(impl Value for $type { type Sql = sql_types::$sql; })* };
}

values! {
    Uuid => Uuid,
    DateTime<Utc> => Timestamptz,
    bool => Bool,
    i16 => SmallInt,
    i32 => Integer,
    i64 => BigInt,
    f64 => Double,
    String => Text,
    &str => Text,
    Vec<u8> => Binary,
    &[u8] => Binary,
}

impl Value for () {
    type Sql = ();
}

impl<T: Value> Value for Option<T>
where
    T::Sql: sql_types::SqlType,
{
    type Sql = sql_types::Nullable<T::Sql>;
}

impl<T: Value> Value for Vec<T>
where
    T::Sql: sql_types::SqlType,
{
    type Sql = sql_types::Array<T::Sql>;
}

impl<T: Value> Value for &[T]
where
    T::Sql: sql_types::SqlType,
{
    type Sql = sql_types::Array<T::Sql>;
}

macro_rules! tuples {
    ($(($($name:ident),*))*) => { $(impl<$($name: Value),*> Value for ($($name,)*) { type Sql = ($($name::Sql,)*); })* };
}

tuples! { (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) (A, B, C, D, E, F) }

/// The values of a statement: `(first, (second, ()))`.
pub(crate) trait Binds {
    fn walk<'b>(&'b self, text: &[&'static str], out: AstPass<'_, 'b, Pg>) -> QueryResult<()>;
}

impl Binds for () {
    fn walk<'b>(&'b self, text: &[&'static str], mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        for piece in text {
            out.push_sql(piece);
        }
        Ok(())
    }
}

impl<T, Rest: Binds> Binds for (T, Rest)
where
    T: Value + ToSql<T::Sql, Pg>,
    Pg: HasSqlType<T::Sql>,
{
    fn walk<'b>(&'b self, text: &[&'static str], mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let (first, rest) = text.split_first().unwrap_or((&"", &[]));
        out.push_sql(first);
        out.push_bind_param::<T::Sql, _>(&self.0)?;
        self.1.walk(rest, out)
    }
}

/// Collects one value per item into an array parameter.
pub(crate) fn column<'a, A, T>(items: &'a [A], value: impl Fn(&'a A) -> T) -> Vec<T> {
    items.iter().map(value).collect()
}

/// A statement: `Id` identifies it, `Row` is its row type.
pub(crate) struct Sql<Id, Row, Values> {
    text: &'static [&'static str],
    values: Values,
    of: PhantomData<fn() -> (Id, Row)>,
}

impl<Id, Row, Values> Sql<Id, Row, Values> {
    pub(crate) const fn new(text: &'static [&'static str], values: Values) -> Self {
        Self {
            text,
            values,
            of: PhantomData,
        }
    }
}

impl<Id: 'static, Row, Values> QueryId for Sql<Id, Row, Values> {
    type QueryId = Id;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl<Id, Row: Value, Values> Query for Sql<Id, Row, Values> {
    type SqlType = Row::Sql;
}

impl<Id, Row, Values: Binds> QueryFragment<Pg> for Sql<Id, Row, Values> {
    fn walk_ast<'b>(&'b self, out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        self.values.walk(self.text, out)
    }
}

/// A statement whose rows have a type.
pub(crate) trait Returns {
    type Row: Send;
}

impl<Id, Row: Send, Values> Returns for Sql<Id, Row, Values> {
    type Row = Row;
}
