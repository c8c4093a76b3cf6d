//! The SQL of a page.

use std::marker::PhantomData;

use chrono::{DateTime, Utc};
use diesel::{
    QueryResult,
    pg::Pg,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sql_types::{BigInt, Text, Timestamptz, Uuid as SqlUuid},
};
use kernel::{Keyset, PAGE_MAX};
use uuid::Uuid;

use super::Listed;

/// Up to so many updated things are sorted.
pub(super) const FEW: i64 = 5_000;
const FEW_AND_ONE: i64 = FEW + 1;
/// The largest page and the row that tells whether more follow.
const MOST: u16 = PAGE_MAX + 1;

/// A run of rows in a list's order.
#[derive(Clone, Copy)]
pub(crate) struct Slice<L> {
    pub(super) seller: Uuid,
    pub(super) status: Option<&'static str>,
    /// Only what came to be later.
    pub(super) newer_than: Option<DateTime<Utc>>,
    /// Only what came to be by then.
    pub(super) until: Option<DateTime<Utc>>,
    /// Only what was updated later.
    pub(super) updated_after: Option<DateTime<Utc>>,
    /// So few were updated later that they are found by that.
    pub(super) few: bool,
    pub(super) after: Option<Keyset>,
    pub(super) rows: i64,
    pub(super) list: PhantomData<L>,
}

impl<L> Slice<L> {
    /// The first rows after a place in the whole list.
    pub(super) const fn new(
        seller: Uuid,
        status: Option<&'static str>,
        after: Option<Keyset>,
        rows: i64,
    ) -> Self {
        Self {
            seller,
            status,
            newer_than: None,
            until: None,
            updated_after: None,
            few: false,
            after,
            rows,
            list: PhantomData,
        }
    }
}

/// The text differs with the filters, so it is kept prepared by its text.
impl<L> QueryId for Slice<L> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<L: Listed> Query for Slice<L> {
    type SqlType = L::Columns;
}

impl<L: Listed> QueryFragment<Pg> for Slice<L> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        match &self.updated_after {
            Some(instant) if self.few => self.few_changed(&mut out, instant),
            None if self.is_first() => self.first(&mut out),
            instant => self.walk(&mut out, instant.as_ref()),
        }
    }
}

impl<L: Listed> Slice<L> {
    const fn is_first(&self) -> bool {
        self.after.is_none() && self.newer_than.is_none() && self.until.is_none()
    }

