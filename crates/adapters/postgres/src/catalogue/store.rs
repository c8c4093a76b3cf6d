//! Offers within a transaction.

use async_trait::async_trait;
use diesel::sql_types::{Array, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use kernel::{Change, OfferId, SellerId, StoreError, Version};
use offers::{Offer, OfferEvent, OfferStore};
use uuid::Uuid;

use super::{
    bulk::{Columns, Insert, Update},
    row::{OfferColumns, OfferRow, offer_columns},
};
use crate::{statement::statement, transaction::Tx};

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
        let lock = Lock {
            seller: seller.uuid(),
            ids: ids.iter().map(|id| id.uuid()).collect(),
        };
        let rows = self
            .run(lock.get_results::<OfferRow>(&mut self.connection()))
            .await?;
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
        // Two transactions that make the same offers meet at the first of them, and never in a circle.
        changes.sort_unstable_by_key(|change| change.after.id);
        let (new, known): (Vec<_>, Vec<_>) = changes
            .iter()
            .partition(|change| change.before == Version::Absent);
        if !new.is_empty() {
            let insert = Insert {
                seller: seller.uuid(),
                rows: Columns::of(&new),
            };
            all_saved(self.run(insert.execute(&mut self.connection())).await?, new.len())?;
        }
        if !known.is_empty() {
            let update = Update {
                seller: seller.uuid(),
                rows: Columns::of(&known),
            };
            all_saved(
                self.run(update.execute(&mut self.connection())).await?,
                known.len(),
            )?;
        }
        // The events go no further: there are no subscriptions yet, so nobody can be told. Once there are, their deliveries
        // are rows of this very transaction.
        Ok(())
    }
}

fn all_saved(rows: usize, changes: usize) -> Result<(), StoreError> {
    if rows == changes {
        return Ok(());
    }
    Err(StoreError::unexpected(format!(
        "{rows} offers were saved instead of {changes}"
    )))
}
