//! The SQL of a page.

use chrono::{DateTime, Utc};
use diesel::{
    QueryResult,
    pg::Pg,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sql_types::{BigInt, Text, Timestamptz, Uuid as SqlUuid},
};
use kernel::Keyset;
use uuid::Uuid;

use super::row::{OfferColumns, offer_columns};

/// Up to so many updated offers are sorted.
pub(super) const FEW: i64 = 5_000;
const FEW_AND_ONE: i64 = FEW + 1;

/// Which of a seller's offers a statement returns.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    /// All of them.
    Whole,
    /// Those created after an instant.
    CreatedAfter(DateTime<Utc>),
    /// Those created until an instant and updated after it, found by when they were updated.
    FewChanged(DateTime<Utc>),
    /// The same, found by when they were created.
    ManyChanged(DateTime<Utc>),
}

/// A run of rows in the list's order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slice {
    pub(super) seller: Uuid,
    pub(super) status: Option<&'static str>,
    pub(super) part: Part,
    pub(super) after: Option<Keyset>,
    pub(super) rows: i64,
}

/// The text differs with the filters, so it is kept prepared by its text.
impl QueryId for Slice {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for Slice {
    type SqlType = OfferColumns;
}

impl QueryFragment<Pg> for Slice {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        match &self.part {
            Part::FewChanged(instant) => self.few_changed(&mut out, instant),
            Part::Whole => self.walk(&mut out, None, None),
            Part::CreatedAfter(instant) => self.walk(&mut out, Some((" and created_at > ", instant)), None),
            Part::ManyChanged(instant) => {
                let changed = Some((" and updated_at > ", instant));
                self.walk(&mut out, Some((" and created_at <= ", instant)), changed)
            }
        }
    }
}

/// A comparison with an instant.
type Condition<'b> = Option<(&'static str, &'b DateTime<Utc>)>;

impl Slice {
    /// Walks the index by `created_at`.
    fn walk<'b>(
        &'b self,
        out: &mut AstPass<'_, 'b, Pg>,
        created: Condition<'b>,
        updated: Condition<'b>,
    ) -> QueryResult<()> {
        out.push_sql(concat!("select ", offer_columns!(), " from offers where "));
        of_seller(out, &self.seller, self.status.as_ref())?;
        for (comparison, instant) in [created, updated].into_iter().flatten() {
            out.push_sql(comparison);
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
        out.push_sql(concat!(
            "select ",
            offer_columns!(),
            " from (select created_at, id from ("
        ));
        updated_after(out, &self.seller, self.status.as_ref(), instant)?;
        out.push_sql(") updated where created_at <= ");
        out.push_bind_param::<Timestamptz, _>(instant)?;
        self.newest(out)?;
        out.push_sql(") page join offers on offers.id = page.id and offers.seller_id = ");
        out.push_bind_param::<SqlUuid, _>(&self.seller)?;
        out.push_sql(" order by offers.created_at desc, offers.id desc");
        Ok(())
    }

    fn newest<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        if let Some(after) = &self.after {
            out.push_sql(" and (created_at, id) < (");
            out.push_bind_param::<Timestamptz, _>(&after.at)?;
            out.push_sql(", ");
            out.push_bind_param::<SqlUuid, _>(&after.id)?;
            out.push_sql(")");
        }
        out.push_sql(" order by created_at desc, id desc limit ");
        out.push_bind_param::<BigInt, _>(&self.rows)
    }
}

/// Counts the offers updated after an instant, up to [`FEW`] and one more.
#[derive(Debug)]
pub(super) struct CountUpdated {
    pub(super) seller: Uuid,
    pub(super) status: Option<&'static str>,
    pub(super) instant: DateTime<Utc>,
}

impl QueryId for CountUpdated {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for CountUpdated {
    type SqlType = BigInt;
}

impl QueryFragment<Pg> for CountUpdated {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("select count(*) from (");
        updated_after(&mut out, &self.seller, self.status.as_ref(), &self.instant)?;
        out.push_sql(") updated");
        Ok(())
    }
}

/// The order, which nobody needs, keeps the planner on the index by `updated_at`: left
/// to itself it reads the table, where it supposes rows that match at every step.
fn updated_after<'b>(
    out: &mut AstPass<'_, 'b, Pg>,
    seller: &'b Uuid,
    status: Option<&'b &'static str>,
    instant: &'b DateTime<Utc>,
) -> QueryResult<()> {
    out.push_sql("select created_at, id from offers where ");
    of_seller(out, seller, status)?;
    out.push_sql(" and updated_at > ");
    out.push_bind_param::<Timestamptz, _>(instant)?;
    out.push_sql(" order by updated_at limit ");
    out.push_bind_param::<BigInt, _>(&FEW_AND_ONE)
}

fn of_seller<'b>(
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
    Ok(())
}