    /// The newest of all, which is asked for most, by a plan that is kept: its values come from subqueries, since the planner
    /// takes a plan for known ones to be cheaper and would make it anew at each run, which costs more than reading the page.
    /// The limit that it knows holds it to the index even where one seller has most of the rows.
    fn first<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        push(out, &["select * from (select ", L::COLUMNS, " from ", L::TABLE]);
        out.push_sql(" where seller_id = (select ");
        out.push_bind_param::<SqlUuid, _>(&self.seller)?;
        out.push_sql("::uuid)");
        if let Some(status) = &self.status {
            out.push_sql(" and status = (select ");
            out.push_bind_param::<Text, _>(status)?;
            out.push_sql("::text)");
        }
        push(
            out,
            &[L::ONLY, " order by ", L::AT, " desc, ", L::ID, " desc limit "],
        );
        out.push_sql(&MOST.to_string());
        push(
            out,
            &[
                ") newest order by ",
                L::AT,
                " desc, ",
                L::ID,
                " desc limit (select ",
            ],
        );
        out.push_bind_param::<BigInt, _>(&self.rows)?;
        out.push_sql("::bigint)");
        Ok(())
    }

    /// Walks the list's own index.
    fn walk<'b>(
        &'b self,
        out: &mut AstPass<'_, 'b, Pg>,
        updated_after: Option<&'b DateTime<Utc>>,
    ) -> QueryResult<()> {
        push(out, &["select ", L::COLUMNS, " from ", L::TABLE, " where "]);
        of_seller::<L>(out, &self.seller, self.status.as_ref())?;
        self.between(out)?;
        if let Some(instant) = updated_after {
            out.push_sql(" and updated_at > ");
            out.push_bind_param::<Timestamptz, _>(instant)?;
        }
        self.newest(out)
    }

    /// Sorts the keys that the index by `updated_at` yields, then fetches the rows of the page.
    fn few_changed<'b>(
        &'b self,
        out: &mut AstPass<'_, 'b, Pg>,
        instant: &'b DateTime<Utc>,
    ) -> QueryResult<()> {
        let (at, id, name) = (L::AT, L::ID, L::NAME);
        push(
            out,
            &["select ", L::COLUMNS, " from (select ", at, ", ", id, " from ("],
        );
        updated_after::<L>(out, &self.seller, self.status.as_ref(), instant)?;
        out.push_sql(") updated where true");
        self.between(out)?;
        self.newest(out)?;
        push(out, &[") page join ", L::TABLE, " using (", id, ") where "]);
        push(out, &[name, ".seller_id = "]);
        out.push_bind_param::<SqlUuid, _>(&self.seller)?;
        push(
            out,
            &[" order by ", name, ".", at, " desc, ", name, ".", id, " desc"],
        );
        Ok(())
    }

    fn between<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        for (comparison, instant) in [(" > ", &self.newer_than), (" <= ", &self.until)] {
            if let Some(instant) = instant {
                push(out, &[" and ", L::AT, comparison]);
                out.push_bind_param::<Timestamptz, _>(instant)?;
            }
        }
        Ok(())
    }

    fn newest<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        if let Some(after) = &self.after {
            push(out, &[" and (", L::AT, ", ", L::ID, ") < ("]);
            out.push_bind_param::<Timestamptz, _>(&after.at)?;
            out.push_sql(", ");
            out.push_bind_param::<SqlUuid, _>(&after.id)?;
            out.push_sql(")");
        }
        push(out, &[" order by ", L::AT, " desc, ", L::ID, " desc limit "]);
        out.push_bind_param::<BigInt, _>(&self.rows)
    }
}

/// Counts what was updated after an instant, up to [`FEW`] and one more.
pub(super) struct CountUpdated<L> {
    seller: Uuid,
    status: Option<&'static str>,
    instant: DateTime<Utc>,
    list: PhantomData<L>,
}

impl<L> CountUpdated<L> {
    pub(super) const fn of(list: &Slice<L>, instant: DateTime<Utc>) -> Self {
        Self {
            seller: list.seller,
            status: list.status,
            instant,
            list: PhantomData,
        }
    }
}

impl<L> QueryId for CountUpdated<L> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<L: Listed> Query for CountUpdated<L> {
    type SqlType = BigInt;
}

impl<L: Listed> QueryFragment<Pg> for CountUpdated<L> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("select count(*) from (");
        updated_after::<L>(&mut out, &self.seller, self.status.as_ref(), &self.instant)?;
        out.push_sql(") updated");
        Ok(())
    }
}

/// The order, which nobody needs, keeps the planner on the index by `updated_at`: left
/// to itself it reads the table, where it supposes rows that match at every step.
fn updated_after<'b, L: Listed>(
    out: &mut AstPass<'_, 'b, Pg>,
    seller: &'b Uuid,
    status: Option<&'b &'static str>,
    instant: &'b DateTime<Utc>,
) -> QueryResult<()> {
    push(
        out,
        &["select ", L::AT, ", ", L::ID, " from ", L::TABLE, " where "],
    );
    of_seller::<L>(out, seller, status)?;
    out.push_sql(" and updated_at > ");
    out.push_bind_param::<Timestamptz, _>(instant)?;
    out.push_sql(" order by updated_at limit ");
    out.push_bind_param::<BigInt, _>(&FEW_AND_ONE)
}

fn of_seller<'b, L: Listed>(
    out: &mut AstPass<'_, 'b, Pg>,
    seller: &'b Uuid,
    status: Option<&'b &'static str>,
) -> QueryResult<()> {
    out.push_sql("seller_id = ");
    out.push_bind_param::<SqlUuid, _>(seller)?;
    if let Some(status) = status {
        out.push_sql(" and status = ");
        out.push_bind_param::<Text, _>(status)?;
    }
    out.push_sql(L::ONLY);
    Ok(())
}

fn push(out: &mut AstPass<'_, '_, Pg>, pieces: &[&str]) {
    for piece in pieces {
        out.push_sql(piece);
    }
}
