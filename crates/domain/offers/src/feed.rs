//! The catalogue feed: the marketplace submits whole offers, one at a time or in bulk.

use chrono::{DateTime, Utc};
use kernel::{Change, Money, OfferId, SellerId};

use crate::{Offer, OfferEvent, OfferStatus, Price, PriceSource, Product, Stock};

/// A whole offer as the marketplace submits it. A price from the feed is automatic, not manual.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferInput {
    pub id: OfferId,
    pub product: Product,
    /// Any status: the feed includes moderation.
    pub status: OfferStatus,
    /// None removes the price and its manual mark.
    pub price: Option<Money>,
    /// None removes the inventory level.
    pub stock: Option<Stock>,
}

/// The effect of a feed on an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedEffect {
    Created,
    Updated,
    /// The offer was already identical: there is nothing to save.
    Unchanged,
}

impl OfferInput {
    /// Applies the feed to the existing offer. It replaces everything except the external id, and a manual
    /// price, which stays unless the feed has no price.
    pub fn over(
        self,
        existing: Option<Offer>,
        seller: SellerId,
        now: DateTime<Utc>,
    ) -> (FeedEffect, Change<Offer, OfferEvent>) {
        let before = existing.as_ref();
        let manual = before.and_then(|before| before.price);
        let manual = manual.filter(|price| price.source == PriceSource::Manual);
        let automatic = |money| Price {
            money,
            source: PriceSource::Automatic,
        };
        let after = Offer {
            seller,
            id: self.id,
            product: self.product,
            status: self.status,
            price: self.price.map(|fed| manual.unwrap_or_else(|| automatic(fed))),
            stock: self.stock,
            external_id: before.and_then(|before| before.external_id.clone()),
            created_at: before.map_or(now, |before| before.created_at),
            updated_at: before.map_or(now, |before| before.updated_at),
        };
        let Some(before) = existing else {
            let rejected = after.status == OfferStatus::Rejected;
            let events = rejected.then_some(OfferEvent::Rejected).into_iter().collect();
            return (FeedEffect::Created, Change::created(after, events));
        };
        let effect = if after == before {
            FeedEffect::Unchanged
        } else {
            FeedEffect::Updated
        };
        (effect, before.changed(after, now))
    }
}

#[cfg(test)]
mod tests;
