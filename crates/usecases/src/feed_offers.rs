//! The marketplace feeds offers: a single one, or many in chunks of one transaction each.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use kernel::{Change, OfferId, SellerId, StoreError};
use offers::{FeedEffect, IfMatch, Offer, OfferInput, OfferStore};

use crate::Announcement;

/// Feeds one offer of an existing seller, and returns it; none if it is not in the state `if_match`.
pub async fn feed_offer(
    offers: &dyn OfferStore<Announcement>,
    seller: SellerId,
    feed: OfferInput,
    if_match: Option<&IfMatch>,
    now: DateTime<Utc>,
) -> Result<Option<(FeedEffect, Offer)>, StoreError> {
    let existing = offers.lock_offers(seller, &[feed.id]).await?.pop();
    let is_met = |state: &IfMatch| existing.as_ref().is_some_and(|offer| state.is_met_by(offer));
    if !if_match.is_none_or(is_met) {
        return Ok(None);
    }
    let (effect, change) = feed.over(existing, seller, now);
    let offer = change.after.clone();
    if effect != FeedEffect::Unchanged {
        save(offers, seller, vec![Announcement::of_offer(change, now)]).await?;
    }
    Ok(Some((effect, offer)))
}

/// A row that another transaction inserted between our read and our insert is a transaction conflict: the
/// work can be retried.
async fn save(
    offers: &dyn OfferStore<Announcement>,
    seller: SellerId,
    changes: Vec<Change<Offer, Announcement>>,
) -> Result<(), StoreError> {
    match offers.save_fed_offers(seller, changes).await {
        Err(error @ StoreError::Conflict { .. }) => Err(StoreError::Retryable(error.into())),
        saved => saved,
    }
}

/// Offers that are fed in one transaction, which others wait for.
pub const CHUNK: usize = 1_000;

/// Rejected ones in one transaction: each may be an event for all subscriptions of its seller.
pub const CHUNK_OF_REJECTED: usize = 100;

/// The effects of a chunk's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Lines that created an offer.
    pub created: u64,
    /// Lines that updated one.
    pub updated: u64,
    /// Lines that were already identical to the offer.
    pub unchanged: u64,
}

/// Feeds a chunk of an existing seller's offers. Of two lines with the same id the later one wins: only it is
/// compared with the stored offer, so that a repeated feed changes nothing. Each line is counted by its
/// effect on the offer as left by the lines before it.
pub async fn import_offers(
    offers: &dyn OfferStore<Announcement>,
    seller: SellerId,
    chunk: &[OfferInput],
    now: DateTime<Utc>,
) -> Result<Counts, StoreError> {
    let winners: BTreeMap<_, _> = chunk.iter().map(|feed| (feed.id, feed)).collect();
    let ids: Vec<_> = winners.keys().copied().collect();
    let stored = offers.lock_offers(seller, &ids).await?.into_iter();
    let stored: BTreeMap<_, _> = stored.map(|offer| (offer.id, offer)).collect();
    let counts = count(chunk, stored.clone(), seller, now);
    let changes = winners.into_iter().filter_map(|(id, feed)| {
        let (effect, change) = feed.clone().over(stored.get(&id).cloned(), seller, now);
        (effect != FeedEffect::Unchanged).then(|| Announcement::of_offer(change, now))
    });
    let changes = changes.collect::<Vec<_>>();
    if !changes.is_empty() {
        save(offers, seller, changes).await?;
    }
    Ok(counts)
}

fn count(
    chunk: &[OfferInput],
    mut offers: BTreeMap<OfferId, Offer>,
    seller: SellerId,
    now: DateTime<Utc>,
) -> Counts {
    let mut counts = Counts::default();
    for feed in chunk {
        let (effect, change) = feed.clone().over(offers.remove(&feed.id), seller, now);
        match effect {
            FeedEffect::Created => counts.created += 1,
            FeedEffect::Updated => counts.updated += 1,
            FeedEffect::Unchanged => counts.unchanged += 1,
        }
        offers.insert(feed.id, change.after);
    }
    counts
}

#[cfg(test)]
mod tests {
    use kernel::Money;
    use offers::{OfferStatus, Product};
    use uuid::Uuid;

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{self, conflict, now};

    fn feed(id: u128, title: &str, status: OfferStatus) -> OfferInput {
        let offer = test_support::offer(seller(), Uuid::from_u128(id).into());
        OfferInput {
            id: offer.id,
            product: Product {
                title: title.to_owned(),
                ..offer.product
            },
            status,
            price: Money::pln(500).ok(),
            stock: offer.stock,
        }
    }

    fn published(id: u128, title: &str) -> OfferInput {
        feed(id, title, OfferStatus::Published)
    }

    fn seller() -> SellerId {
        Uuid::from_u128(1).into()
    }

    /// A transaction that finds these offers.
    fn finding(offers: Vec<Offer>) -> MockTransaction {
        let mut tx = MockTransaction::new();
        tx.expect_lock_offers()
            .once()
            .withf(|_, ids| ids.is_sorted())
            .returning(move |_, _| Ok(offers.clone()));
        tx
    }

    #[tokio::test]
    async fn an_offer_created_concurrently_makes_the_work_repeatable() {
        let conflicting = || {
            let mut tx = finding(Vec::new());
            tx.expect_save_fed_offers()
                .returning(move |_, _| Err(conflict("offers_pkey")));
            tx
        };
        let one = feed_offer(&conflicting(), seller(), published(7, "a"), None, now()).await;
        assert!(matches!(one, Err(StoreError::Retryable(_))));
        let many = import_offers(&conflicting(), seller(), &[published(7, "a")], now()).await;
        assert!(matches!(many, Err(StoreError::Retryable(_))));
    }

    #[tokio::test]
    async fn a_feed_that_names_an_id_twice_can_be_repeated() {
        let lines = [feed(1, "a", OfferStatus::Rejected), published(1, "b")];
        let (_, created) = lines[1].clone().over(None, seller(), now());
        let tx = finding(vec![created.after]);
        let counts = import_offers(&tx, seller(), &lines, now()).await.unwrap();
        assert_eq!((counts.created, counts.updated, counts.unchanged), (0, 2, 0));
    }
}
