//! Offers within a transaction.

use ::offers::{Offer, OfferEvent, OfferStore};
use async_trait::async_trait;
use kernel::{Change, OfferId, SellerId, StoreError, Version};

use super::{
    Database, Flaw, TxId,
    locks::{Row, Strength},
    transaction::Tx,
};

#[async_trait]
impl OfferStore for Tx {
    async fn lock_offers(&self, seller: SellerId, ids: &[OfferId]) -> Result<Vec<Offer>, StoreError> {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        ids.dedup();
        self.run(|database, tx| async move {
            let mut found = Vec::new();
            for id in ids {
                if !database.has(Flaw::ReadsUnlocked) {
                    database
                        .lock(tx, Row::Offer(seller, id), Strength::NoKeyUpdate)
                        .await?;
                }
                found.extend(database.at_once(|stored| stored.tables.offers.get(tx, &(seller, id)).cloned()));
            }
            Ok(found)
        })
        .await
    }

    async fn save_offers(
        &self,
        seller: SellerId,
        mut changes: Vec<Change<Offer, OfferEvent>>,
    ) -> Result<(), StoreError> {
        if changes.iter().any(|change| change.after.seller != seller) {
            return Err(StoreError::unexpected("an offer is another seller's"));
        }
        self.tell(|outbox| {
            for event in changes.iter().flat_map(|change| &change.events) {
                outbox.offer(seller, event, usecases::Transaction::now(self));
            }
        });
        changes.sort_unstable_by_key(|change| change.after.id);
        self.run(|database, tx| async move {
            for change in changes {
                save(&database, tx, change).await?;
            }
            Ok(())
        })
        .await
    }
}

async fn save(database: &Database, tx: TxId, change: Change<Offer, OfferEvent>) -> Result<(), StoreError> {
    let offer = change.after;
    let key = (offer.seller, offer.id);
    database
        .lock(tx, Row::Offer(key.0, key.1), Strength::NoKeyUpdate)
        .await?;
    database.at_once(|stored| {
        let offers = &mut stored.tables.offers;
        match (change.before, offers.get(tx, &key).is_some()) {
            (Version::Absent, true) => Err(StoreError::Conflict {
                constraint: "offers_pkey".to_owned(),
            }),
            (Version::Locked, false) => {
                Err(StoreError::unexpected("0 rows of offers were saved instead of 1"))
            }
            (Version::Absent, false) | (Version::Locked, true) => {
                offers.put(tx, key, offer);
                Ok(())
            }
        }
    })
}
