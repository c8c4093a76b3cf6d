//! A seller's rows of a table, by their ids, and in pages, newest first.
//!
//! A page is an index scan that starts at its first row and stops at its last. Pages without a filter by
//! `updated_at` are read in batches, except on Citus. A page of orders also ends once the documents of its
//! items have a megabyte: an order may have a thousand items.
//!
//! # `updated_after`
//!
//! A list is sorted by creation and filtered by `updated_at`, which no single index serves. Nothing is
//! updated before it is created, so the list has two consecutive parts:
//! 1. rows *created* after the instant: all of them match, and the list's own index yields them without a
//!    miss;
//! 2. older rows *updated* since. While at most 5000 rows of the seller were updated after the instant, they
//!    are found by the index on `updated_at` and sorted; clients that poll for changes are in this case. With
//!    more updates, the list's own index is walked, past at most as many rows. A page that ends there may be
//!    short or empty, and the next one begins where it ended.
//!
//! One statement reads both parts, so that no commit comes between counting the updates and reading the page.
//! Its cost is bounded whatever was updated, but not small: see [`SlowReads`].

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::pg::Pg;
use diesel::row::NamedRow;
use diesel::sql_types::{Array, BigInt, Bool, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel::{QueryResult, QueryableByName, deserialize};
use diesel_async::{AsyncPgConnection, RunQueryDsl, methods::LoadQuery};
use kernel::{Keyset, MAX_PAGE_SIZE, Page, PageSize, Reader, SellerId, StoreError};
use uuid::Uuid;

use crate::ANSWER_TIMEOUT;
use crate::batch::{BatchQuery, Batcher};
use crate::connection::{Connector, shared::SharedConnection};
use crate::layout::Layout;
use crate::slow_reads::{LongTurn, SlowReads, SlowSellers};
use crate::sql::column;
use crate::statement::{Prepared, Returns, Statement, TableRow};
use crate::turns::Admission;

const _: () = assert!(MAX_PAGE_SIZE + 1 == 201, "a literal in the SQL of the lists");

/// The parameters of the statements: see `offers/list.sql`.
pub(crate) type ByIdParameters = (Array<SqlUuid>, Array<SqlUuid>);
pub(crate) type PagesParameters = (
    Array<SqlUuid>,
    Array<Nullable<Text>>,
    Array<Timestamptz>,
    Array<SqlUuid>,
    Array<BigInt>,
    Array<Nullable<Timestamptz>>,
);
pub(crate) type UpdatedParameters = (
    SqlUuid,
    Timestamptz,
    Nullable<Timestamptz>,
    Timestamptz,
    SqlUuid,
    Nullable<Text>,
    BigInt,
);

/// A listed table: one row per seller and item. It has an index by seller, timestamp and id, one by seller,
/// status, timestamp and id, and one by seller and `updated_at`, each over the listed rows.
#[async_trait]
pub(crate) trait Listed: Send + Sync + 'static {
    /// The names of its statements in the metrics: by id, and of pages.
    const BY_ID_NAME: &'static str;
    const PAGES_NAME: &'static str;
    /// How many pages of one seller or of one application, and how many look-ups by id, may be under way on a thread.
    const SHARE: usize;
    type Row: TableRow + Send + 'static;
    /// The type of an item.
    type Item: Send + TryFrom<Self::Row, Error = StoreError>;
    const BY_ID: Statement<ByIdParameters, Walked<Self::Row>>;
    /// The rows of a seller, $1, with some of the ids, $2; in the order of the ids if it may leave the last ones out.
    const BY_IDS: Statement<(SqlUuid, Array<SqlUuid>), Walked<Self::Row>>;
    const PAGES: Statement<PagesParameters, Walked<Self::Row>>;
    const UPDATED: Statement<UpdatedParameters, Walked<Self::Row>>;

    /// On Citus, which plans anything but a query of one table anew at each run: a row by its id, if it is there.
    async fn of_seller(
        connection: &SharedConnection,
        seller: Uuid,
        id: Uuid,
    ) -> Result<Vec<Self::Row>, StoreError>;

    /// On Citus: a page without a filter by `updated_at`.
    async fn page(
        connection: &SharedConnection,
        page: PageQuestion,
    ) -> Result<Vec<Walked<Self::Row>>, StoreError>;

    /// Whose item it is, and its position in the list.
    fn key(item: &Self::Item) -> (SellerId, Keyset);
}

