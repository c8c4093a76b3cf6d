//! Pages of a seller's list, newest first.
//!
//! A page is an index scan that starts at its first row and stops at its last. Pages without a filter by time, the most
//! frequent ones, are read in batches, except on Citus. Every other combination of filters is a statement of its own with its own plan.
//!
//! # `updated_after`
//!
//! A list is sorted by creation and filtered by `updated_at`, which no single index serves. Nothing is updated before
//! it is created, so the list has two consecutive parts:
//! 1. rows *created* after the instant: all of them match, and the list's own index yields them without a miss;
//! 2. older rows *updated* since. While at most [`FEW`] rows of the seller were updated after the instant, they are found
//!    by the index on `updated_at` and sorted. A page then costs at most [`FEW`] index entries, whatever its depth and
//!    the number of rows; clients that poll for changes are in this case. With more updates, the list's own index is
//!    walked and unchanged rows are skipped: about `size × older ÷ changed` rows a page if changes are spread evenly; at
//!    worst, if all changed rows are at the far end, one pass over the seller's older rows.

use std::{collections::BTreeSet, marker::PhantomData, sync::Arc};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::{
    QueryResult,
    pg::Pg,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sql_types::{Array, BigInt, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl, methods::LoadQuery};
use futures_util::future::try_join_all;
use kernel::{Keyset, MAX_PAGE_SIZE, Page, PageSize, SellerId, StoreError};
use uuid::Uuid;

use crate::{
    batch::{BatchQuery, Batcher},
    connection::{Connector, shared::SharedConnection},
    layout::Layout,
    sql::{Returns, Value, column},
};

/// At most this many updated rows are sorted.
const FEW: i64 = 5_000;
const FEW_AND_ONE: i64 = FEW + 1;
/// The largest page plus the row that shows whether more follow.
const MAX_ROWS: u16 = MAX_PAGE_SIZE + 1;

/// A listed table: one row per seller and item. It has an index by seller, timestamp and id, one by seller, status,
/// timestamp and id, and one by seller and `updated_at`, each over the listed rows.
pub(crate) trait Listed: Copy + Send + Sync + 'static {
    /// The name of its statements in the metrics.
    const STATEMENT: &'static str;
    /// The table, with its alias if it has one.
    const TABLE: &'static str;
    /// The name that qualifies its columns.
    const NAME: &'static str;
    /// The columns of a row, qualified by that name.
    const COLUMNS: &'static str;
    /// The timestamp column that sorts the list.
    const AT: &'static str;
    /// The column that breaks ties.
    const ID: &'static str;
    /// The condition of the list and its indexes, ` and …`, or empty.
    const ONLY: &'static str;
    type Row: Value + Send;
    /// The type of an item.
    type Item: Send + TryFrom<Self::Row, Error = StoreError>;

    /// Whose item it is, and its position in the list.
    fn key(item: &Self::Item) -> (SellerId, Keyset);
}

/// The filters of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filter {
    pub(crate) status: Option<&'static str>,
    /// Only items created later than this.
    pub(crate) newer_than: Option<DateTime<Utc>>,
    /// Only items updated later than this.
    pub(crate) updated_after: Option<DateTime<Utc>>,
}

/// Reads pages of a list for one server thread.
pub(crate) struct List<L: Listed>
where
    Pages<L>: BatchQuery,
{
    pages: Batcher<Pages<L>>,
    layout: Layout,
}

