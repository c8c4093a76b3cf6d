//! Changes to one offer: by its seller, by moderation, and by the pricing engine. Feeds replace whole offers:
//! see `feed_offers`.

use chrono::{DateTime, Utc};
use kernel::{Change, Money, OfferId, SellerId};
use offers::{
    AutomaticPriceRefusal, Decision, Offer, OfferEvent, OfferPatch, OfferStore, OptimisticChange,
    PatchRefusal,
};

use crate::{Announcement, Failure, failure::refuse};

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal<R> {
    #[error("no such offer")]
    NoSuchOffer,
    #[error("the offer does not allow the change")]
    Rules(R),
}

/// Applies a seller's whole change, or refuses it with every reason, in the contract's field order.
pub async fn patch_offer(
    offers: &dyn OfferStore<Announcement>,
    seller: SellerId,
    id: OfferId,
    patch: OfferPatch,
    now: DateTime<Utc>,
) -> Result<Offer, Failure<Refusal<Vec<PatchRefusal>>>> {
    change(offers, seller, id, now, |offer| offer.patch(patch, now)).await
}

/// Decides a seller's change of an offer that was read without a lock, by the same rules as [`patch_offer`].
pub fn decide_patch(
    offer: Option<Offer>,
    patch: OfferPatch,
    now: DateTime<Utc>,
) -> Result<OptimisticChange<Announcement>, Refusal<Vec<PatchRefusal>>> {
    let before = offer.ok_or(Refusal::NoSuchOffer)?;
    let change = before.clone().patch(patch, now).map_err(Refusal::Rules)?;
    Ok(OptimisticChange {
        before,
        change: Announcement::of_offer(change, now),
        at: now,
    })
}

/// Applies a moderation decision. Idempotent.
pub async fn moderate_offer(
    offers: &dyn OfferStore<Announcement>,
    seller: SellerId,
    id: OfferId,
    decision: Decision,
    now: DateTime<Utc>,
) -> Result<Offer, Failure<Refusal<AutomaticPriceRefusal>>> {
    change(offers, seller, id, now, |offer| Ok(offer.moderate(decision, now))).await
}

/// Sets an automatic price; a manual one is never overwritten.
pub async fn price_offer(
    offers: &dyn OfferStore<Announcement>,
    seller: SellerId,
    id: OfferId,
    price: Money,
    now: DateTime<Utc>,
) -> Result<Offer, Failure<Refusal<AutomaticPriceRefusal>>> {
    change(offers, seller, id, now, |offer| {
        offer.price_automatically(price, now)
    })
    .await
}

/// Saves the change, unless the offer stays the same.
async fn change<R>(
    offers: &dyn OfferStore<Announcement>,
    seller: SellerId,
    id: OfferId,
    now: DateTime<Utc>,
    apply: impl FnOnce(Offer) -> Result<Change<Offer, OfferEvent>, R> + Send,
) -> Result<Offer, Failure<Refusal<R>>> {
    let Some(before) = offers.lock_offers(seller, &[id]).await?.pop() else {
        return refuse(Refusal::NoSuchOffer);
    };
    let change = apply(before.clone()).map_err(|refused| Failure::Refused(Refusal::Rules(refused)))?;
    let after = change.after.clone();
    if after != before {
        let change = Announcement::of_offer(change, now);
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

    #[tokio::test]
    async fn only_an_effective_change_of_an_existing_offer_is_saved() {
        let patch = async |exists: bool, status, saves| {
            let mut store = MockTransaction::new();
            store.expect_lock_offers().returning(move |seller, ids| {
                Ok(exists.then(|| offer(seller, ids[0])).into_iter().collect())
            });
            store
                .expect_save_offers()
                .times(saves)
                .withf(|_, changes| {
                    let [announced] = changes[0].events.as_slice() else {
                        return false;
                    };
                    announced.item.is_some() && announced.event.is_none()
                })
                .returning(|_, _| Ok(()));
            let (seller, id) = (Uuid::from_u128(1).into(), Uuid::from_u128(2).into());
            let patch = OfferPatch {
                status: Some(status),
                ..OfferPatch::default()
            };
            patch_offer(&store, seller, id, patch, now()).await
        };
        patch(true, SellerStatus::Published, 0).await.unwrap();
        patch(true, SellerStatus::Draft, 1).await.unwrap();
        let refused = refusal(patch(false, SellerStatus::Draft, 0).await);
        assert_eq!(refused, Refusal::NoSuchOffer);
    }
}