/// A row of a page, or of one looked up by its id.
pub(crate) struct Walked<R> {
    /// In a batch, the place of its page or id from 1; elsewhere it means nothing.
    n: i64,
    matches: bool,
    /// Whether the page ends with this row, although more rows may follow.
    is_end: bool,
    row: R,
}

impl<R> Walked<R> {
    pub(crate) const fn matching(row: R, is_end: bool) -> Self {
        Self {
            n: 1,
            matches: true,
            is_end,
            row,
        }
    }
}

impl<R: TableRow> QueryableByName<Pg> for Walked<R> {
    fn build<'a>(row: &impl NamedRow<'a, Pg>) -> deserialize::Result<Self> {
        Ok(Self {
            n: row.get_value::<BigInt, _, _>(0)?,
            matches: row.get_value::<Bool, _, _>(1)?,
            is_end: row.get_value::<Bool, _, _>(2)?,
            row: R::at(3, row)?,
        })
    }
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

/// Reads a table's rows for one server thread.
pub(crate) struct List<L: Listed> {
    pub(crate) by_id: Batcher<ById<L>>,
    pub(crate) pages: Batcher<Batched<L>>,
    slow: Arc<SlowReads>,
    layout: Layout,
}

impl<L: Listed> List<L> {
    pub(crate) fn new(connector: &Arc<Connector>, slow: &Arc<SlowReads>, layout: Layout) -> Self {
        Self {
            by_id: Batcher::new(ById(PhantomData), Arc::clone(connector)),
            pages: Batcher::new(Batched(slow.sellers.clone(), PhantomData), Arc::clone(connector)),
            slow: Arc::clone(slow),
            layout,
        }
    }

    /// A turn of a page; None if the seller's reads take long, perhaps those before it in the turns.
    async fn turn(&self, reader: Reader) -> Result<Option<Admission>, StoreError> {
        if self.slow.sellers.has(reader.seller) {
            return Ok(None);
        }
        let turn = self.pages.turn(reader, ANSWER_TIMEOUT).await?;
        Ok(Some(turn).filter(|_| !self.slow.sellers.has(reader.seller)))
    }

    /// Runs a read outside the batches: on their connection, or on a slow one if the seller's reads take long.
    pub(crate) async fn rows<S>(&self, reader: Reader, statement: S) -> Result<Vec<S::Row>, StoreError>
    where
        S: Returns<Row: 'static> + Send + 'static,
        Prepared<S>: for<'t, 'c> LoadQuery<'t, &'c AsyncPgConnection, S::Row>,
    {
        let Some(turn) = self.turn(reader).await? else {
            return self.slow.rows(reader, statement).await;
        };
        let (sellers, own) = (self.slow.sellers.clone(), [reader.seller].into_iter());
        let read = |connection: Arc<SharedConnection>| async move {
            sellers.watch(own, connection.rows(statement)).await
        };
        self.pages.alone_in(turn, read).await
    }

