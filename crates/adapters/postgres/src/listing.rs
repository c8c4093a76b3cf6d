//! Pages of a seller's list, newest first.
//!
//! A page is an index scan that starts at its first row and stops at its last. Pages without a filter by time, the most
//! frequent ones, are read in batches, except on Citus.
//!
//! # `updated_after`
//!
//! A list is sorted by creation and filtered by `updated_at`, which no single index serves. Nothing is updated before
//! it is created, so the list has two consecutive parts:
//! 1. rows *created* after the instant: all of them match, and the list's own index yields them without a miss;
//! 2. older rows *updated* since. While at most 5000 rows of the seller were updated after the instant, they are found by the
//!    index on `updated_at` and sorted; clients that poll for changes are in this case. With more updates, the list's own index is
//!    walked, past at most as many rows. A page that ends there may be short or empty, and the next one begins where it ended.
//!
//! One statement reads both parts, so that no commit comes between counting the updates and reading the page. Its cost is bounded
//! whatever was updated, but not small: see [`SlowReads`].

use std::{marker::PhantomData, sync::Arc};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::pg::Pg;
use diesel::sql_types::{Array, BigInt, Bool, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel::{QueryResult, QueryableByName};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{Keyset, MAX_PAGE_SIZE, Page, PageSize, SellerId, StoreError};
use uuid::Uuid;

use crate::ANSWER_TIMEOUT;
use crate::batch::{BatchQuery, Batcher, Placed};
use crate::connection::Connector;
use crate::layout::Layout;
use crate::slow_reads::SlowReads;
use crate::sql::column;
use crate::statement::Statement;

const _: () = assert!(MAX_PAGE_SIZE + 1 == 201, "a literal in the SQL of the lists");

/// The parameters of the statements: see `offers/list.sql`.
pub(crate) type PagesParameters = (
    Array<SqlUuid>,
    Array<Nullable<Text>>,
    Array<Timestamptz>,
    Array<SqlUuid>,
    Array<BigInt>,
);
pub(crate) type PageParameters = (SqlUuid, Nullable<Timestamptz>, Timestamptz, SqlUuid, BigInt);
pub(crate) type PageOfStatusParameters = (SqlUuid, Nullable<Timestamptz>, Timestamptz, SqlUuid, BigInt, Text);
pub(crate) type UpdatedParameters = (
    SqlUuid,
    Timestamptz,
    Nullable<Timestamptz>,
    Timestamptz,
    SqlUuid,
    Nullable<Text>,
    BigInt,
);

/// A listed table: one row per seller and item. It has an index by seller, timestamp and id, one by seller, status,
/// timestamp and id, and one by seller and `updated_at`, each over the listed rows.
pub(crate) trait Listed: Send + Sync + 'static {
    /// The name of its statements in the metrics.
    const NAME: &'static str;
    type Row: QueryableByName<Pg> + Send + 'static;
    /// The type of an item.
    type Item: Send + TryFrom<Self::Row, Error = StoreError>;
    const PAGES: Statement<PagesParameters, Placed<Self::Row>>;
    const PAGE: Statement<PageParameters, Self::Row>;
    const PAGE_OF_STATUS: Statement<PageOfStatusParameters, Self::Row>;
    const UPDATED: Statement<UpdatedParameters, Walked<Self::Row>>;

    /// Whose item it is, and its position in the list.
    fn key(item: &Self::Item) -> (SellerId, Keyset);
}

/// A row of a list by `updated_after`.
#[derive(QueryableByName)]
#[diesel(check_for_backend(Pg))]
pub(crate) struct Walked<R> {
    #[diesel(sql_type = Bool)]
    matches: bool,
    /// Whether the walk ended with this row.
    #[diesel(sql_type = Bool)]
    is_end: bool,
    #[diesel(embed)]
    row: R,
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
pub(crate) struct List<L: Listed> {
    pages: Batcher<Batched<L>>,
    slow: Arc<SlowReads>,
    layout: Layout,
}

impl<L: Listed> List<L> {
    pub(crate) fn new(connector: &Arc<Connector>, slow: &Arc<SlowReads>, layout: Layout) -> Self {
        Self {
            pages: Batcher::new(Batched(PhantomData), Arc::clone(connector)),
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
        let (of, rows) = (seller.uuid(), i64::from(size.get()) + 1);
        let (status, newer_than) = (filter.status, filter.newer_than);
        let after = after.unwrap_or(NEWEST);
        let rows = if let Some(updated) = filter.updated_after {
            let values = (of, updated, newer_than, after.at, after.id, status, rows);
            self.slow.rows(seller, L::UPDATED.bind(values)).await?
        } else {
            // On Citus a statement over several sellers would go to every shard.
            let is_batched = self.layout == Layout::Single && newer_than.is_none();
            let _turn = self.pages.turn(seller, ANSWER_TIMEOUT).await?;
            let connection = self.pages.connection();
            let rows = if is_batched {
                let question = PageQuestion {
                    seller,
                    status,
                    after,
                    rows,
                };
                self.pages.ask(question).await?
            } else if let Some(status) = status {
                let values = (of, newer_than, after.at, after.id, rows, status);
                connection.rows(L::PAGE_OF_STATUS.bind(values)).await?
            } else {
                let values = (of, newer_than, after.at, after.id, rows);
                connection.rows(L::PAGE.bind(values)).await?
            };
            let matching = |row| Walked {
                matches: true,
                is_end: false,
                row,
            };
            rows.into_iter().map(matching).collect()
        };
        let (mut items, mut walked_to) = (Vec::with_capacity(rows.len()), None);
        for Walked { matches, is_end, row } in rows {
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
struct PageQuestion {
    seller: SellerId,
    status: Option<&'static str>,
    after: Keyset,
    rows: i64,
}

/// The pages in flight on one server thread.
struct Batched<L>(PhantomData<L>);

#[async_trait]
impl<L: Listed> BatchQuery for Batched<L> {
    const NAME: &'static str = L::NAME;
    /// Few: each page waits for the rows of all.
    const MAX_MEMBERS: usize = 8;
    type Question = PageQuestion;
    type Answer = Vec<L::Row>;

    /// The pages of a batch fail together.
    async fn answer(
        &self,
        connection: &AsyncPgConnection,
        pages: &[PageQuestion],
    ) -> QueryResult<Vec<Result<Vec<L::Row>, StoreError>>> {
        let read = L::PAGES.bind((
            column(pages, |page| page.seller.uuid()),
            column(pages, |page| page.status),
            column(pages, |page| page.after.at),
            column(pages, |page| page.after.id),
            column(pages, |page| page.rows),
        ));
        let mut found = pages.iter().map(|_| Vec::new()).collect::<Vec<_>>();
        for Placed { n, row } in read.get_results(&mut { connection }).await? {
            if let Some(rows) = usize::try_from(n - 1).ok().and_then(|place| found.get_mut(place)) {
                rows.push(row);
            }
        }
        Ok(found.into_iter().map(Ok).collect())
    }
}
