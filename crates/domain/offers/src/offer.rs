//! An offer, how its seller and the pricing engine may change it, and its entity tag (RFC 9110 §8.8.3, §13.1.1).

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
    /// The strong entity tag of its state, with the quotes: made of its id and `updated_at`, so that it changes
    /// exactly when a field does that the API returns.
    pub fn etag(&self) -> String {
        let (id, updated_at) = (self.id.uuid(), self.updated_at.timestamp_micros());
        format!("\"{}{updated_at:016x}\"", id.simple())
    }

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

/// The offer's state on which a change is conditional: `*` for any, or the tag that it has, spelled exactly so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IfMatch(String);

impl IfMatch {
    /// Parses `*` or one tag. A weak tag is well-formed and matches nothing.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let is_tag_character = |byte| matches!(byte, 0x21 | 0x23..=0x7e | 0x80..);
        let opaque = text.strip_prefix("W/").unwrap_or(text).strip_prefix('"');
        match opaque.and_then(|rest| rest.strip_suffix('"')) {
            Some(opaque) if opaque.bytes().all(is_tag_character) => Ok(Self(text.to_owned())),
            None if text == "*" => Ok(Self(text.to_owned())),
            _ => Err(Invalid::new("must be one entity tag in quotes, or `*`")),
        }
    }

    /// Whether an existing offer is in this state.
    pub fn is_met_by(&self, offer: &Offer) -> bool {
        self.0 == "*" || self.0 == offer.etag()
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::OfferStatus;
    use crate::patch::tests::offer;

    #[test]
    fn a_tag_is_met_by_the_state_that_has_it() {
        let now = offer(OfferStatus::Draft, None, None);
        let (mut later, mut other) = (now.clone(), now.clone());
        later.updated_at += TimeDelta::microseconds(1);
        other.id = uuid::Uuid::from_u128(3).into();
        let tag = now.etag();
        let parsed = IfMatch::parse(&tag).unwrap();
        assert!(parsed.is_met_by(&now) && !parsed.is_met_by(&later) && !parsed.is_met_by(&other));
        assert!(IfMatch::parse("*").unwrap().is_met_by(&now));
        let weak = format!("W/{tag}");
        for unmet in [weak.as_str(), "\"\"", "\"a\"", "\"ż!~\"", &tag.to_uppercase()] {
            assert!(!IfMatch::parse(unmet).unwrap().is_met_by(&now), "{unmet}");
        }
        let list = format!("{tag}, {tag}");
        for malformed in ["", "\"", "a", "w/\"a\"", "\"a", "\"a b\"", "**", &list] {
            assert!(IfMatch::parse(malformed).is_err(), "{malformed}");
        }
    }
}
