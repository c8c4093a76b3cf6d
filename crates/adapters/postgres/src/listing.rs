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
//! 2. older rows *updated* since. While at most [`MOST_EXAMINED`] rows of the seller were updated after the instant, they are found
//!    by the index on `updated_at` and sorted; clients that poll for changes are in this case. With more updates, the list's own index
//!    is walked, past at most as many rows. A page that ends there may be short or empty, and the next one begins where it ended.
//!
//! One statement reads both parts, so that no commit comes between counting the updates and reading the page. Its cost is bounded
//! whatever was updated, but not small: see [`SlowReads`].

use std::{collections::BTreeSet, marker::PhantomData, sync::Arc};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::QueryResult;
use diesel::pg::Pg;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{Array, BigInt, Bool, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl, methods::LoadQuery};
use futures_util::future::try_join_all;
use kernel::{Keyset, MAX_PAGE_SIZE, Page, PageSize, SellerId, StoreError};
use uuid::Uuid;

use crate::ANSWER_TIMEOUT;
use crate::batch::{BatchQuery, Batcher};
use crate::connection::Connector;
use crate::layout::Layout;
use crate::slow_reads::SlowReads;
use crate::sql::{Returns, Value, column};

/// At most this many updated rows are sorted, and at most this many rows of a list are walked past.
const MOST_EXAMINED: i64 = 5_000;
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
    slow: Arc<SlowReads>,
    layout: Layout,
}

impl<L: Listed> List<L>
where
    Slice<L>: for<'t, 'c> LoadQuery<'t, &'c AsyncPgConnection, L::Row>,
    Updated<L>: for<'t> LoadQuery<'t, &'t AsyncPgConnection, (bool, bool, L::Row)>,
    Pages<L>: BatchQuery<Question = PageQuestion, Answer = Vec<L::Row>>,
{
    pub(crate) fn new(connector: &Arc<Connector>, slow: &Arc<SlowReads>, layout: Layout) -> Self {
        Self {
            pages: Batcher::new(Pages(PhantomData), Arc::clone(connector)),
            slow: Arc::clone(slow),
            layout,
        }
    }

    pub(crate) async fn read(
        &self,
        seller: SellerId,
        filter: Filter,
        after: Option<Keyset>,
        size: PageSize,
    ) -> Result<Page<L::Item>, StoreError> {
        let rows = i64::from(size.get()) + 1;
        let slice = Slice::<L> {
            seller: seller.uuid(),
            filter,
            after: after.unwrap_or(NEWEST),
            rows,
            list: PhantomData,
        };
        // On Citus a statement over several sellers would go to every shard.
        let is_batched = self.layout == Layout::Single && filter.newer_than.is_none();
        let matching = |row| (true, false, row);
        let rows: Vec<_> = if filter.updated_after.is_some() {
            self.slow.rows(seller, Updated(slice)).await?
        } else if is_batched {
            let _turn = self.pages.turn(seller, ANSWER_TIMEOUT).await?;
            let question = PageQuestion {
                seller,
                status: filter.status,
                after: slice.after,
                rows,
            };
            let rows = self.pages.ask(question).await?;
            rows.into_iter().map(matching).collect()
        } else {
            let _turn = self.pages.turn(seller, ANSWER_TIMEOUT).await?;
            let rows = self.pages.connection().rows(slice).await?;
            rows.into_iter().map(matching).collect()
        };
        let (mut items, mut walked_to) = (Vec::with_capacity(rows.len()), None);
        for (matches, is_end, row) in rows {
            let item = L::Item::try_from(row)?;
            let (of, place) = L::key(&item);
            // The last safeguard between two sellers in one batch.
            if of != seller {
                return Err(StoreError::unexpected(
                    "a row came back for another seller than its own",
                ));
            }
            if is_end {
                walked_to = Some(place);
            }
            if matches {
                items.push(item);
            }
        }
        let mut page = Page::from_one_more(items, size, |item| L::key(item).1);
        page.next = page.next.or(walked_to);
        Ok(page)
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

/// A range of rows in a list's order.
#[derive(Clone, Copy)]
pub(crate) struct Slice<L> {
    seller: Uuid,
    filter: Filter,
    after: Keyset,
    rows: i64,
    list: PhantomData<L>,
}

/// The text differs with the filter, so the prepared statement is cached by its text.
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
        out.push_sql(&format!("select {} from {} where ", L::COLUMNS, L::TABLE));
        self.newest(&mut out)
    }
}