    /// A seller's items with these ids, in the order of the list. They are read where pages are, a megabyte at a time;
    /// if they have more, in a turn of the whole process.
    pub(crate) async fn by_ids(
        &self,
        reader: Reader,
        mut ids: BTreeSet<Uuid>,
    ) -> Result<Vec<L::Item>, StoreError> {
        let seller = reader.seller;
        let (mut items, mut turn) = (Vec::new(), None::<Arc<_>>);
        while !ids.is_empty() {
            let some = L::BY_IDS.bind((seller.uuid(), ids.iter().copied().collect::<Vec<_>>()));
            let rows = match &turn {
                None => self.rows(reader, some).await?,
                // Not behind the seller's pages, while others wait for this.
                Some(turn) => {
                    let read = |connection: Arc<SharedConnection>| async move { connection.rows(some).await };
                    self.pages.alone_in(Arc::clone(turn), read).await?
                }
            };
            let page = Self::page_of(seller, PageSize::clamped(MAX_PAGE_SIZE.into()), rows)?;
            let mut rest = ids.clone();
            rest.retain(|id| page.next.is_some_and(|last| *id > last.id));
            if !rest.is_empty() && turn.is_none() {
                // Whoever waits holds nothing, and reads the same again.
                drop(page);
                turn = Some(Arc::new(LongTurn::take(&self.slow.long, reader).await?));
                continue;
            }
            items.extend(page.items);
            ids = rest;
        }
        drop(turn);
        items.sort_unstable_by_key(|item| {
            let Keyset { at, id } = L::key(item).1;
            Reverse((at, id))
        });
        Ok(items)
    }

    /// A row by its id.
    pub(crate) async fn one(&self, reader: Reader, id: Uuid) -> Result<Option<L::Item>, StoreError> {
        let seller = reader.seller;
        let turn = self.by_id.turn(reader, ANSWER_TIMEOUT).await?;
        if self.layout == Layout::Single {
            return self.by_id.ask((seller, id)).await;
        }
        // A statement over several sellers would go to every shard. The turn lasts until the answer, even if the caller has
        // gone.
        let read = move |connection: Arc<SharedConnection>| async move {
            L::of_seller(&connection, seller.uuid(), id).await
        };
        let rows = self.by_id.alone_in(turn, read).await?;
        rows.into_iter().next().map(L::Item::try_from).transpose()
    }

    pub(crate) async fn page(
        &self,
        reader: Reader,
        filter: Filter,
        after: Option<Keyset>,
        size: PageSize,
    ) -> Result<Page<L::Item>, StoreError> {
        let seller = reader.seller;
        let Filter {
            status,
            newer_than,
            updated_after,
        } = filter;
        let page = PageQuestion {
            seller,
            filter,
            after: after.unwrap_or(NEWEST),
            rows: i64::from(size.get()) + 1,
        };
        let rows = match (updated_after, self.layout) {
            (Some(updated), _) => {
                let (of, Keyset { at, id }, rows) = (seller.uuid(), page.after, page.rows);
                let values = (of, updated, newer_than, at, id, status, rows);
                self.slow.rows(reader, L::UPDATED.bind(values)).await?
            }
            (None, Layout::Single) => match self.turn(reader).await? {
                Some(_turn) => self.pages.ask(page).await?,
                None => self.slow.rows(reader, L::PAGES.bind(of_pages(&[page]))).await?,
            },
            // A statement over several sellers would go to every shard.
            (None, Layout::Citus) => {
                let read =
                    |connection: Arc<SharedConnection>| async move { L::page(&connection, page).await };
                self.pages.alone(reader, read).await?
            }
        };
        Self::page_of(seller, size, rows)
    }

    /// The page of these rows, up to one more than its size.
    pub(crate) fn page_of(
        seller: SellerId,
        size: PageSize,
        rows: Vec<Walked<L::Row>>,
    ) -> Result<Page<L::Item>, StoreError> {
        let (mut items, mut walked_to) = (Vec::with_capacity(rows.len()), None);
        for walked in rows {
            let item = L::Item::try_from(walked.row)?;
            let (of, place) = L::key(&item);
            // The last safeguard between two sellers in one batch.
            if of != seller {
                return Err(StoreError::unexpected(
                    "a row came back for another seller than its own",
                ));
            }
            if walked.is_end {
                walked_to = Some(place);
            }
            if walked.matches {
                items.push(item);
            }
        }
        let mut page = Page::from_one_more(items, size, |item| L::key(item).1);
        page.next = page.next.or(walked_to);
        Ok(page)
    }
}

