//! Changes to an offer through the API by its seller, and by the pricing engine.

use chrono::{DateTime, Utc};
use kernel::{Change, Money};

use crate::{Offer, OfferEvent, OfferStatus, Price, PriceSource, Stock};

/// The statuses that a seller can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SellerStatus {
    /// Show the offer.
    Published,
    /// Hide the offer.
    Draft,
}

impl SellerStatus {
    /// Both, in the contract's order.
    pub const ALL: [Self; 2] = [Self::Published, Self::Draft];

    /// The resulting status.
    pub const fn status(self) -> OfferStatus {
        match self {
            Self::Published => OfferStatus::Published,
            Self::Draft => OfferStatus::Draft,
        }
    }
}

/// A seller's change; None leaves a field unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OfferPatch {
    /// A new price; it becomes manual even if the amount is the same.
    pub price: Option<Money>,
    pub stock: Option<Stock>,
    pub status: Option<SellerStatus>,
}

/// Why part of a patch is refused (contract: PATCH /v1/offers/{id}).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchRefusal {
    /// `no_price_row`.
    NoPrice,
    /// `no_inventory_row`.
    NoStock,
    /// `status_locked_by_moderation`.
    StatusLocked(OfferStatus),
}

/// Why a price of the pricing engine is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AutomaticPriceRefusal {
    /// `no_price_row`.
    #[error("this offer has no PLN price")]
    NoPrice,
    /// `price_is_manual`.
    #[error("the seller set this price manually")]
    Manual,
}

impl Offer {
    /// Applies a seller's whole change, or refuses it with every reason, in the contract's field order.
    pub fn patch(
        self,
        patch: OfferPatch,
        now: DateTime<Utc>,
    ) -> Result<Change<Self, OfferEvent>, Vec<PatchRefusal>> {
        let mut refusals = Vec::new();
        if patch.price.is_some() && self.price.is_none() {
            refusals.push(PatchRefusal::NoPrice);
        }
        if patch.stock.is_some() && self.stock.is_none() {
            refusals.push(PatchRefusal::NoStock);
        }
        if patch.status.is_some() && self.status.is_locked() {
            refusals.push(PatchRefusal::StatusLocked(self.status));
        }
        if !refusals.is_empty() {
            return Err(refusals);
        }
        let after = Self {
            price: patch
                .price
                .map(|money| Price {
                    money,
                    source: PriceSource::Manual,
                })
                .or(self.price),
            stock: patch.stock.or(self.stock),
            status: patch.status.map_or(self.status, SellerStatus::status),
            ..self.clone()
        };
        let events = self.seller_events(&after);
        let mut change = self.changed(after, now);
        change.events.extend(events);
        Ok(change)
    }

    /// Sets a price on behalf of the pricing engine. It neither overwrites a manual price nor creates one.
    pub fn price_automatically(
        self,
        money: Money,
        now: DateTime<Utc>,
    ) -> Result<Change<Self, OfferEvent>, AutomaticPriceRefusal> {
        match self.price.map(|price| price.source) {
            None => Err(AutomaticPriceRefusal::NoPrice),
            Some(PriceSource::Manual) => Err(AutomaticPriceRefusal::Manual),
            Some(PriceSource::Automatic) => {
                let price = Some(Price {
                    money,
                    source: PriceSource::Automatic,
                });
                let after = Self {
                    price,
                    ..self.clone()
                };
                Ok(self.changed(after, now))
            }
        }
    }

