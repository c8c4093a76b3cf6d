//! An offer, and how its seller and the pricing engine may change it.

use chrono::{DateTime, TimeDelta, Utc};
use kernel::{Change, Invalid, Money, OfferId, SellerId};

use crate::OfferStatus;

/// A product listed on the marketplace (contract: Offer).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    pub seller: SellerId,
    pub id: OfferId,
    pub product: Product,
    pub status: OfferStatus,
    /// The price with its source; None if the offer has no PLN price.
    pub price: Option<Price>,
    /// Pieces in stock; None if the offer has no inventory level.
    pub stock: Option<Stock>,
    /// The seller's own name for it, such as a SKU; not unique.
    pub external_id: Option<String>,
    /// When the offer was first fed.
    pub created_at: DateTime<Utc>,
    /// The time of the last change, by anyone, of a field that the API returns.
    pub updated_at: DateTime<Utc>,
}

/// What the catalogue feed alone sets. Columns and the API's fields have the same names.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "mocks"), derive(Default))]
pub struct Product {
    /// 1 to 500 characters.
    pub title: String,
    /// URL slug, 1 to 200 characters.
    pub handle: String,
    /// European Article Number, as fed.
    pub ean: Option<String>,
    /// Brand, as fed.
    pub brand: Option<String>,
    /// Catalogue id, brand and EAN joined by `|`, for third-party marketplaces.
    pub signature: Option<String>,
    /// The URL of a small image.
    pub thumbnail: Option<String>,
    /// The offer's page in the shop.
    pub url: String,
}

/// A price and who set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    pub money: Money,
    pub source: PriceSource,
}

kernel::words! {
    /// Who set a price. Never visible to sellers; determines whether the pricing engine may overwrite it.
    pub enum PriceSource {
        /// The seller, in person or through the API: the pricing engine may not change it.
        Manual = "manual",
        /// The catalogue feed or the pricing engine.
        Automatic = "automatic",
    }
}

/// Pieces in stock: 0 to 2^31 − 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Stock(i32);

impl Stock {
    /// `pieces` in stock, 0 to 2^31 − 1.
    pub fn new(pieces: i64) -> Result<Self, Invalid> {
        i32::try_from(pieces)
            .ok()
            .filter(|pieces| *pieces >= 0)
            .map(Self)
            .ok_or_else(|| Invalid::new("must be an integer from 0 to 2147483647"))
    }

    pub const fn get(self) -> i32 {
        self.0
    }

    /// The stock minus `quantity`; None if there are too few pieces.
    pub(crate) fn less(self, quantity: i32) -> Option<Self> {
        self.0.checked_sub(quantity).filter(|left| *left >= 0).map(Self)
    }

    /// The stock plus `quantity`, saturating at the maximum.
    pub(crate) const fn plus(self, quantity: i32) -> Self {
        Self(self.0.saturating_add(quantity))
    }
}

/// Events of an offer: a rejection goes to the seller's subscriptions, a seller's own change to the
/// marketplace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfferEvent {
    /// The seller set another price, or made the current one manual.
    PriceChanged(Money),
    StockChanged(Stock),
    StatusChanged(OfferStatus),
    /// Moderation rejected the product card (contract: `offer.rejected`).
    Rejected,
}

impl Offer {
    /// Completes a transition: `updated_at` advances exactly if a field that the API returns has changed. It
    /// advances even if `now` is earlier: this transaction may have begun before the one that it waited for.
    pub(crate) fn changed(self, mut after: Self, now: DateTime<Utc>) -> Change<Self, OfferEvent> {
        if !self.looks_like(&after) {
            after.updated_at = now.max(self.updated_at + TimeDelta::microseconds(1));
        }
        let rejected = after.status == OfferStatus::Rejected && self.status != OfferStatus::Rejected;
        let events = rejected.then_some(OfferEvent::Rejected).into_iter().collect();
        Change::of_existing(after, events)
    }

    /// True if the API returns the same for both: it does not return a price's source.
    fn looks_like(&self, other: &Self) -> bool {
        let shown = |offer: &Self| offer.price.map(|price| price.money);
        shown(self) == shown(other)
            && Self {
                price: other.price,
                ..self.clone()
            } == *other
    }
}

/// For tests, so that they name an offer's optional fields only where they are about them.
#[cfg(any(test, feature = "mocks"))]
impl Offer {
    /// A published kettle with its mandatory fields alone.
    pub fn example(seller: SellerId, id: OfferId, at: DateTime<Utc>) -> Self {
        Self {
            seller,
            id,
            product: Product {
                title: "Kettle".to_owned(),
                handle: "kettle".to_owned(),
                url: "https://shop.example/kettle".to_owned(),
                ..Product::default()
            },
            status: OfferStatus::Published,
            price: None,
            stock: None,
            external_id: None,
            created_at: at,
            updated_at: at,
        }
    }
}
