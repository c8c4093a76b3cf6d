//! The statements in the `.sql` files. Each is prepared once per connection, as those of Diesel's query
//! builder are, and unlike those of `diesel::sql_query`.
//!
//! A file has one or more statements, each below a line `-- name: NAME`. `statements!` declares the SQL types
//! of a statement's parameters and its row, a struct that is `QueryableByName`; a test compares both with the
//! migrated schema.
//!
//! Where a statement returns whole rows of a table, its file has `*` for them, and the struct of the query
//! builder names their columns: `select n, … from (the statement) as offers` is sent, and read by position.
//! Of `*` itself PostgreSQL would refuse the prepared statement once a migration has added a column.

use std::borrow::Cow;
use std::marker::PhantomData;

use diesel::deserialize::{self, FromSql, FromSqlRow};
use diesel::dsl::{AsSelect, SqlTypeOf};
use diesel::expression::AsExpression;
use diesel::pg::{Pg, PgQueryBuilder};
use diesel::query_builder::{AstPass, Query, QueryBuilder as _, QueryFragment, QueryId};
use diesel::row::{NamedRow, Row};
use diesel::sql_types::{Record, Untyped};
use diesel::{QueryResult, QueryableByName, Selectable};

#[cfg(test)]
pub(crate) mod tests;

/// Declares the statements of a file beside the module: `statements! { "orders.sql"; ORDER: (Uuid, Text) ->
/// OrderRow; FORGET: (Uuid); ORDERS: (Uuid) -> Walked<PartRow> = "n, matches, is_end", PartRow; }`. After `=` are the columns
/// of the statement's own, and the struct that names those of the table.
macro_rules! statements {
    ($file:literal; $(
        $(#[$meta:meta])* $visibility:vis $name:ident: ($($parameter:ty),*) $(-> $row:ty $(= $own:literal, $table_row:ty)?)?;
    )*) => {
        $(
            $(#[$meta])*
            $visibility const $name: $crate::statement::Statement<($($parameter,)*), $crate::statement::statements!(@row $($row)?)> =
                $crate::statement::Statement::named(include_str!($file), stringify!($name))
                    $($(.selecting::<$table_row>($own))?)?;
            #[cfg(test)]
            inventory::submit! {
                $crate::statement::tests::Declared {
                    place: module_path!(),
                    name: stringify!($name),
                    text: || $crate::statement::tests::sent(&$name),
                    parameters: &[$(stringify!($parameter)),*],
                    read: $crate::statement::statements!(@read $($row)?),
                }
            }
        )*
    };
    (@row) => { () };
    (@row $row:ty) => { $row };
    (@read) => { None };
    (@read $row:ty) => { Some($crate::statement::tests::read::<$row>) };
}
pub(crate) use statements;

/// A statement of a file, with the SQL types of its parameters in order, and its row.
pub(crate) struct Statement<Parameters, Row> {
    pub(crate) text: &'static str,
    selection: Option<Selection>,
    /// A column of the text, and the one in place of it.
    column: Option<(&'static str, &'static str)>,
    of: PhantomData<fn(Parameters) -> Row>,
}

/// What is selected from a statement.
#[derive(Clone, Copy)]
struct Selection {
    own: &'static str,
    columns: fn(&mut PgQueryBuilder) -> QueryResult<()>,
    table: &'static str,
}

/// A struct of the query builder with the columns of a table.
pub(crate) trait TableRow:
    Selectable<Pg, SelectExpression: QueryFragment<Pg>>
    + FromSqlRow<SqlTypeOf<<Self as Selectable<Pg>>::SelectExpression>, Pg>
{
    const TABLE: &'static str;

    /// Reads the columns from this place on.
    fn at<'a>(place: usize, row: &impl Row<'a, Pg>) -> deserialize::Result<Self> {
        Self::build_from_row(&row.partial_row(place..row.field_count()))
    }
}

impl<Parameters: 'static, Row> Statement<Parameters, Row> {
    /// The statement below the line `-- name: NAME` of a file, up to the next such line. Evaluated by the
    /// compiler.
    #[expect(
        clippy::panic,
        reason = "evaluated by the compiler alone, as an error of the build"
    )]
    pub(crate) const fn named(file: &'static str, name: &str) -> Self {
        const MARK: &[u8] = b"-- name: ";
        let (text, name) = (file.as_bytes(), name.as_bytes());
        let (mut start, mut at) = (None, 0);
        while at < text.len() {
            if matches(text, at, MARK) {
                if let Some(start) = start {
                    return Self::new(file.split_at(at).0.split_at(start).1);
                }
                at += MARK.len();
                if matches(text, at, name) && matches(text, at + name.len(), b"\n") {
                    start = Some(at + name.len() + 1);
                }
            }
            at += 1;
        }
        match start {
            Some(start) => Self::new(file.split_at(start).1),
            None => panic!("the file has no statement of this name"),
        }
    }

    const fn new(text: &'static str) -> Self {
        Self {
            text: text.trim_ascii(),
            selection: None,
            column: None,
            of: PhantomData,
        }
    }

    /// Selects from it these columns of its own, and then those of a table.
    pub(crate) const fn selecting<T: TableRow>(mut self, own: &'static str) -> Self {
        self.selection = Some(Selection {
            own,
            columns: |out| T::construct_selection().to_sql(out, &Pg),
            table: T::TABLE,
        });
        self
    }

    /// The same with another column in place of one, wherever the text has it.
    pub(crate) fn with_column(mut self, column: &'static str, other: &'static str) -> Self {
        debug_assert!(self.text.contains(column), "the statement has no {column}");
        self.column = Some((column, other));
        self
    }

    /// Writes the text that is sent.
    fn write(&self, out: &mut PgQueryBuilder) -> QueryResult<()> {
        let text = match self.column {
            Some((column, other)) => Cow::from(self.text.replace(column, other)),
            None => self.text.into(),
        };
        let Some(Selection { own, columns, table }) = self.selection else {
            out.push_sql(&text);
            return Ok(());
        };
        for part in ["select ", own, ", "] {
            out.push_sql(part);
        }
        columns(out)?;
        for part in [" from (", &text, ") as ", table] {
            out.push_sql(part);
        }
        Ok(())
    }

    /// The statement with the values of its parameters: to Diesel a record, of which only the values are sent.
    pub(crate) fn bind<Values: AsExpression<Record<Parameters>>>(
        self,
        values: Values,
    ) -> Bound<Parameters, Row, Values::Expression> {
        Bound {
            statement: self,
            values: values.as_expression(),
        }
    }
}