impl<L: Listed> List<L>
where
    Slice<L>: for<'t, 'c> LoadQuery<'t, &'c AsyncPgConnection, L::Row>,
    Pages<L>: BatchQuery<Question = PageQuestion, Answer = Vec<L::Row>>,
{
    pub(crate) fn new(connector: &Arc<Connector>, layout: Layout) -> Self {
        let pages = Batcher::new(Pages(PhantomData), Arc::clone(connector));
        Self { pages, layout }
    }

    pub(crate) async fn read(
        &self,
        seller: SellerId,
        filter: Filter,
        after: Option<Keyset>,
        size: PageSize,
    ) -> Result<Page<L::Item>, StoreError> {
        let Filter {
            status,
            newer_than,
            updated_after: updated,
        } = filter;
        let rows = i64::from(size.get()) + 1;
        let connection = self.pages.connection();
        // On Citus a statement over several sellers would go to every shard.
        let rows = if self.layout == Layout::Single && newer_than.is_none() && updated.is_none() {
            let question = PageQuestion {
                seller,
                status,
                after: after.unwrap_or(NEWEST),
                rows,
            };
            self.pages.ask(question).await?
        } else {
            let list = Slice::<L> {
                seller: seller.uuid(),
                status,
                newer_than,
                until: None,
                updated_after: None,
                few: false,
                after,
                rows,
                list: PhantomData,
            };
            match updated {
                None => connection.rows(list).await?,
                Some(instant) => updated_after(connection, list, instant).await?,
            }
        };
        let items = rows.into_iter().map(L::Item::try_from);
        let items = items.collect::<Result<Vec<_>, _>>()?;
        // The last safeguard between two sellers in one batch.
        if items.iter().any(|item| L::key(item).0 != seller) {
            return Err(StoreError::unexpected(
                "a row came back for another seller than its own",
            ));
        }
        Ok(Page::from_one_more(items, size, |item| L::key(item).1))
    }
}

/// Before all items: the list begins with the latest.
const NEWEST: Keyset = Keyset {
    at: DateTime::<Utc>::MAX_UTC,
    id: Uuid::max(),
};

/// A page: whose, where it starts, and its largest number of rows, with the one that shows whether more follow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageQuestion {
    seller: SellerId,
    status: Option<&'static str>,
    after: Keyset,
    rows: i64,
}

/// The pages in flight on one server thread.
pub(crate) struct Pages<L>(PhantomData<L>);

#[async_trait]
impl<L: Listed> BatchQuery for Pages<L>
where
    PagesOfStatus<L>: for<'t, 'c> LoadQuery<'t, &'c AsyncPgConnection, (i64, L::Row)>,
{
    const NAME: &'static str = L::STATEMENT;
    /// Few: each page waits for the rows of all.
    const MAX_MEMBERS: usize = 8;
    type Question = PageQuestion;
    type Answer = Vec<L::Row>;

    /// One statement for each status that is filtered by, and one without; all are sent together. The pages of a batch fail together.
    async fn answer(
        &self,
        connection: &AsyncPgConnection,
        pages: &[PageQuestion],
    ) -> QueryResult<Vec<Result<Vec<L::Row>, StoreError>>> {
        let statuses: BTreeSet<_> = pages.iter().map(|page| page.status).collect();
        let reads = statuses.into_iter().map(async |status| {
            let read = PagesOfStatus::<L>::new(status, pages);
            read.get_results::<(i64, L::Row)>(&mut { connection }).await
        });
        let mut found = pages.iter().map(|_| Vec::new()).collect::<Vec<_>>();
        for (n, row) in try_join_all(reads).await?.into_iter().flatten() {
            if let Some(rows) = usize::try_from(n).ok().and_then(|place| found.get_mut(place)) {
                rows.push(row);
            }
        }
        Ok(found.into_iter().map(Ok).collect())
    }
}

/// Pages with one filter by status, or with none.
pub(crate) struct PagesOfStatus<L> {
    status: Option<&'static str>,
    /// Their places in the batch, from 0.
    places: Vec<i64>,
    sellers: Vec<Uuid>,
    after: Vec<DateTime<Utc>>,
    after_ids: Vec<Uuid>,
    rows: Vec<i64>,
    list: PhantomData<L>,
}

impl<L> PagesOfStatus<L> {
    fn new(status: Option<&'static str>, pages: &[PageQuestion]) -> Self {
        let pages: Vec<_> = (0..)
            .zip(pages)
            .filter(|(_, page)| page.status == status)
            .collect();
        Self {
            status,
            places: column(&pages, |(place, _)| *place),
            sellers: column(&pages, |(_, page)| page.seller.uuid()),
            after: column(&pages, |(_, page)| page.after.at),
            after_ids: column(&pages, |(_, page)| page.after.id),
            rows: column(&pages, |(_, page)| page.rows),
            list: PhantomData,
        }
    }
}

