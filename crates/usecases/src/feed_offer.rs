//! The marketplace puts one offer.

use chrono::{DateTime, Utc};
use kernel::{SellerId, StoreError};
use offers::{Fed, Offer, OfferFeed, OfferStore};

/// What became of the offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is new.
    Created(Offer),
    /// It changed, or was exactly so before.
    Kept(Offer),
}

/// Feeds one offer of an existing seller. An offer that somebody else makes at the same moment counts as a lost
/// transaction, which the caller repeats.
pub async fn feed_offer(
    offers: &dyn OfferStore,
    seller: SellerId,
    feed: OfferFeed,
    now: DateTime<Utc>,
) -> Result<Outcome, StoreError> {
    let existing = offers.lock_offers(seller, &[feed.id]).await?.pop();
    let (change, outcome) = match feed.over(existing, seller, now) {
        Fed::Unchanged(offer) => return Ok(Outcome::Kept(offer)),
        Fed::Updated(change) => (change.clone(), Outcome::Kept(change.after)),
        Fed::Created(change) => (change.clone(), Outcome::Created(change.after)),
    };
    offers
        .save_offers(seller, vec![change])
        .await
        .map_err(lost_to_another)?;
    Ok(outcome)
}

/// A row that appeared between our look and our insert: the transaction lost, and can be repeated over what is there now.
pub(crate) fn lost_to_another(error: StoreError) -> StoreError {
    match error {
        StoreError::Conflict { .. } => StoreError::Retryable(Box::new(error)),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use kernel::{Money, OfferId};
    use offers::OfferStatus;
    use uuid::Uuid;

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::now;

    fn feed() -> OfferFeed {
        OfferFeed {
            id: OfferId::from(Uuid::from_u128(7)),
            title: "Kettle".to_owned(),
            handle: "kettle".to_owned(),
            status: OfferStatus::Published,
            price: Money::pln(500).ok(),
            stock: None,
            ean: None,
            brand: None,
            signature: None,
            thumbnail: None,
            url: "https://shop.example/kettle".to_owned(),
        }
    }

    fn seller() -> SellerId {
        Uuid::from_u128(1).into()
    }

    #[tokio::test]
    async fn the_same_offer_again_saves_nothing() {
        let mut store = MockTransaction::new();
        store.expect_lock_offers().once().returning(|_, _| Ok(Vec::new()));
        store.expect_save_offers().once().returning(|_, _| Ok(()));
        let Outcome::Created(offer) = feed_offer(&store, seller(), feed(), now()).await.unwrap() else {
            panic!("it is new")
        };
        let mut store = MockTransaction::new();
        store
            .expect_lock_offers()
            .returning(move |_, _| Ok(vec![offer.clone()]));
        assert!(matches!(
            feed_offer(&store, seller(), feed(), now()).await,
            Ok(Outcome::Kept(_))
        ));
    }

    #[tokio::test]
    async fn a_twin_that_was_quicker_makes_the_work_repeatable() {
        let mut store = MockTransaction::new();
        store.expect_lock_offers().returning(|_, _| Ok(Vec::new()));
        let conflict = || StoreError::Conflict {
            constraint: "offers_pkey".to_owned(),
        };
        store.expect_save_offers().returning(move |_, _| Err(conflict()));
        let error = feed_offer(&store, seller(), feed(), now()).await.unwrap_err();
        assert!(matches!(error, StoreError::Retryable(_)));
    }
}
