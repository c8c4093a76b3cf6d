//! Changes that the marketplace makes to an offer: moderation, and automatic prices from the pricing engine.

use chrono::{DateTime, Utc};
use kernel::{Change, Money, OfferId, SellerId};
use offers::{AutomaticPriceRefusal, Decision, Offer, OfferEvent, OfferStore};

use crate::{Failure, failure::refuse};

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The seller has no such offer.
    #[error("there is no such offer")]
    NoSuchOffer,
    /// The pricing engine may not set this price.
    #[error(transparent)]
    Price(#[from] AutomaticPriceRefusal),
}

/// Applies a moderation decision. Idempotent.
pub async fn moderate_offer(
    offers: &dyn OfferStore,
    seller: SellerId,
    id: OfferId,
    decision: Decision,
    now: DateTime<Utc>,
) -> Result<Offer, Failure<Refusal>> {
    let offer = locked(offers, seller, id).await?;
    let change = offer.clone().moderate(decision, now);
    save(offers, &offer, change).await
}

/// Sets an automatic price; a manual one is never overwritten.
pub async fn price_offer(
    offers: &dyn OfferStore,
    seller: SellerId,
    id: OfferId,
    price: Money,
    now: DateTime<Utc>,
) -> Result<Offer, Failure<Refusal>> {
    let offer = locked(offers, seller, id).await?;
    let change = offer.clone().price_automatically(price, now);
    let change = change.map_err(|refused| Failure::Refused(refused.into()))?;
    save(offers, &offer, change).await
}

async fn locked(offers: &dyn OfferStore, seller: SellerId, id: OfferId) -> Result<Offer, Failure<Refusal>> {
    match offers.lock_offers(seller, &[id]).await?.pop() {
        Some(offer) => Ok(offer),
        None => refuse(Refusal::NoSuchOffer),
    }
}

async fn save(
    offers: &dyn OfferStore,
    before: &Offer,
    change: Change<Offer, OfferEvent>,
) -> Result<Offer, Failure<Refusal>> {
    let after = change.after.clone();
    if after != *before {
        offers.save_offers(before.seller, vec![change]).await?;
    }
    Ok(after)
}
