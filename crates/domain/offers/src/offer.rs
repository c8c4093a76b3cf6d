//! An offer and what its seller and the pricing engine may do with it.

use chrono::{DateTime, TimeDelta, Utc};
use kernel::{Change, Invalid, Money, OfferId, SellerId};

use crate::{OfferStatus, OptionalText, WebAddress};

/// A product listed on the marketplace (contract: Offer).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Whose offer it is.
    pub seller: SellerId,
    /// The offer's id.
    pub id: OfferId,
    /// 1 to 500 characters.
    pub title: String,
    /// URL slug, 1 to 200 characters.
    pub handle: String,
    /// Where the offer stands.
    pub status: OfferStatus,
    /// The price with its origin; none when the offer has no PLN price.
    pub price: Option<Price>,
    /// Pieces on hand; none when no inventory level exists.
    pub stock: Option<Stock>,
    /// European Article Number, as fed.
    pub ean: OptionalText,
    /// Brand, as fed.
    pub brand: OptionalText,
    /// Catalogue id, brand and EAN joined by `|`, for third-party marketplaces.
    pub signature: OptionalText,
    /// The address of a small picture.
    pub thumbnail: Option<WebAddress>,
    /// The offer's page in the shop.
    pub url: WebAddress,
    /// When the offer was first fed.
    pub created_at: DateTime<Utc>,
    /// When a field that the API returns last changed, whoever changed it.
    pub updated_at: DateTime<Utc>,
}

/// A price and who set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// The amount.
    pub money: Money,
    /// Who set it.
    pub source: PriceSource,
}

/// Who set a price. Never shown to sellers; decides whether the pricing engine may overwrite it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriceSource {
    /// The seller, by hand or by API: the pricing engine keeps off.
    Manual,
    /// The catalogue feed or the pricing engine.
    Automatic,
}

/// Pieces on hand: 0 to 2^31 − 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stock(i32);

impl Stock {
    /// `pieces` on hand, 0 to 2^31 − 1.
    pub fn new(pieces: i64) -> Result<Self, Invalid> {
        i32::try_from(pieces)
            .ok()
            .filter(|pieces| *pieces >= 0)
            .map(Self)
            .ok_or_else(|| Invalid::new("must be an integer from 0 to 2147483647"))
    }

    /// The number of pieces.
    pub const fn get(self) -> i32 {
        self.0
    }

    /// What is left after taking some; nothing when there are too few.
    pub(crate) fn less(self, quantity: i32) -> Option<Self> {
        self.0.checked_sub(quantity).filter(|left| *left >= 0).map(Self)
    }

    /// With some more, up to the largest stock there can be.
    pub(crate) const fn plus(self, quantity: i32) -> Self {
        Self(self.0.saturating_add(quantity))
    }
}

/// What an offer's changes announce: a rejection to the seller's subscriptions, a seller's own changes to the marketplace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfferEvent {
    /// The seller set another price, or made the present one manual.
    PriceChanged {
        /// The offer.
        offer: OfferId,
        /// The price now.
        price: Money,
    },
    /// The seller set another stock.
    StockChanged {
        /// The offer.
        offer: OfferId,
        /// The stock now.
        stock: Stock,
    },
    /// The seller set another status.
    StatusChanged {
        /// The offer.
        offer: OfferId,
        /// The status now.
        status: OfferStatus,
    },
    /// Moderation rejected the product card (contract: `offer.rejected`).
    Rejected {
        /// The rejected offer.
        offer: OfferId,
    },
}

impl Offer {
    /// Closes a transition: `updated_at` moves if, and only if, a field that the API returns has changed. It moves on also
    /// where `now` lies behind it: a transaction may have begun before the one whose outcome it waited for.
    pub(crate) fn changed(self, mut after: Self, now: DateTime<Utc>) -> Change<Self, OfferEvent> {
        if !self.looks_like(&after) {
            after.updated_at = now.max(self.updated_at + TimeDelta::microseconds(1));
        }
        let rejected = after.status == OfferStatus::Rejected && self.status != OfferStatus::Rejected;
        let events = if rejected {
            vec![OfferEvent::Rejected { offer: after.id }]
        } else {
            Vec::new()
        };
        Change::of_existing(after, events)
    }

    /// True when the API returns the same for both: the origin of a price is not returned.
    fn looks_like(&self, other: &Self) -> bool {
        let shown = |offer: &Self| offer.price.map(|price| price.money);
        shown(self) == shown(other)
            && Self {
                price: other.price,
                ..self.clone()
            } == *other
    }
}
