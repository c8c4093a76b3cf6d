//! Changes to an offer through the API by its seller, and by the pricing engine.

use chrono::{DateTime, Utc};
use kernel::{Change, Money};

use crate::{IfMatch, Offer, OfferEvent, OfferStatus, Price, PriceSource, Stock, StockAdjustment};

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

/// A change of the stock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StockChange {
    Set(Stock),
    /// Relative to what it is at that moment.
    Adjust(StockAdjustment),
}

/// A change of the seller's own name for an offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExternalIdChange {
    /// See [`crate::external_id`].
    Set(String),
    Clear,
}

/// A seller's change; None leaves a field unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OfferPatch {
    /// A new price; it becomes manual even if the amount is the same.
    pub price: Option<Money>,
    pub stock: Option<StockChange>,
    pub status: Option<SellerStatus>,
    /// The marketplace is not told.
    pub external_id: Option<ExternalIdChange>,
    /// Only if the offer is in this state.
    pub if_match: Option<IfMatch>,
}

/// Why part of a patch is refused (contract: PATCH /v1/offers/{id}).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchRefusal {
    /// `precondition_failed`: the only reason then.
    OtherState,
    /// `no_price_row`.
    NoPrice,
    /// `no_inventory_row`.
    NoStock(StockChange),
    /// `stock_out_of_range`, with the present stock.
    StockOutOfRange(Stock),
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
    /// Applies a seller's whole change, or refuses it: if its condition is not met, for that alone, else with
    /// every reason, in the contract's field order.
    pub fn patch(
        self,
        patch: OfferPatch,
        now: DateTime<Utc>,
    ) -> Result<Change<Self, OfferEvent>, Vec<PatchRefusal>> {
        if patch.if_match.is_some_and(|state| !state.is_met_by(&self)) {
            return Err(vec![PatchRefusal::OtherState]);
        }
        let mut refusals = Vec::new();
        if patch.price.is_some() && self.price.is_none() {
            refusals.push(PatchRefusal::NoPrice);
        }
        let stock = match patch.stock.map(|change| self.changed_stock(change)) {
            None => self.stock,
            Some(Ok(stock)) => Some(stock),
            Some(Err(refusal)) => {
                refusals.push(refusal);
                None
            }
        };
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
            stock,
            status: patch.status.map_or(self.status, SellerStatus::status),
            external_id: match patch.external_id {
                None => self.external_id.clone(),
                Some(ExternalIdChange::Set(id)) => Some(id),
                Some(ExternalIdChange::Clear) => None,
            },
            ..self.clone()
        };
        let events = self.seller_events(&after);
        let mut change = self.changed(after, now);
        change.events.extend(events);
        Ok(change)
    }

    fn changed_stock(&self, change: StockChange) -> Result<Stock, PatchRefusal> {
        let present = self.stock.ok_or(PatchRefusal::NoStock(change))?;
        match change {
            StockChange::Set(stock) => Ok(stock),
            StockChange::Adjust(by) => present.adjusted(by).ok_or(PatchRefusal::StockOutOfRange(present)),
        }
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

    /// One event per field that the seller changed, but for the external id, which is the seller's alone. A
    /// price that keeps its amount but becomes manual also has an event, since the pricing engine needs to
    /// know.
    fn seller_events(&self, after: &Self) -> Vec<OfferEvent> {
        let price = after.price.filter(|_| self.price != after.price);
        let price = price.map(|price| OfferEvent::PriceChanged(price.money));
        let stock = after.stock.filter(|_| self.stock != after.stock);
        let stock = stock.map(OfferEvent::StockChanged);
        let status = (self.status != after.status).then_some(OfferEvent::StatusChanged(after.status));
        [price, stock, status].into_iter().flatten().collect()
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
            stock: Stock::new(9).ok().map(StockChange::Set),
            status: Some(SellerStatus::Draft),
            ..OfferPatch::default()
        }
    }

    #[test]
    fn the_same_price_becomes_manual_without_moving_updated_at() {
        let before = offer(OfferStatus::Published, Some((9, PriceSource::Automatic)), Some(9));
        let mut patch = full();
        patch.status = Some(SellerStatus::Published);
        let change = before.patch(patch.clone(), at(1)).unwrap();
        assert_eq!(change.after.updated_at, at(0));
        assert_eq!(change.after.price.unwrap().source, PriceSource::Manual);
        assert!(matches!(change.events[..], [OfferEvent::PriceChanged(_)]));
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
            external_id in prop::option::of("[ab]"),
            new_external_id in prop::option::of(prop::option::of("[ab]")),
        ) {
            let before = Offer {
                external_id: external_id.clone(),
                ..offer(status, price.map(|amount| (amount, PriceSource::Manual)), stock)
            };
            let patch = OfferPatch {
                price: new_price.map(pln),
                stock: new_stock.map(|pieces| StockChange::Set(Stock::new(pieces).unwrap())),
                status: new_status,
                external_id: new_external_id
                    .clone()
                    .map(|id| id.map_or(ExternalIdChange::Clear, ExternalIdChange::Set)),
                if_match: Some(IfMatch::parse(&before.etag()).unwrap()),
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
                prop_assert_eq!(&after.external_id, &new_external_id.unwrap_or(external_id));
                let moved = [after.price != before.price, after.stock != before.stock, after.status != before.status];
                prop_assert_eq!(change.events.len(), moved.iter().filter(|moved| **moved).count());
                let looks_different = moved.contains(&true) || after.external_id != before.external_id;
                prop_assert_eq!(after.updated_at == at(1), looks_different);
            }
        }
    }
}
