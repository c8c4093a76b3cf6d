//! What sellers and the marketplace do, as units of work.

use async_trait::async_trait;
use kernel::{OfferId, SellerId};
use offers::{Offer, OfferPatch, Stock};
use orders::{Carrier, NewShipment, OrderRef, SellerOrder};
use usecases::{
    Failure, Transaction, Work, patch_offer, place_order, settle_order, settle_order::Settlement, ship_order,
};

use super::{Chance, shipment};

/// Placing an order, as a unit of work.
pub(crate) struct Place(pub(crate) place_order::Request);

#[async_trait]
impl Work for Place {
    type Done = place_order::Placed;
    type Error = Failure<place_order::Refusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<Self::Done, Self::Error> {
        place_order::place_order(tx, tx, &Chance, &self.0, tx.now()).await
    }
}

/// A move over a whole order, as a unit of work.
pub(crate) struct Settle(pub(crate) OrderRef, pub(crate) Settlement);

#[async_trait]
impl Work for Settle {
    type Done = Vec<SellerOrder>;
    type Error = Failure<settle_order::Refusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<Self::Done, Self::Error> {
        settle_order::settle_order(tx, tx, &self.0, self.1, tx.now()).await
    }
}

/// A seller's report of a shipment, as a unit of work.
pub(crate) struct Report(pub(crate) SellerId, pub(crate) ship_order::Report);

impl Report {
    pub(crate) fn of(seller: SellerId, order: OrderRef) -> Self {
        let NewShipment {
            carrier,
            tracking_number,
            ..
        } = shipment(Carrier::Dpd);
        Self(
            seller,
            ship_order::Report {
                order,
                carrier,
                tracking_number,
                item_ids: Vec::new(),
            },
        )
    }
}

#[async_trait]
impl Work for Report {
    type Done = SellerOrder;
    type Error = Failure<ship_order::Refusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<Self::Done, Self::Error> {
        ship_order::record_report(tx, &Chance, self.0, &self.1, None, tx.now()).await
    }
}

/// A seller's change of a stock, as a unit of work.
pub(crate) struct Restock(pub(crate) SellerId, pub(crate) OfferId, pub(crate) i64);

#[async_trait]
impl Work for Restock {
    type Done = Offer;
    type Error = Failure<patch_offer::Refusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<Self::Done, Self::Error> {
        let patch = OfferPatch {
            stock: Stock::new(self.2).ok(),
            ..OfferPatch::default()
        };
        patch_offer::patch_offer(tx, self.0, self.1, patch, tx.now()).await
    }
}
