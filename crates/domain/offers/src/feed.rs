//! The catalogue feed: the marketplace submits whole offers, one at a time or in bulk.

use chrono::{DateTime, Utc};
use kernel::{Change, Money, OfferId, SellerId};

use crate::{Offer, OfferEvent, OfferStatus, Price, PriceSource, Stock};

/// A whole offer as the marketplace submits it. A price from the feed is automatic, not manual.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferInput {
    pub id: OfferId,
    /// See [`Offer::title`].
    pub title: String,
    /// See [`Offer::handle`].
    pub handle: String,
    /// Any status: the feed includes moderation.
    pub status: OfferStatus,
    /// None removes the price and its manual mark.
    pub price: Option<Money>,
    /// None removes the inventory level.
    pub stock: Option<Stock>,
    /// See [`Offer::ean`].
    pub ean: Option<String>,
    /// See [`Offer::brand`].
    pub brand: Option<String>,
    /// See [`Offer::signature`].
    pub signature: Option<String>,
    /// See [`Offer::thumbnail`].
    pub thumbnail: Option<String>,
    /// See [`Offer::url`].
    pub url: String,
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
        let Some(before) = existing else {
            return (FeedEffect::Created, self.create(seller, now));
        };
        let after = self.replace(&before);
        let effect = if after == before {
            FeedEffect::Unchanged
        } else {
            FeedEffect::Updated
        };
        (effect, before.changed(after, now))
    }

    fn create(self, seller: SellerId, now: DateTime<Utc>) -> Change<Offer, OfferEvent> {
        let price = self.price.map(automatic);
        let offer = self.into_offer(seller, price, now, now);
        let rejected = offer.status == OfferStatus::Rejected;
        let events = if rejected {
            vec![OfferEvent::Rejected { offer: offer.id }]
        } else {
            Vec::new()
        };
        Change::created(offer, events)
    }

    fn replace(self, before: &Offer) -> Offer {
        let manual = before.price.filter(|price| price.source == PriceSource::Manual);
        let price = self.price.map(|fed| manual.unwrap_or_else(|| automatic(fed)));
        Offer {
            external_id: before.external_id.clone(),
            ..self.into_offer(before.seller, price, before.created_at, before.updated_at)
        }
    }

    fn into_offer(
        self,
        seller: SellerId,
        price: Option<Price>,
        created_at: DateTime<Utc>,
        updated_at: DateTime<Utc>,
    ) -> Offer {
        Offer {
            seller,
            id: self.id,
            title: self.title,
            handle: self.handle,
            status: self.status,
            price,
            stock: self.stock,
            ean: self.ean,
            brand: self.brand,
            signature: self.signature,
            thumbnail: self.thumbnail,
            url: self.url,
            external_id: None,
            created_at,
            updated_at,
        }
    }
}

fn automatic(money: Money) -> Price {
    Price {
        money,
        source: PriceSource::Automatic,
    }
}

#[cfg(test)]
mod tests;
