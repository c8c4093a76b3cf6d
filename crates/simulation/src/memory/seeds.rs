//! What a run begins with, put in place without a port.

use ::offers::{Offer, OfferStatus, Price, PriceSource, Stock};
use kernel::{Money, OfferId, Randomness, SellerId};
use oauth::{Application, ApplicationStatus, ClientId, ClientType, Purpose, ScopeSet, Seller};
use webhooks::{LaneKey, NewSubscription};

use super::{
    Database, SubscriptionRow,
    tables::{ApplicationRow, ConnectionRow},
};
use crate::Chance;

impl Database {
    fn put(&self, work: impl FnOnce(&mut super::tables::Tables, super::TxId)) {
        let tx = self.begin();
        self.at_once(|stored| work(&mut stored.tables, tx));
        self.end(tx, true);
    }

    fn id(&self) -> uuid::Uuid {
        Chance(self.simulator().clone()).uuid()
    }

    /// A seller.
    pub fn found_seller(&self) -> SellerId {
        let id = SellerId::from(self.id());
        let seller = Seller {
            id,
            seller_no: 1,
            name: "Kettles & Co".to_owned(),
            email: format!("{id}@example.com"),
            created_at: self.now(),
            closed_at: None,
        };
        self.put(|tables, tx| tables.sellers.put(tx, id, seller));
        id
    }

    /// An active application of a seller's.
    pub fn found_application(&self, owner: SellerId) -> ClientId {
        let client_id = ClientId::from(self.id());
        let application = Application {
            client_id,
            owner,
            name: format!("App {client_id}"),
            description: None,
            documentation_url: None,
            purpose: Purpose::ForOtherSellers,
            client_type: ClientType::Public,
            redirect_uris: Vec::new(),
            scopes: ScopeSet::all(),
            status: ApplicationStatus::Active,
            rate_limit: None,
            built_in: false,
            secret: None,
            created_at: self.now(),
        };
        let row = ApplicationRow {
            application,
            deleted: false,
        };
        self.put(|tables, tx| tables.applications.put(tx, client_id, row));
        client_id
    }

    /// The seller lets an application in.
    pub fn found_connection(&self, seller: SellerId, client_id: ClientId) {
        let row = ConnectionRow {
            generation: 1,
            open: true,
        };
        self.put(|tables, tx| tables.connections.put(tx, (seller, client_id), row));
    }

    /// An offer with so many pieces.
    pub fn found_offer(&self, seller: SellerId, pieces: i64) -> OfferId {
        let offer = self.offer(seller, pieces);
        let id = offer.id;
        self.put(|tables, tx| tables.offers.put(tx, (seller, id), offer));
        id
    }

    fn offer(&self, seller: SellerId, pieces: i64) -> Offer {
        let id = OfferId::from(self.id());
        Offer {
            seller,
            id,
            title: "Kettle".to_owned(),
            handle: format!("kettle-{id}"),
            status: OfferStatus::Published,
            price: Money::pln(12_999).ok().map(|money| Price {
                money,
                source: PriceSource::Automatic,
            }),
            stock: Stock::new(pieces).ok(),
            ean: None,
            brand: None,
            signature: None,
            thumbnail: None,
            url: "https://shop.example/kettle".to_owned(),
            created_at: self.now(),
            updated_at: self.now(),
        }
    }

    /// A subscription.
    pub fn found_subscription(&self, new: NewSubscription) -> LaneKey {
        let lane = LaneKey {
            seller: new.seller,
            subscription: new.id,
        };
        let pair = (new.seller, new.client_id);
        self.put(|tables, tx| {
            let connection = tables.connections.get(tx, &pair);
            let row = SubscriptionRow {
                active: true,
                generation: connection.map(|connection| connection.generation),
                leased: false,
                fence: None,
                failing: false,
                wake_at: None,
                in_hand: Vec::new(),
                new,
            };
            tables.subscriptions.put(tx, lane, row);
            let taken = tables.places.get(tx, &pair).copied().unwrap_or_default();
            tables.places.put(tx, pair, taken + 1);
        });
        lane
    }
}