/// Before all items: the list begins with the latest.
pub(crate) const NEWEST: Keyset = Keyset {
    at: DateTime::<Utc>::MAX_UTC,
    id: Uuid::max(),
};

/// A page: whose, where it starts, and its largest number of rows, with the one that shows whether more
/// follow.
pub(crate) struct PageQuestion {
    pub(crate) seller: SellerId,
    pub(crate) filter: Filter,
    pub(crate) after: Keyset,
    pub(crate) rows: i64,
}

/// Rows by their ids.
pub(crate) struct ById<L>(PhantomData<L>);

#[async_trait]
impl<L: Listed> BatchQuery for ById<L> {
    const NAME: &'static str = L::BY_ID_NAME;
    const SHARE: usize = L::SHARE;
    type Question = (SellerId, Uuid);
    type Answer = Option<L::Item>;

    /// A row whose seller or id differs from its question's is rejected: this is the last safeguard between two sellers
    /// in one batch.
    async fn answer(
        &self,
        connection: &AsyncPgConnection,
        questions: &[(SellerId, Uuid)],
    ) -> QueryResult<Vec<Result<Option<L::Item>, StoreError>>> {
        let keys: (Vec<_>, Vec<_>) = questions.iter().map(|(seller, id)| (seller.uuid(), *id)).unzip();
        let mut answers = questions.iter().map(|_| Ok(None)).collect::<Vec<_>>();
        for Walked { n, row, .. } in L::BY_ID.bind(keys).get_results(&mut { connection }).await? {
            let place = usize::try_from(n - 1).unwrap_or(usize::MAX);
            if let (Some(answer), Some(question)) = (answers.get_mut(place), questions.get(place)) {
                *answer = L::Item::try_from(row).and_then(|item| {
                    let (seller, Keyset { id, .. }) = L::key(&item);
                    if (seller, id) == *question {
                        return Ok(Some(item));
                    }
                    Err(StoreError::unexpected(
                        "a row came back for another question than its own",
                    ))
                });
            }
        }
        Ok(answers)
    }
}

/// The values of the parameters of [`Listed::PAGES`].
type PagesValues = (
    Vec<Uuid>,
    Vec<Option<&'static str>>,
    Vec<DateTime<Utc>>,
    Vec<Uuid>,
    Vec<i64>,
    Vec<Option<DateTime<Utc>>>,
);

fn of_pages(pages: &[PageQuestion]) -> PagesValues {
    (
        column(pages, |page| page.seller.uuid()),
        column(pages, |page| page.filter.status),
        column(pages, |page| page.after.at),
        column(pages, |page| page.after.id),
        column(pages, |page| page.rows),
        column(pages, |page| page.filter.newer_than),
    )
}

/// The pages in flight on one server thread.
pub(crate) struct Batched<L>(SlowSellers, PhantomData<L>);

#[async_trait]
impl<L: Listed> BatchQuery for Batched<L> {
    const NAME: &'static str = L::PAGES_NAME;
    /// Few: each page waits for the rows of all.
    const MAX_MEMBERS: usize = 8;
    const SHARE: usize = L::SHARE;
    type Question = PageQuestion;
    type Answer = Vec<Walked<L::Row>>;

    /// The pages of a batch fail together.
    async fn answer(
        &self,
        connection: &AsyncPgConnection,
        pages: &[PageQuestion],
    ) -> QueryResult<Vec<Result<Vec<Walked<L::Row>>, StoreError>>> {
        let mut read = { connection };
        let read = L::PAGES.bind(of_pages(pages)).get_results(&mut read);
        let mut found = pages.iter().map(|_| Vec::new()).collect::<Vec<_>>();
        let sellers = pages.iter().map(|page| page.seller);
        let rows: Vec<Walked<L::Row>> = self.0.watch(sellers, read).await?;
        for row in rows {
            if let Some(rows) = usize::try_from(row.n - 1)
                .ok()
                .and_then(|place| found.get_mut(place))
            {
                rows.push(row);
            }
        }
        Ok(found.into_iter().map(Ok).collect())
    }
}