impl<L> QueryId for PagesOfStatus<L> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<L: Listed> Query for PagesOfStatus<L> {
    type SqlType = (BigInt, <L::Row as Value>::Sql);
}

impl<L: Listed> QueryFragment<Pg> for PagesOfStatus<L> {
    /// Its plan is generic: subqueries pass the values, since for known values the planner estimates a lower cost and would
    /// replan at each run. For a limit that it does not know the planner expects a tenth of the rows, and so stays on the
    /// list's index where these are few; the constant limit keeps it there where one seller has most of the rows. The rows of a
    /// page come in its order, since the loop over the pages keeps that of the index.
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let (columns, table, name, only, at, id) = (L::COLUMNS, L::TABLE, L::NAME, L::ONLY, L::AT, L::ID);
        out.push_sql("select k.n, page.* from unnest((select ");
        out.push_bind_param::<Array<BigInt>, _>(&self.places)?;
        out.push_sql("::bigint[]), (select ");
        out.push_bind_param::<Array<SqlUuid>, _>(&self.sellers)?;
        out.push_sql("::uuid[]), (select ");
        out.push_bind_param::<Array<Timestamptz>, _>(&self.after)?;
        out.push_sql("::timestamptz[]), (select ");
        out.push_bind_param::<Array<SqlUuid>, _>(&self.after_ids)?;
        out.push_sql("::uuid[]), (select ");
        out.push_bind_param::<Array<BigInt>, _>(&self.rows)?;
        out.push_sql(&format!(
            "::bigint[])) as k (n, seller, after, after_id, size) cross join lateral (select * from (select {columns} \
             from {table} where {name}.seller_id = k.seller"
        ));
        if let Some(status) = &self.status {
            out.push_sql(&format!(" and {name}.status = (select "));
            out.push_bind_param::<Text, _>(status)?;
            out.push_sql("::text)");
        }
        out.push_sql(&format!(
            "{only} and ({name}.{at}, {name}.{id}) < (k.after, k.after_id) \
             order by {name}.{at} desc, {name}.{id} desc limit k.size) newest limit {MAX_ROWS}) page"
        ));
        Ok(())
    }
}

async fn updated_after<'t, L: Listed>(
    connection: &'t SharedConnection,
    list: Slice<L>,
    instant: DateTime<Utc>,
) -> Result<Vec<L::Row>, StoreError>
where
    Slice<L>: for<'c> LoadQuery<'t, &'c AsyncPgConnection, L::Row>,
{
    let mut found = Vec::new();
    if list.after.is_none_or(|after| after.at > instant) {
        let newer = Slice {
            newer_than: list.newer_than.max(Some(instant)),
            ..list
        };
        found = connection.rows(newer).await?;
    }
    let missing = list.rows - i64::try_from(found.len()).unwrap_or(list.rows);
    if missing > 0 && list.newer_than.is_none_or(|oldest| oldest < instant) {
        let older = Slice {
            until: Some(instant),
            updated_after: Some(instant),
            rows: missing,
            ..list
        };
        let count: Vec<i64> = connection.rows(CountUpdated(older)).await?;
        let few = count.iter().all(|count| *count <= FEW);
        found.extend(connection.rows(Slice { few, ..older }).await?);
    }
    Ok(found)
}

/// A range of rows in a list's order.
#[derive(Clone, Copy)]
pub(crate) struct Slice<L> {
    seller: Uuid,
    status: Option<&'static str>,
    /// Only rows created later than this.
    newer_than: Option<DateTime<Utc>>,
    /// Only rows created up to this.
    until: Option<DateTime<Utc>>,
    /// Only rows updated later than this.
    updated_after: Option<DateTime<Utc>>,
    /// Few enough rows were updated later to find them by `updated_at`.
    few: bool,
    after: Option<Keyset>,
    rows: i64,
    list: PhantomData<L>,
}