impl<L: Listed> Slice<L> {
    /// The condition, order and limit of rows created after both instants of the filter. Binds seller, the two instants, `after` and,
    /// if there is one, the status as `$1` to `$6`, then the limit.
    fn newest<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let (at, id) = (L::AT, L::ID);
        out.push_sql("seller_id = ");
        out.push_bind_param::<SqlUuid, _>(&self.seller)?;
        out.push_sql(&format!(" and {at} > coalesce(greatest("));
        out.push_bind_param::<Nullable<Timestamptz>, _>(&self.filter.updated_after)?;
        out.push_sql(", ");
        out.push_bind_param::<Nullable<Timestamptz>, _>(&self.filter.newer_than)?;
        out.push_sql(&format!("), '-infinity') and ({at}, {id}) < ("));
        out.push_bind_param::<Timestamptz, _>(&self.after.at)?;
        out.push_sql(", ");
        out.push_bind_param::<SqlUuid, _>(&self.after.id)?;
        out.push_sql(")");
        if let Some(status) = &self.filter.status {
            out.push_sql(" and status = ");
            out.push_bind_param::<Text, _>(status)?;
        }
        out.push_sql(&format!("{} order by {at} desc, {id} desc limit ", L::ONLY));
        out.push_bind_param::<BigInt, _>(&self.rows)
    }
}

/// Rows updated after the filter's instant, in the list's order, each with whether it matches, and whether the walk ends with it.
pub(crate) struct Updated<L>(Slice<L>);

impl<L> QueryId for Updated<L> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<L: Listed> Returns for Updated<L> {
    type Row = (bool, bool, L::Row);
}

impl<L: Listed> Query for Updated<L> {
    type SqlType = (Bool, Bool, <L::Row as Value>::Sql);
}

impl<L: Listed> QueryFragment<Pg> for Updated<L> {
    /// The first part binds all values, and the others name them by their numbers. A part is executed only if the ones before have
    /// left rows missing. Two conditions keep the planner on the intended indexes: the limit of `updated` comes before any filter, in the
    /// order of the index on `updated_at`; and the constant limit at the end bounds the expected number of rows to fetch.
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let (columns, table, name, only, at, id) = (L::COLUMNS, L::TABLE, L::NAME, L::ONLY, L::AT, L::ID);
        let (status, rows) = if self.0.filter.status.is_some() {
            (" and status = $6", "$7")
        } else {
            ("", "$6")
        };
        let older =
            format!("{at} <= $2 and {at} > coalesce($3, '-infinity') and ({at}, {id}) < ($4, $5){status}");
        let newest = format!("order by {at} desc, {id} desc");
        out.push_sql(&format!(
            "with newer as materialized (select {at}, {id} from {table} where "
        ));
        self.0.newest(&mut out)?;
        out.push_sql(&format!(
            "), updated as materialized (select {at}, {id}, status from {table} \
               where seller_id = $1 and updated_at > $2{only} and (select count(*) < {rows} from newer) \
               order by updated_at limit {MOST_EXAMINED} + 1), \
             few as materialized (select count(*) <= {MOST_EXAMINED} as all_found from updated), \
             walked as (select {at}, {id}, updated_at, row_number() over ({newest}) as n from {table} \
               where seller_id = $1 and {older}{only} and not (select all_found from few) {newest} limit {MOST_EXAMINED}), \
             found as (select {at}, {id}, true as matches, false as is_end from newer \
               union all select {at}, {id}, true, false from updated where (select all_found from few) and {older} \
               union all (select {at}, {id}, updated_at > $2, n = {MOST_EXAMINED} from walked \
                 where updated_at > $2 or n = {MOST_EXAMINED} {newest} limit {rows})), \
             page as (select * from (select * from found {newest} limit {rows}) newest limit {MAX_ROWS}) \
             select page.matches, page.is_end, {columns} from page join {table} on {name}.seller_id = $1 and {name}.{id} = page.{id} \
             order by {name}.{at} desc, {name}.{id} desc"
        ));
        Ok(())
    }
}
