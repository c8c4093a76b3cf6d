//! Hand-written SQL that is prepared once per connection.

/// Gives a type its SQL and the types of the columns that come back. Pieces of text and binds alternate; a bind is a field with
/// its SQL type.
///
/// Diesel keeps prepared what its query builder makes, but not the text that is given to `sql_query`. A type with a query id
/// of its own is kept like the former.
macro_rules! statement {
    ($name:ident $(<$life:lifetime>)? => $columns:ty: $first:expr $(, $($field:ident).+: $sql:ty, $text:expr)* $(,)?) => {
        impl diesel::query_builder::QueryId for $name $(<$life>)? {
            type QueryId = statement!(@id $name $($life)?);
            const HAS_STATIC_QUERY_ID: bool = true;
        }

        impl diesel::query_builder::QueryFragment<diesel::pg::Pg> for $name $(<$life>)? {
            fn walk_ast<'b>(
                &'b self,
                mut out: diesel::query_builder::AstPass<'_, 'b, diesel::pg::Pg>,
            ) -> diesel::QueryResult<()> {
                out.push_sql($first);
                $(
                    out.push_bind_param::<$sql, _>(&self.$($field).+)?;
                    out.push_sql($text);
                )*
                Ok(())
            }
        }

        impl diesel::query_builder::Query for $name $(<$life>)? {
            type SqlType = $columns;
        }
    };
    (@id $name:ident) => { $name };
    (@id $name:ident $life:lifetime) => { $name<'static> };
}

pub(crate) use statement;
