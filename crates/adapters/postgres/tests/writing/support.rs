//! A database with a handle on it, a sealer that can be looked through, and orders to put in.

mod works;

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use adapter_postgres::{Database, DatabaseSettings};
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{
    Change, Claim, Fingerprint, IdempotencyKey, KeySpace, Money, OfferId, Purpose, Randomness, Remembered,
    SealError, Sealer, SellerId,
};
use oauth::{Email, NewSeller, SellerName};
use offers::{Offer, OfferStatus, Price, PriceSource, Stock};
use orders::{
    Buyer, Carrier, Cause, NewShipment, OrderItem, OrderNumber, OrderRef, OrderState, PollSchedule,
    SellerOrder, ShippingAddress, TrackingNumber,
};
use testkit::TestDatabase;
use usecases::{Transaction, place_order, transact};
use uuid::Uuid;

pub(crate) use self::works::{Place, Report, Restock, Settle};

static NUMBER: AtomicU64 = AtomicU64::new(1);

/// A number that no other call gets.
pub(crate) fn number() -> u64 {
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// An id that no other call gets; later ones are greater.
pub(crate) fn id() -> Uuid {
    Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000 | u128::from(number()))
}

/// Chance that never repeats itself.
pub(crate) struct Chance;

impl Randomness for Chance {
    fn secret(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        // Order numbers are made of the first ten bytes, five bits each.
        for (n, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::try_from((number() >> (5 * (n % 10))) & 31).unwrap();
        }
        bytes
    }

    fn uuid(&self) -> Uuid {
        id()
    }
}

/// Seals so that a test can look through it, and opens only for the same binding.
pub(crate) struct Glass;

impl Sealer for Glass {
    fn seal(&self, purpose: Purpose, bound_to: &[u8], plain: &[u8]) -> Vec<u8> {
        [purpose.name().as_bytes(), b"|", bound_to, b"|", plain].concat()
    }

    fn open(&self, purpose: Purpose, bound_to: &[u8], sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let wrapping = [purpose.name().as_bytes(), b"|", bound_to, b"|"].concat();
        sealed
            .strip_prefix(wrapping.as_slice())
            .map(<[u8]>::to_vec)
            .ok_or(SealError)
    }
}

/// The shortest time between two questions about a parcel.
pub(crate) const POLL: TimeDelta = TimeDelta::minutes(10);

pub(crate) fn settings(url: &str, pool_size: usize) -> DatabaseSettings {
    DatabaseSettings {
        url: url.to_owned(),
        pool_size,
        connect_timeout: Duration::from_secs(5),
        acquire_timeout: Duration::from_secs(20),
        statement_timeout: Duration::from_secs(5),
        default_rate_limit: NonZeroU32::new(600).unwrap(),
    }
}

/// A handle as a process would have it.
pub(crate) fn database(url: &str, pool_size: usize) -> Database {
    let schedule = PollSchedule { interval: POLL };
    Database::new(settings(url, pool_size))
        .unwrap()
        .with_sealer(Arc::new(Glass))
        .with_polling(schedule)
}

/// A database of the test's own.
pub(crate) struct Fixture {
    pub(crate) place: TestDatabase,
    pub(crate) database: Database,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let place = TestDatabase::create().await;
        let database = database(place.url(), 8);
        Self { place, database }
    }

    /// Another handle on the same database, with another way to gather.
    pub(crate) fn another(&self) -> Database {
        let settings = DatabaseSettings {
            ..settings(self.place.url(), 8)
        };
        Database::new(settings).unwrap()
    }

    pub(crate) async fn begin(&self) -> Box<dyn Transaction> {
        self.database.units().begin().await.unwrap()
    }

    pub(crate) async fn seller(&self) -> SellerId {
        let new = NewSeller {
            id: id().into(),
            name: SellerName::new("Kettles & Co".to_owned()).unwrap(),
            email: Email::new(format!("shop{}@example.com", number())).unwrap(),
            password: None,
            created_at: instant(),
        };
        let tx = self.begin().await;
        let seller = tx.add_seller(new).await.unwrap();
        tx.commit().await.unwrap();
        seller.id
    }

    /// An offer with so many pieces.
    pub(crate) async fn offer(&self, seller: SellerId, pieces: i64) -> OfferId {
        let offer = offer(seller, pieces);
        let tx = self.begin().await;
        tx.save_offers(seller, vec![Change::made(offer.clone(), Vec::new())])
            .await
            .unwrap();
        tx.commit().await.unwrap();
        offer.id
    }

    /// Saves a part that is new, in whatever state it is, with its order opened.
    pub(crate) async fn save(&self, parts: &[SellerOrder]) {
        let tx = self.begin().await;
        for (n, part) in parts.iter().enumerate() {
            if !parts[..n].iter().any(|earlier| earlier.id == part.id) {
                tx.open_order(part.id, &part.number, part.is_test, part.placed_at)
                    .await
                    .unwrap();
            }
        }
        let changes = parts
            .iter()
            .map(|part| Change::made(part.clone(), Vec::new()))
            .collect();
        tx.save_parts(changes).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Places an order for one piece of each offer.
    pub(crate) async fn place(&self, items: &[(SellerId, OfferId)]) -> OrderRef {
        let placed = transact(&*self.database.units(), &Place(request(items)))
            .await
            .unwrap();
        OrderRef::Id(placed.id)
    }

    /// Runs SQL behind the adapter's back.
    pub(crate) async fn tamper(&self, sql: &str) {
        self.place.connect().await.batch_execute(sql).await.unwrap();
    }

    /// A number that SQL finds.
    pub(crate) async fn count(&self, sql: &str) -> i64 {
        self.place
            .connect()
            .await
            .query_one(sql, &[])
            .await
            .unwrap()
            .get(0)
    }
}

