//! Changes to offers: by their seller, by moderation, and by the pricing engine. Feeds replace whole offers:
//! see `feed_offers`.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use kernel::{Change, Money, OfferId, SellerId, StoreError};
use offers::{
    AutomaticPriceRefusal, Decision, Offer, OfferEvent, OfferPatch, OfferStore, OptimisticChange,
    PatchRefusal,
};

use crate::{Announcement, Failure, failure::refuse};

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OfferChangeRefusal<R> {
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
) -> Result<Offer, Failure<OfferChangeRefusal<Vec<PatchRefusal>>>> {
    change(offers, seller, id, now, |offer| offer.patch(patch, now)).await
}

/// Decides a seller's change of an offer that was read without a lock, by the same rules as [`patch_offer`].
pub fn decide_patch(
    offer: Option<Offer>,
    patch: OfferPatch,
    now: DateTime<Utc>,
) -> Result<OptimisticChange<Announcement>, OfferChangeRefusal<Vec<PatchRefusal>>> {
    let before = offer.ok_or(OfferChangeRefusal::NoSuchOffer)?;
    let change = before
        .clone()
        .patch(patch, now)
        .map_err(OfferChangeRefusal::Rules)?;
    Ok(OptimisticChange {
        before,
        change: Announcement::of_offer(change, now),
        at: now,
    })
}

/// The outcome of one change of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Patched {
    /// After the change, or as it is where the change is refused; None if the seller has no such offer.
    pub offer: Option<Offer>,
    /// Every reason; none if the change was made.
    pub refusals: Vec<PatchRefusal>,
}

/// Applies each of a seller's changes whole, or refuses it, by the same rules as [`patch_offer`]; those that are
/// made are saved together. No two are of the same offer. An id that is `None` matches no offer.
pub async fn patch_offers(
    offers: &dyn OfferStore<Announcement>,
    seller: SellerId,
    patches: &[(Option<OfferId>, OfferPatch)],
    now: DateTime<Utc>,
) -> Result<Vec<Patched>, StoreError> {
    let ids: Vec<_> = patches.iter().filter_map(|(id, _)| *id).collect();
    let locked = offers.lock_offers(seller, &ids).await?.into_iter();
    let mut present: BTreeMap<_, _> = locked.map(|offer| (offer.id, offer)).collect();
    let mut changes = Vec::new();
    let mut outcome = |(id, patch): &(Option<OfferId>, OfferPatch)| {
        let Some(before) = id.and_then(|id| present.remove(&id)) else {
            return Patched::default();
        };
        match before.clone().patch(patch.clone(), now) {
            Ok(change) => {
                let offer = Some(change.after.clone());
                if change.after != before {
                    changes.push(Announcement::of_offer(change, now));
                }
                let refusals = Vec::new();
                Patched { offer, refusals }
            }
            Err(refusals) => Patched {
                offer: Some(before),
                refusals,
            },
        }
    };
    let outcomes = patches.iter().map(&mut outcome).collect();
    if !changes.is_empty() {
        offers.save_offers(seller, changes).await?;
    }
    Ok(outcomes)
}

/// Applies a moderation decision. Idempotent.
pub async fn moderate_offer(
    offers: &dyn OfferStore<Announcement>,
    seller: SellerId,
    id: OfferId,
    decision: Decision,
    now: DateTime<Utc>,
) -> Result<Offer, Failure<OfferChangeRefusal<AutomaticPriceRefusal>>> {
    change(offers, seller, id, now, |offer| Ok(offer.moderate(decision, now))).await
}

/// Sets an automatic price; a manual one is never overwritten.
pub async fn price_offer(
    offers: &dyn OfferStore<Announcement>,
    seller: SellerId,
    id: OfferId,
    price: Money,
    now: DateTime<Utc>,
) -> Result<Offer, Failure<OfferChangeRefusal<AutomaticPriceRefusal>>> {
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
) -> Result<Offer, Failure<OfferChangeRefusal<R>>> {
    let Some(before) = offers.lock_offers(seller, &[id]).await?.pop() else {
        return refuse(OfferChangeRefusal::NoSuchOffer);
    };
    let change =
        apply(before.clone()).map_err(|refused| Failure::Refused(OfferChangeRefusal::Rules(refused)))?;
    let after = change.after.clone();
    if after != before {
        let change = Announcement::of_offer(change, now);
        offers.save_offers(seller, vec![change]).await?;
    }
    Ok(after)
}

#[cfg(test)]
mod tests {
    use offers::{OfferStatus, SellerStatus};
    use uuid::Uuid;

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{now, offer};

    #[tokio::test]
    async fn the_changes_of_a_batch_that_are_made_are_saved_together() {
        let mut store = MockTransaction::new();
        let [made, same, refused, absent] = [1, 2, 3, 4].map(|n| OfferId::from(Uuid::from_u128(n)));
        let ids = [made, same, refused, absent];
        store
            .expect_lock_offers()
            .withf(move |_, asked| asked == ids)
            .returning(move |seller, _| {
                let locked = Offer {
                    status: OfferStatus::Rejected,
                    ..offer(seller, refused)
                };
                Ok(vec![locked, offer(seller, same), offer(seller, made)])
            });
        store
            .expect_save_offers()
            .times(1)
            .withf(move |_, changes| matches!(changes.as_slice(), [change] if change.after.id == made))
            .returning(|_, _| Ok(()));
        let patch = |status| OfferPatch {
            status: Some(status),
            ..OfferPatch::default()
        };
        let draft = || patch(SellerStatus::Draft);
        let patches = [
            (Some(made), draft()),
            (None, draft()),
            (Some(same), patch(SellerStatus::Published)),
            (Some(refused), draft()),
            (Some(absent), draft()),
        ];
        let seller = Uuid::from_u128(9).into();
        let outcomes = patch_offers(&store, seller, &patches, now()).await.unwrap();
        let statuses = outcomes.iter().map(|outcome| {
            let status = outcome.offer.as_ref().map(|offer| offer.status);
            (status, outcome.refusals.as_slice())
        });
        assert_eq!(
            statuses.collect::<Vec<_>>(),
            [
                (Some(OfferStatus::Draft), &[][..]),
                (None, &[]),
                (Some(OfferStatus::Published), &[]),
                (
                    Some(OfferStatus::Rejected),
                    &[PatchRefusal::StatusLocked(OfferStatus::Rejected)]
                ),
                (None, &[]),
            ]
        );
    }
}