impl<Row> Statement<(), Row> {
    /// The statement, which has no parameters.
    pub(crate) const fn bare(self) -> Bound<(), Row, ()> {
        Bound {
            statement: self,
            values: (),
        }
    }
}

/// Whether the text has the words there.
#[expect(
    clippy::indexing_slicing,
    reason = "evaluated by the compiler alone, which knows no iterators"
)]
const fn matches(text: &[u8], at: usize, words: &[u8]) -> bool {
    let mut n = 0;
    while n < words.len() {
        if at + n >= text.len() || text[at + n] != words[n] {
            return false;
        }
        n += 1;
    }
    true
}

/// A statement with the values of its parameters.
pub(crate) struct Bound<Parameters, Row, Values> {
    statement: Statement<Parameters, Row>,
    values: Values,
}

/// No id: Diesel finds the prepared statement by its text.
impl<Parameters, Row, Values> QueryId for Bound<Parameters, Row, Values> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<Parameters, Row, Values> Query for Bound<Parameters, Row, Values> {
    type SqlType = Untyped;
}

impl<Parameters: 'static, Row, Values: QueryFragment<Pg>> QueryFragment<Pg>
    for Bound<Parameters, Row, Values>
{
    /// Only the values: the text has the placeholders already, which Diesel would write with them. Diesel
    /// asks a reference to a statement for nothing but this, so that a statement is always sent by value.
    fn walk_ast<'b>(&'b self, out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        self.values.walk_ast(out)
    }

    fn to_sql(&self, out: &mut PgQueryBuilder, _: &Pg) -> QueryResult<()> {
        self.statement.write(out)
    }
}

/// A statement of the query builder that is prepared once, also where Diesel would prepare it at each run, as
/// it does with updates, since their text could vary. Those of this crate have one text, or a few.
pub(crate) struct Prepared<Q>(pub(crate) Q);

impl<Q: QueryId> QueryId for Prepared<Q> {
    type QueryId = Q::QueryId;
    const HAS_STATIC_QUERY_ID: bool = Q::HAS_STATIC_QUERY_ID;
}

impl<Q: Query> Query for Prepared<Q> {
    type SqlType = Q::SqlType;
}

impl<Q: QueryFragment<Pg>> QueryFragment<Pg> for Prepared<Q> {
    fn walk_ast<'b>(&'b self, out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        self.0.walk_ast(out)
    }

    fn to_sql(&self, out: &mut PgQueryBuilder, backend: &Pg) -> QueryResult<()> {
        self.0.to_sql(out, backend)
    }

    fn is_safe_to_cache_prepared(&self, _: &Pg) -> QueryResult<bool> {
        Ok(true)
    }
}

/// The first column of a row, where no other matters.
pub(crate) struct Only<Type, T>(pub(crate) T, PhantomData<fn(Type)>);

impl<Type, T: FromSql<Type, Pg>> QueryableByName<Pg> for Only<Type, T> {
    fn build<'a>(row: &impl NamedRow<'a, Pg>) -> deserialize::Result<Self> {
        Ok(Self(row.get_value::<Type, T, _>(0)?, PhantomData))
    }
}

/// A statement whose rows have a type: one of a file, or of the query builder with `as_select` or
/// `as_returning`.
pub(crate) trait Returns {
    type Row: Send;
}

impl<Parameters, Row: Send, Values> Returns for Bound<Parameters, Row, Values> {
    type Row = Row;
}

impl<Q: Query<SqlType = AsSelect<Row, Pg>>, Row: Selectable<Pg> + Send> Returns for Q {
    type Row = Row;
}
