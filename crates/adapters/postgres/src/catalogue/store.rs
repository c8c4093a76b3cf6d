//! Offers within a transaction.

use async_trait::async_trait;
use diesel::sql_types::{Array, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{Change, OfferId, SellerId, StoreError, Version};
use offers::{Offer, OfferEvent, OfferStore};
use usecases::Transaction;
use uuid::Uuid;

use super::{
    bulk::{Columns, Insert, Update},
    one::UpdateOne,
    row::{OfferColumns, OfferRow, offer_columns},
};
use crate::{
    error::store_error,
    pending::{Write, expect_rows},
    statement::statement,
    transaction::Tx,
};

/// A statement over one row takes no arrays: PostgreSQL keeps its plan, where it would make another one for each array.
struct LockOne {
    seller: Uuid,
    id: Uuid,
}

statement!(LockOne => OfferColumns:
    concat!("select ", offer_columns!(), " from offers where seller_id = "), seller: SqlUuid,
    " and id = ", id: SqlUuid, " for no key update");

struct Lock {
    seller: Uuid,
    ids: Vec<Uuid>,
}

statement!(Lock => OfferColumns:
    concat!("select ", offer_columns!(), " from offers where seller_id = "), seller: SqlUuid,
    " and id = any(", ids: Array<SqlUuid>, ") order by id for no key update");

#[async_trait]
impl OfferStore for Tx {
    async fn lock_offers(&self, seller: SellerId, ids: &[OfferId]) -> Result<Vec<Offer>, StoreError> {
        let seller = seller.uuid();
        let rows = if let [id] = ids {
            let lock = LockOne {
                seller,
                id: id.uuid(),
            };
            self.run(lock.get_results::<OfferRow>(&mut self.connection()))
                .await?
        } else {
            let ids = ids.iter().map(|id| id.uuid()).collect();
            let lock = Lock { seller, ids };
            self.run(lock.get_results::<OfferRow>(&mut self.connection()))
                .await?
        };
        rows.into_iter().map(Offer::try_from).collect()
    }

    async fn save_offers(
        &self,
        seller: SellerId,
        mut changes: Vec<Change<Offer, OfferEvent>>,
    ) -> Result<(), StoreError> {
        if let Some(foreign) = changes.iter().find(|change| change.after.seller != seller) {
            return Err(StoreError::unexpected(format!(
                "offer {} is another seller's",
                foreign.after.id
            )));
        }
        self.tell(|outbox| {
            for event in changes.iter().flat_map(|change| &change.events) {
                outbox.offer(seller, event, self.now());
            }
        });
        // Two transactions that make the same offers meet at the first of them, and never in a circle.
        changes.sort_unstable_by_key(|change| change.after.id);
        let (new, known): (Vec<_>, Vec<_>) = changes
            .into_iter()
            .partition(|change| change.before == Version::Absent);
        if !known.is_empty() {
            self.write_later(Box::new(KnownOffers {
                seller,
                offers: after(known),
            }));
        }
        if !new.is_empty() {
            let new = after(new);
            let insert = Insert {
                seller: seller.uuid(),
                rows: Columns::of(&new),
            };
            // Sent at once: that an offer exists meanwhile is for the caller to know.
            let rows = self.run(insert.execute(&mut self.connection())).await?;
            expect_rows("offers", rows, new.len())?;
        }
        Ok(())
    }
}

fn after(changes: Vec<Change<Offer, OfferEvent>>) -> Vec<Offer> {
    changes.into_iter().map(|change| change.after).collect()
}

/// Offers that are there, and locked, with what becomes of them.
struct KnownOffers {
    seller: SellerId,
    offers: Vec<Offer>,
}

#[async_trait]
impl Write for KnownOffers {
    async fn send(&self, mut connection: &AsyncPgConnection) -> Result<(), StoreError> {
        let updated = if let [offer] = self.offers.as_slice() {
            UpdateOne::of(offer).execute(&mut connection).await
        } else {
            let update = Update {
                seller: self.seller.uuid(),
                rows: Columns::of(&self.offers),
            };
            update.execute(&mut connection).await
        };
        expect_rows("offers", updated.map_err(store_error)?, self.offers.len())
    }
}