/// The text differs with the filters, so the prepared statement is cached by its text.
impl<L> QueryId for Slice<L> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<L: Listed> Returns for Slice<L> {
    type Row = L::Row;
}

impl<L: Listed> Query for Slice<L> {
    type SqlType = <L::Row as Value>::Sql;
}

impl<L: Listed> QueryFragment<Pg> for Slice<L> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        if self.few {
            self.few_changed(&mut out)
        } else {
            self.walk(&mut out)
        }
    }
}

impl<L: Listed> Slice<L> {
    /// Walks the list's own index.
    fn walk<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(&format!("select {} from {} where ", L::COLUMNS, L::TABLE));
        self.of_seller(out)?;
        self.between(out)?;
        self.updated(out)?;
        self.newest(out)
    }

    /// Sorts the keys that the index by `updated_at` yields, then fetches the rows of the page.
    fn few_changed<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let (columns, table, name, at, id) = (L::COLUMNS, L::TABLE, L::NAME, L::AT, L::ID);
        out.push_sql(&format!("select {columns} from (select {at}, {id} from ("));
        self.changed(out)?;
        out.push_sql(") updated where true");
        self.between(out)?;
        self.newest(out)?;
        out.push_sql(&format!(
            ") page join {table} using ({id}) where {name}.seller_id = "
        ));
        out.push_bind_param::<SqlUuid, _>(&self.seller)?;
        out.push_sql(&format!(" order by {name}.{at} desc, {name}.{id} desc"));
        Ok(())
    }

    /// The keys of updated rows. The otherwise useless sort order keeps the planner on the index by `updated_at`:
    /// without it, it scans the table, where it expects frequent matches.
    fn changed<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(&format!("select {}, {} from {} where ", L::AT, L::ID, L::TABLE));
        self.of_seller(out)?;
        self.updated(out)?;
        out.push_sql(" order by updated_at limit ");
        out.push_bind_param::<BigInt, _>(&FEW_AND_ONE)
    }

    fn of_seller<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("seller_id = ");
        out.push_bind_param::<SqlUuid, _>(&self.seller)?;
        if let Some(status) = &self.status {
            out.push_sql(" and status = ");
            out.push_bind_param::<Text, _>(status)?;
        }
        out.push_sql(L::ONLY);
        Ok(())
    }

    fn updated<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        if let Some(instant) = &self.updated_after {
            out.push_sql(" and updated_at > ");
            out.push_bind_param::<Timestamptz, _>(instant)?;
        }
        Ok(())
    }

    fn between<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        for (comparison, instant) in [(">", &self.newer_than), ("<=", &self.until)] {
            if let Some(instant) = instant {
                out.push_sql(&format!(" and {} {comparison} ", L::AT));
                out.push_bind_param::<Timestamptz, _>(instant)?;
            }
        }
        Ok(())
    }

    fn newest<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let (at, id) = (L::AT, L::ID);
        if let Some(after) = &self.after {
            out.push_sql(&format!(" and ({at}, {id}) < ("));
            out.push_bind_param::<Timestamptz, _>(&after.at)?;
            out.push_sql(", ");
            out.push_bind_param::<SqlUuid, _>(&after.id)?;
            out.push_sql(")");
        }
        out.push_sql(&format!(" order by {at} desc, {id} desc limit "));
        out.push_bind_param::<BigInt, _>(&self.rows)
    }
}

/// Counts rows updated after a timestamp, up to [`FEW`] plus one.
struct CountUpdated<L>(Slice<L>);

impl<L> QueryId for CountUpdated<L> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<L> Returns for CountUpdated<L> {
    type Row = i64;
}

impl<L: Listed> Query for CountUpdated<L> {
    type SqlType = BigInt;
}

impl<L: Listed> QueryFragment<Pg> for CountUpdated<L> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("select count(*) from (");
        self.0.changed(&mut out)?;
        out.push_sql(") updated");
        Ok(())
    }
}
