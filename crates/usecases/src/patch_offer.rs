//! A seller changes price, stock or status of an offer.

use chrono::{DateTime, Utc};
use kernel::{OfferId, SellerId};
use offers::{Offer, OfferPatch, OfferStore, PatchRefusal};

use crate::{Failure, failure::refuse};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The seller has no such offer.
    #[error("there is no such offer")]
    NoSuchOffer,
    /// The offer does not allow it; every reason, in the contract's field order.
    #[error("the offer does not allow the change")]
    Rules(Vec<PatchRefusal>),
}

/// Applies the whole change, or nothing of it.
pub async fn patch_offer(
    offers: &dyn OfferStore,
    seller: SellerId,
    id: OfferId,
    patch: OfferPatch,
    now: DateTime<Utc>,
) -> Result<Offer, Failure<Refusal>> {
    let Some(offer) = offers.lock_offers(seller, &[id]).await?.pop() else {
        return refuse(Refusal::NoSuchOffer);
    };
    let change = offer
        .clone()
        .patch(patch, now)
        .map_err(|reasons| Failure::Refused(Refusal::Rules(reasons)))?;
    let after = change.after.clone();
    if after != offer {
        offers.save_offers(seller, vec![change]).await?;
    }
    Ok(after)
}

#[cfg(test)]
mod tests {
    use offers::SellerStatus;
    use uuid::Uuid;

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{now, offer, refusal};

    fn store(saves: usize) -> MockTransaction {
        let mut store = MockTransaction::new();
        store
            .expect_lock_offers()
            .returning(|seller, ids| Ok(vec![offer(seller, ids[0])]));
        store.expect_save_offers().times(saves).returning(|_, _| Ok(()));
        store
    }

    async fn patch(store: MockTransaction, patch: OfferPatch) -> Result<Offer, Failure<Refusal>> {
        patch_offer(
            &store,
            Uuid::from_u128(1).into(),
            Uuid::from_u128(2).into(),
            patch,
            now(),
        )
        .await
    }

    #[tokio::test]
    async fn what_changes_nothing_saves_nothing() {
        let same = OfferPatch {
            status: Some(SellerStatus::Published),
            ..OfferPatch::default()
        };
        assert!(patch(store(0), same).await.is_ok());
        let other = OfferPatch {
            status: Some(SellerStatus::Draft),
            ..OfferPatch::default()
        };
        assert!(patch(store(1), other).await.is_ok());
    }

    #[tokio::test]
    async fn another_sellers_offer_is_none() {
        let mut store = MockTransaction::new();
        store.expect_lock_offers().returning(|_, _| Ok(Vec::new()));
        let refused = patch(store, OfferPatch::default()).await;
        assert_eq!(refusal(refused), Refusal::NoSuchOffer);
    }
}
