//! The statements over a column of sealed values, the same for each.

use diesel::{
    QueryResult,
    pg::Pg,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sql_types::{Array, BigInt, Binary, Bool, Nullable, Text},
};

use super::{PAGE, SealedPlace, columns::Place};

/// Pieces of SQL one after another.
fn push(out: &mut AstPass<'_, '_, Pg>, pieces: &[&str]) {
    for piece in pieces {
        out.push_sql(piece);
    }
}

/// The id of the key that sealed a value: its first byte is the id's length. One that is empty has none.
fn push_key(out: &mut AstPass<'_, '_, Pg>, column: &str) {
    let length = ["get_byte(", column, " || '\\x00'::bytea, 0)"].concat();
    push(
        out,
        &[
            "encode(substring(",
            column,
            " from 2 for ",
            &length,
            "), 'escape')",
        ],
    );
}

/// Statements whose text depends on the column: they are kept prepared by that text.
macro_rules! statement_of_a_column {
    ($name:ident => $columns:ty) => {
        impl QueryId for $name {
            type QueryId = ();
            const HAS_STATIC_QUERY_ID: bool = false;
        }

        impl Query for $name {
            type SqlType = $columns;
        }
    };
}

/// A page of values, in the order of the primary key.
pub(super) struct Page {
    of: &'static Place,
    /// Whether values are to be read, and not only what seals them.
    values: bool,
    /// The id of the key whose values are not needed.
    besides: String,
    first: String,
    second: String,
    limit: i64,
}

impl Page {
    /// Which keys seal the values after a place.
    pub(super) fn keys(of: &'static Place, after: &SealedPlace) -> Self {
        Self {
            of,
            values: false,
            besides: String::new(),
            first: after.first.clone(),
            second: after.second.clone(),
            limit: PAGE.into(),
        }
    }

    /// The values after a place that another key has sealed than the one with this id.
    pub(super) fn others_than(key: &str, of: &'static Place, after: &SealedPlace) -> Self {
        Self {
            values: true,
            besides: key.to_owned(),
            ..Self::keys(of, after)
        }
    }
}

statement_of_a_column!(Page => (Text, Text, Text, Binary, Nullable<Binary>));

impl QueryFragment<Pg> for Page {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let &Place {
            table,
            column,
            binding,
            ref first,
            ref second,
        } = self.of;
        push(
            &mut out,
            &[
                "select ",
                first.text,
                " as n_first, ",
                second.text,
                " as n_second, ",
            ],
        );
        push_key(&mut out, column);
        push(&mut out, &[", ", binding, ", case when "]);
        out.push_bind_param::<Bool, _>(&self.values)?;
        out.push_sql(" and ");
        push_key(&mut out, column);
        out.push_sql(" <> ");
        out.push_bind_param::<Text, _>(&self.besides)?;
        push(
            &mut out,
            &[
                " then ",
                column,
                " end from ",
                table,
                " where ",
                column,
                " is not null and (",
            ],
        );
        push(&mut out, &[first.key, ", ", second.key, ") > (", first.open]);
        out.push_bind_param::<Text, _>(&self.first)?;
        push(&mut out, &[first.close, ", ", second.open]);
        out.push_bind_param::<Text, _>(&self.second)?;
        push(
            &mut out,
            &[
                second.close,
                ") order by ",
                first.key,
                ", ",
                second.key,
                " limit ",
            ],
        );
        out.push_bind_param::<BigInt, _>(&self.limit)
    }
}

/// Values in the place of others.
///
/// Rows that somebody else has locked are left out: with many rows locked in an order of its own, a statement that waited
/// could be one of two that wait for each other.
pub(super) struct Put {
    of: &'static Place,
    firsts: Vec<String>,
    seconds: Vec<String>,
    olds: Vec<Vec<u8>>,
    news: Vec<Vec<u8>>,
}

impl Put {
    /// Nothing yet.
    pub(super) const fn nothing(of: &'static Place) -> Self {
        Self {
            of,
            firsts: Vec::new(),
            seconds: Vec::new(),
            olds: Vec::new(),
            news: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, (first, second): (String, String), old: Vec<u8>, new: Vec<u8>) {
        self.firsts.push(first);
        self.seconds.push(second);
        self.olds.push(old);
        self.news.push(new);
    }

    pub(super) fn len(&self) -> u64 {
        u64::try_from(self.olds.len()).unwrap_or(u64::MAX)
    }
}

statement_of_a_column!(Put => ());

impl QueryFragment<Pg> for Put {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let &Place { table, column, .. } = self.of;
        let of_row =
            |part: &super::columns::Part, name: &str| [part.key, " = ", part.open, name, part.close].concat();
        let first = of_row(&self.of.first, "n_first");
        let second = of_row(&self.of.second, "n_second");
        let row = [first, second].join(" and ");
        out.push_sql("with held as materialized (select n_first, n_second, n_old, n_new from unnest(");
        out.push_bind_param::<Array<Text>, _>(&self.firsts)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Text>, _>(&self.seconds)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Binary>, _>(&self.olds)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Binary>, _>(&self.news)?;
        push(
            &mut out,
            &[
                ") as n (n_first, n_second, n_old, n_new) join ",
                table,
                " on ",
                &row,
            ],
        );
        push(
            &mut out,
            &[
                " where ",
                column,
                " = n_old for no key update of ",
                table,
                " skip locked) ",
            ],
        );
        push(
            &mut out,
            &[
                "update ",
                table,
                " set ",
                column,
                " = n_new from held where ",
                &row,
            ],
        );
        push(&mut out, &[" and ", column, " = n_old"]);
        Ok(())
    }
}

/// Some values of each key, among the first rows that come to hand.
pub(super) struct Sample {
    pub(super) of: &'static Place,
    /// How many rows are looked at.
    pub(super) rows: i64,
    /// How many values of a key are wanted.
    pub(super) values: i64,
}

statement_of_a_column!(Sample => (Text, Binary, Binary));

impl QueryFragment<Pg> for Sample {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let &Place {
            table,
            column,
            binding,
            ..
        } = self.of;
        out.push_sql(
            "select n_key, n_binding, n_sealed from (select n_key, n_binding, n_sealed, \
             row_number() over (partition by n_key) as n_place from (select ",
        );
        push_key(&mut out, column);
        push(
            &mut out,
            &[
                " as n_key, ",
                binding,
                " as n_binding, ",
                column,
                " as n_sealed from ",
                table,
            ],
        );
        push(&mut out, &[" where ", column, " is not null limit "]);
        out.push_bind_param::<BigInt, _>(&self.rows)?;
        out.push_sql(") as looked_at) as counted where n_place <= ");
        out.push_bind_param::<BigInt, _>(&self.values)
    }
}
