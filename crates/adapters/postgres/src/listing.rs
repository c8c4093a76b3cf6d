//! Pages of a seller's list, newest first.
//!
//! Each combination of filters is a statement of its own, so that each has a plan of its own: an index scan that starts at the
//! page's first row and stops at its last.
//!
//! # `updated_after`
//!
//! A list is sorted by when a thing came to be and filtered by `updated_at`, which no one index serves. Nothing is updated
//! before it is there, so the list has two parts, one after the other:
//! 1. what *came to be* after the instant: all of it matches, and the list's own index yields it without a miss;
//! 2. older things that have *changed* since. While at most [`FEW`] things of the seller were updated after the instant, they
//!    are found in the index by `updated_at` and sorted: a page costs at most [`FEW`] index entries, whatever its depth and the
//!    number of things. That is the client that polls for changes. Where there are more, the list's own index is walked and
//!    what has not changed is passed over: about `size × older ÷ changed` rows a page where changes are spread evenly; at
//!    worst, where all that has changed lies at the far end, one pass over the seller's older things.

mod statement;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel_async::RunQueryDsl;
use kernel::{Keyset, Page, PageSize, SellerId, StoreError};

use self::statement::{CountUpdated, FEW};
use crate::shared_connection::SharedConnection;

pub(crate) use self::statement::Slice;

/// A table that is listed: one row for each seller and thing, with an index by seller, instant and id, one by seller, status,
/// instant and id, and one by seller and `updated_at`, each over the rows that are listed.
#[async_trait]
pub(crate) trait Listed: Copy + Send + Sync + 'static {
    /// The table, with its short name where it has one.
    const TABLE: &'static str;
    /// The name by which columns call the table.
    const NAME: &'static str;
    /// The columns of a row, each under that name.
    const COLUMNS: &'static str;
    /// The column of the instant that sorts the list.
    const AT: &'static str;
    /// The column that breaks ties.
    const ID: &'static str;
    /// What restricts the list and its indexes, ` and …`, or nothing.
    const ONLY: &'static str;
    /// The types of the columns.
    type Columns;
    /// What a row is.
    type Item: Send;

    /// Reads a run of rows.
    async fn rows(connection: &SharedConnection, slice: Slice<Self>) -> Result<Vec<Self::Item>, StoreError>;

    /// Where a thing stands in the list.
    fn position(item: &Self::Item) -> Keyset;
}

/// Which of a seller's things a list holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filter {
    /// Only those of this status.
    pub(crate) status: Option<&'static str>,
    /// Only those that came to be later than this.
    pub(crate) newer_than: Option<DateTime<Utc>>,
    /// Only those that were updated later than this.
    pub(crate) updated_after: Option<DateTime<Utc>>,
}

/// Reads a page.
pub(crate) async fn read<L: Listed>(
    connection: &SharedConnection,
    seller: SellerId,
    filter: Filter,
    after: Option<Keyset>,
    size: PageSize,
) -> Result<Page<L::Item>, StoreError> {
    let list = Slice::<L> {
        newer_than: filter.newer_than,
        ..Slice::new(seller.uuid(), filter.status, after, i64::from(size.get()) + 1)
    };
    let items = match filter.updated_after {
        None => L::rows(connection, list).await?,
        Some(instant) => updated_after(connection, list, instant).await?,
    };
    Ok(Page::from_one_more(items, size, L::position))
}

async fn updated_after<L: Listed>(
    connection: &SharedConnection,
    list: Slice<L>,
    instant: DateTime<Utc>,
) -> Result<Vec<L::Item>, StoreError> {
    let mut found = Vec::new();
    if list.after.is_none_or(|after| after.at > instant) {
        let newer = Slice {
            newer_than: list.newer_than.max(Some(instant)),
            ..list
        };
        found = L::rows(connection, newer).await?;
    }
    let missing = list.rows - i64::try_from(found.len()).unwrap_or(list.rows);
    if missing > 0 && list.newer_than.is_none_or(|oldest| oldest < instant) {
        let older = Slice {
            until: Some(instant),
            rows: missing,
            ..list
        };
        found.extend(changed(connection, older, instant).await?);
    }
    Ok(found)
}

async fn changed<L: Listed>(
    connection: &SharedConnection,
    older: Slice<L>,
    instant: DateTime<Utc>,
) -> Result<Vec<L::Item>, StoreError> {
    let count = CountUpdated::of(&older, instant);
    let count = connection
        .ask(|link| async move { count.get_result::<i64>(&mut link.connection()).await })
        .await?;
    let changed = Slice {
        updated_after: Some(instant),
        few: count <= FEW,
        ..older
    };
    L::rows(connection, changed).await
}
