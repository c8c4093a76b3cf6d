//! The marketplace feeds many offers, in chunks that are one transaction each.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use kernel::{OfferId, SellerId, StoreError};
use offers::{Fed, Offer, OfferFeed, OfferStore};

use crate::feed_offer::lost_to_another;

/// How many offers are fed in one transaction.
pub const CHUNK: usize = 5_000;

/// What became of the lines of one or more chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Lines that made an offer.
    pub created: u64,
    /// Lines that changed one.
    pub updated: u64,
    /// Lines that said what was so before.
    pub unchanged: u64,
}

impl Counts {
    /// Adds the counts of another chunk.
    pub fn add(&mut self, other: Self) {
        self.created += other.created;
        self.updated += other.updated;
        self.unchanged += other.unchanged;
    }
}

/// Feeds a chunk of an existing seller's offers. Of two lines with the same id the later one wins: it alone is compared with
/// what is stored, so that a feed can be repeated without touching anything. Each line is counted as what it does to the
/// offer as the lines before it leave it.
pub async fn import_offers(
    offers: &dyn OfferStore,
    seller: SellerId,
    chunk: &[OfferFeed],
    now: DateTime<Utc>,
) -> Result<Counts, StoreError> {
    let winners = chunk
        .iter()
        .map(|feed| (feed.id, feed))
        .collect::<BTreeMap<_, _>>();
    let ids = winners.keys().copied().collect::<Vec<_>>();
    let stored = offers.lock_offers(seller, &ids).await?;
    let stored = stored
        .into_iter()
        .map(|offer| (offer.id, offer))
        .collect::<BTreeMap<_, _>>();
    let counts = count(chunk, stored.clone(), seller, now);
    let changes = winners.into_iter().filter_map(|(id, feed)| {
        match feed.clone().over(stored.get(&id).cloned(), seller, now) {
            Fed::Created(change) | Fed::Updated(change) => Some(change),
            Fed::Unchanged(_) => None,
        }
    });
    let changes = changes.collect::<Vec<_>>();
    if !changes.is_empty() {
        offers
            .save_offers(seller, changes)
            .await
            .map_err(lost_to_another)?;
    }
    Ok(counts)
}

fn count(
    chunk: &[OfferFeed],
    mut offers: BTreeMap<OfferId, Offer>,
    seller: SellerId,
    now: DateTime<Utc>,
) -> Counts {
    let mut counts = Counts::default();
    for feed in chunk {
        let after = match feed.clone().over(offers.remove(&feed.id), seller, now) {
            Fed::Created(change) => {
                counts.created += 1;
                change.after
            }
            Fed::Updated(change) => {
                counts.updated += 1;
                change.after
            }
            Fed::Unchanged(offer) => {
                counts.unchanged += 1;
                offer
            }
        };
        offers.insert(feed.id, after);
    }
    counts
}

#[cfg(test)]
mod tests {
    use kernel::{Money, Version};
    use offers::OfferStatus;
    use uuid::Uuid;

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::now;

    fn feed(id: u128, title: &str, status: OfferStatus) -> OfferFeed {
        OfferFeed {
            id: OfferId::from(Uuid::from_u128(id)),
            title: title.to_owned(),
            handle: "kettle".to_owned(),
            status,
            price: Money::pln(500).ok(),
            stock: None,
            ean: None,
            brand: None,
            signature: None,
            thumbnail: None,
            url: "https://shop.example/kettle".to_owned(),
        }
    }

    #[tokio::test]
    async fn the_later_of_two_lines_wins_and_each_is_counted_as_what_it_did() {
        let published = |id, title: &str| feed(id, title, OfferStatus::Published);
        let rejected = |id, title: &str| feed(id, title, OfferStatus::Rejected);
        let lines = [
            published(2, "a"),
            published(1, "x"),
            published(2, "b"),
            published(2, "b"),
            rejected(1, "x"),
            published(1, "y"),
        ];
        let mut store = MockTransaction::new();
        store
            .expect_lock_offers()
            .once()
            .withf(|_, ids| ids.is_sorted() && ids.len() == 2)
            .returning(|_, _| Ok(Vec::new()));
        store
            .expect_save_offers()
            .once()
            .withf(|_, changes| {
                let [one, two] = changes.as_slice() else {
                    return false;
                };
                one.before == Version::Absent
                    && (one.after.title.as_str(), one.events.len()) == ("y", 0)
                    && (two.after.title.as_str(), two.events.len()) == ("b", 0)
            })
            .returning(|_, _| Ok(()));
        let counts = import_offers(&store, Uuid::from_u128(1).into(), &lines, now())
            .await
            .unwrap();
        assert_eq!(
            counts,
            Counts {
                created: 2,
                updated: 3,
                unchanged: 1
            }
        );
    }

    #[tokio::test]
    async fn a_feed_that_names_an_id_twice_can_be_repeated() {
        let lines = [
            feed(1, "a", OfferStatus::Rejected),
            feed(1, "b", OfferStatus::Published),
        ];
        let Fed::Created(made) = lines[1].clone().over(None, Uuid::from_u128(1).into(), now()) else {
            panic!("it is new")
        };
        let mut store = MockTransaction::new();
        store
            .expect_lock_offers()
            .returning(move |_, _| Ok(vec![made.after.clone()]));
        let counts = import_offers(&store, Uuid::from_u128(1).into(), &lines, now())
            .await
            .unwrap();
        assert_eq!(
            counts,
            Counts {
                created: 0,
                updated: 2,
                unchanged: 0
            }
        );
    }
}
