//! Pages of a seller's offers, newest first.
//!
//! Each combination of filters is a statement of its own, so that each has a plan of its own: an index scan that starts at the
//! page's first row and stops at its last.
//!
//! # `updated_after`
//!
//! A list is sorted by `created_at` and filtered by `updated_at`, which no one index serves. An offer is never updated before
//! it is created, so the list has two parts, one after the other:
//! 1. offers *created* after the instant: all of them match, and the index by `created_at` yields them without a miss;
//! 2. older ones that have *changed* since. While at most [`FEW`] offers of the seller were updated after the instant, they are
//!    found in the index by `updated_at` and sorted: a page costs at most [`FEW`] index entries, whatever its depth and the
//!    number of offers. That is the client that polls for changes. Where there are more, the index by `created_at` is walked
//!    and offers that have not changed are passed over: about `size × older ÷ changed` rows a page where changes are spread
//!    evenly; at worst, where all that has changed lies at the far end, one pass over the seller's older offers.

use chrono::{DateTime, Utc};
use diesel_async::RunQueryDsl;
use kernel::{Keyset, Page, PageSize, SellerId, StoreError};
use offers::{Offer, OfferFilter};

use super::{
    page_statement::{CountUpdated, FEW, Part, Slice},
    row::OfferRow,
};
use crate::line::Line;

/// Reads a page.
pub(super) async fn read(
    line: &Line,
    seller: SellerId,
    filter: OfferFilter,
    after: Option<Keyset>,
    size: PageSize,
) -> Result<Page<Offer>, StoreError> {
    let list = Slice {
        seller: seller.uuid(),
        status: filter.status.map(offers::OfferStatus::as_str),
        part: Part::Whole,
        after,
        rows: i64::from(size.get()) + 1,
    };
    let rows = match filter.updated_after {
        None => rows(line, list).await?,
        Some(instant) => updated_after(line, list, instant).await?,
    };
    let offers = rows
        .into_iter()
        .map(Offer::try_from)
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Page::from_one_more(offers, size, |offer| Keyset {
        at: offer.created_at,
        id: offer.id.uuid(),
    }))
}

async fn updated_after(
    line: &Line,
    list: Slice,
    instant: DateTime<Utc>,
) -> Result<Vec<OfferRow>, StoreError> {
    let mut found = Vec::new();
    if list.after.is_none_or(|after| after.at > instant) {
        found = rows(
            line,
            Slice {
                part: Part::CreatedAfter(instant),
                ..list
            },
        )
        .await?;
    }
    let missing = list.rows - i64::try_from(found.len()).unwrap_or(list.rows);
    if missing > 0 {
        found.extend(
            changed(
                line,
                Slice {
                    rows: missing,
                    ..list
                },
                instant,
            )
            .await?,
        );
    }
    Ok(found)
}

async fn changed(line: &Line, older: Slice, instant: DateTime<Utc>) -> Result<Vec<OfferRow>, StoreError> {
    let count = CountUpdated {
        seller: older.seller,
        status: older.status,
        instant,
    };
    let count = line
        .ask(|link| async move { count.get_result::<i64>(&mut link.connection()).await })
        .await?;
    let part = if count <= FEW {
        Part::FewChanged(instant)
    } else {
        Part::ManyChanged(instant)
    };
    rows(line, Slice { part, ..older }).await
}

async fn rows(line: &Line, slice: Slice) -> Result<Vec<OfferRow>, StoreError> {
    line.ask(|link| async move { slice.get_results(&mut link.connection()).await })
        .await
}