    /// One event per field that the seller changed. A price that keeps its amount but becomes manual also has
    /// an event, since the pricing engine needs to know.
    fn seller_events(&self, after: &Self) -> Vec<OfferEvent> {
        let offer = self.id;
        let mut events = Vec::new();
        if let (true, Some(price)) = (self.price != after.price, after.price) {
            events.push(OfferEvent::PriceChanged {
                offer,
                price: price.money,
            });
        }
        if let (true, Some(stock)) = (self.stock != after.stock, after.stock) {
            events.push(OfferEvent::StockChanged { offer, stock });
        }
        if self.status != after.status {
            events.push(OfferEvent::StatusChanged {
                offer,
                status: after.status,
            });
        }
        events
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    pub(crate) fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_700_000_000 + second, 0).unwrap()
    }

    fn pln(amount: i64) -> Money {
        Money::pln(amount).unwrap()
    }

    pub(crate) fn offer(status: OfferStatus, price: Option<(i64, PriceSource)>, stock: Option<i64>) -> Offer {
        Offer {
            status,
            price: price.map(|(amount, source)| Price {
                money: pln(amount),
                source,
            }),
            stock: stock.map(|pieces| Stock::new(pieces).unwrap()),
            ..Offer::example(Uuid::from_u128(1).into(), Uuid::from_u128(2).into(), at(0))
        }
    }

    fn full() -> OfferPatch {
        OfferPatch {
            price: Some(pln(9)),
            stock: Stock::new(9).ok(),
            status: Some(SellerStatus::Draft),
        }
    }

    #[test]
    fn every_reason_is_returned_in_field_order() {
        let refused = offer(OfferStatus::Rejected, None, None)
            .patch(full(), at(1))
            .unwrap_err();
        let locked = PatchRefusal::StatusLocked(OfferStatus::Rejected);
        assert_eq!(refused, [PatchRefusal::NoPrice, PatchRefusal::NoStock, locked]);
    }

    #[test]
    fn the_same_price_becomes_manual_without_moving_updated_at() {
        let before = offer(OfferStatus::Published, Some((9, PriceSource::Automatic)), Some(9));
        let mut patch = full();
        patch.status = Some(SellerStatus::Published);
        let change = before.patch(patch, at(1)).unwrap();
        assert_eq!(change.after.updated_at, at(0));
        assert_eq!(change.after.price.unwrap().source, PriceSource::Manual);
        assert!(matches!(change.events[..], [OfferEvent::PriceChanged { .. }]));
        assert!(change.after.patch(patch, at(2)).unwrap().events.is_empty());
    }

    #[test]
    fn the_pricing_engine_changes_automatic_prices_alone() {
        let price =
            |source| offer(OfferStatus::Draft, Some((1, source)), None).price_automatically(pln(2), at(1));
        assert_eq!(price(PriceSource::Manual), Err(AutomaticPriceRefusal::Manual));
        assert_eq!(price(PriceSource::Automatic).unwrap().after.updated_at, at(1));
        let none = offer(OfferStatus::Draft, None, None).price_automatically(pln(2), at(1));
        assert_eq!(none, Err(AutomaticPriceRefusal::NoPrice));
    }

    proptest! {
        #[test]
        fn a_patch_is_atomic_and_announces_its_effects(
            status in prop::sample::select(OfferStatus::ALL.to_vec()),
            price in prop::option::of(0_i64..3),
            stock in prop::option::of(0_i64..3),
            new_price in prop::option::of(0_i64..3),
            new_stock in prop::option::of(0_i64..3),
            new_status in prop::option::of(prop::sample::select(SellerStatus::ALL.to_vec())),
        ) {
            let before = offer(status, price.map(|amount| (amount, PriceSource::Manual)), stock);
            let patch = OfferPatch {
                price: new_price.map(pln),
                stock: new_stock.map(|pieces| Stock::new(pieces).unwrap()),
                status: new_status,
            };
            let refused = (new_price.is_some() && price.is_none())
                || (new_stock.is_some() && stock.is_none())
                || (new_status.is_some() && status.is_locked());
            let result = before.clone().patch(patch, at(1));
            prop_assert_eq!(result.is_err(), refused);
            if let Ok(change) = result {
                let after = change.after;
                prop_assert_eq!(after.price.map(|price| price.money), new_price.or(price).map(pln));
                prop_assert_eq!(after.stock.map(Stock::get), new_stock.or(stock).map(|pieces| i32::try_from(pieces).unwrap()));
                prop_assert_eq!(after.status, new_status.map_or(status, SellerStatus::status));
                let moved = [after.price != before.price, after.stock != before.stock, after.status != before.status];
                prop_assert_eq!(change.events.len(), moved.iter().filter(|moved| **moved).count());
                prop_assert_eq!(after.updated_at == at(1), moved.contains(&true));
            }
        }
    }
}
