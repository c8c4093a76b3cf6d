//! The marketplace feeds many offers, in chunks that are one transaction each.

use std::collections::{BTreeMap, btree_map::Entry};

use chrono::{DateTime, Utc};
use kernel::{Change, OfferId, SellerId, StoreError};
use offers::{Fed, Offer, OfferEvent, OfferFeed, OfferStore};

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

/// Feeds a chunk of an existing seller's offers, line after line: of two lines with the same id the later one wins.
/// Offers that are exactly so already are not touched.
pub async fn import_offers(
    offers: &dyn OfferStore,
    seller: SellerId,
    chunk: &[OfferFeed],
    now: DateTime<Utc>,
) -> Result<Counts, StoreError> {
    let ids = chunk
        .iter()
        .map(|feed| feed.id)
        .collect::<std::collections::BTreeSet<_>>();
    let ids = ids.into_iter().collect::<Vec<_>>();
    let mut existing = offers
        .lock_offers(seller, &ids)
        .await?
        .into_iter()
        .map(|o| (o.id, o))
        .collect::<BTreeMap<_, _>>();
    let mut changes = BTreeMap::<OfferId, Change<Offer, OfferEvent>>::new();
    let mut counts = Counts::default();
    for feed in chunk {
        let id = feed.id;
        let pending = changes.get(&id).map(|change| change.after.clone());
        match feed
            .clone()
            .over(pending.or_else(|| existing.remove(&id)), seller, now)
        {
            Fed::Created(change) => {
                counts.created += 1;
                changes.insert(id, change);
            }
            Fed::Updated(change) => {
                counts.updated += 1;
                merge(&mut changes, id, change);
            }
            Fed::Unchanged(offer) => {
                counts.unchanged += 1;
                existing.insert(id, offer);
            }
        }
    }
    if !changes.is_empty() {
        offers
            .save_offers(seller, changes.into_values().collect())
            .await
            .map_err(lost_to_another)?;
    }
    Ok(counts)
}

/// A later change of the same offer continues the earlier one: one row to save, the events of both.
fn merge(
    changes: &mut BTreeMap<OfferId, Change<Offer, OfferEvent>>,
    id: OfferId,
    change: Change<Offer, OfferEvent>,
) {
    match changes.entry(id) {
        Entry::Vacant(vacant) => {
            vacant.insert(change);
        }
        Entry::Occupied(mut earlier) => {
            let earlier = earlier.get_mut();
            earlier.after = change.after;
            earlier.events.extend(change.events);
        }
    }
}

#[cfg(test)]
mod tests {
    use kernel::{Money, Version};
    use offers::{MockOfferStore, OfferStatus};
    use uuid::Uuid;

    use super::*;
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
        let mut store = MockOfferStore::new();
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
                    && (one.after.title.as_str(), one.events.len()) == ("y", 1)
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
}