/// An instant on a quiet day.
pub(crate) fn instant() -> DateTime<Utc> {
    "2026-03-01T10:00:00.123456Z".parse().unwrap()
}

pub(crate) fn offer(seller: SellerId, pieces: i64) -> Offer {
    let id = OfferId::from(id());
    Offer {
        seller,
        id,
        title: format!("Czajnik żółty {id}"),
        handle: format!("czajnik-{id}"),
        status: OfferStatus::Published,
        price: Some(Price {
            money: Money::pln(12_999).unwrap(),
            source: PriceSource::Automatic,
        }),
        stock: Some(Stock::new(pieces).unwrap()),
        ean: None,
        brand: None,
        signature: None,
        thumbnail: None,
        url: "https://shop.example/czajnik".to_owned(),
        created_at: instant(),
        updated_at: instant(),
    }
}

/// A part with every field, placed at an instant and unpaid.
pub(crate) fn part(seller: SellerId, placed_at: DateTime<Utc>) -> SellerOrder {
    let item = |quantity| OrderItem {
        offer: id().into(),
        title: Some("Czajnik „żółty” \\ 1,7 l".to_owned()),
        handle: Some("czajnik".to_owned()),
        sku: Some("CZ-17".to_owned()),
        quantity,
        taken: quantity,
        unit_price: Money::pln(12_999).ok(),
    };
    let bare = OrderItem {
        title: None,
        handle: None,
        sku: None,
        taken: 0,
        unit_price: None,
        ..item(1)
    };
    SellerOrder {
        seller,
        id: id().into(),
        number: OrderNumber::new(format!("N-{}", number())).unwrap(),
        is_test: false,
        several_sellers: false,
        payment_method: Some("blik".to_owned()),
        delivery_method: None,
        placed_at,
        buyer: Some(Buyer {
            name: Some("Żaneta Ćwiąkała".to_owned()),
            email: Some("zaneta@example.com".to_owned()),
            phone: None,
        }),
        shipping_address: Some(ShippingAddress {
            line1: Some("ul. Prosta 1".to_owned()),
            line2: None,
            postal_code: Some("00-001".to_owned()),
            city: Some("Łódź".to_owned()),
            country: "PL".to_owned(),
        }),
        items: vec![item(2), bare],
        state: OrderState::Pending,
        updated_at: placed_at,
    }
}

pub(crate) fn shipment(carrier: Carrier) -> NewShipment {
    NewShipment {
        id: id().into(),
        carrier,
        tracking_number: TrackingNumber::new(format!("TN-{}", number())).unwrap(),
        sighting: None,
    }
}

/// The part a minute later, paid.
pub(crate) fn paid(part: SellerOrder) -> SellerOrder {
    let at = part.placed_at + TimeDelta::minutes(1);
    part.pay(at).unwrap().after
}

/// The part two minutes later, on its way.
pub(crate) fn shipped(part: SellerOrder, carrier: Carrier) -> SellerOrder {
    let at = part.placed_at + TimeDelta::minutes(2);
    paid(part)
        .ship(shipment(carrier), Cause::Marketplace, at)
        .unwrap()
        .after
}

/// An order of one piece of each.
pub(crate) fn request(items: &[(SellerId, OfferId)]) -> place_order::Request {
    let items = items.iter().map(|(seller, offer)| place_order::Line {
        seller: *seller,
        offer: *offer,
        quantity: 1,
        unit_price: None,
        title: None,
        sku: None,
    });
    place_order::Request {
        number: None,
        is_test: false,
        payment_method: None,
        delivery_method: None,
        buyer: part(id().into(), instant()).buyer,
        shipping_address: None,
        items: items.collect(),
    }
}

/// A claim of its own on a key of a seller's.
pub(crate) fn claim(seller: SellerId, key: &str, body: &str) -> Claim {
    Claim {
        space: KeySpace::Seller(seller),
        key: IdempotencyKey::new(key.as_bytes()).unwrap(),
        fingerprint: Fingerprint::of(&[b"PATCH", body.as_bytes()]),
        fence: id(),
    }
}

pub(crate) fn answer(body: &str) -> Remembered {
    Remembered {
        status: 200,
        body: body.as_bytes().to_vec(),
    }
}
