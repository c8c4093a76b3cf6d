//! What the tests of the rules share: a database reached through its ports, its clock, and rows to begin with.

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use adapter_postgres::{Database, DatabaseSettings};
use changes::ChangeReader;
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{
    Change, Claim, Fingerprint, IdempotencyClaims, IdempotencyKey, KeySpace, Money, OfferId,
    Purpose as SealPurpose, Randomness, SealError, Sealer, SellerId,
};
use oauth::{
    Application, ApplicationStatus, ClientId, ClientType, Email, Gate, NewSeller, Purpose, ScopeSet,
    SellerName,
};
use offers::{Offer, OfferStatus, Price, PriceSource, Stock};
use testkit::{TestClock, TestDatabase};
use tokio::time::sleep;
use usecases::{Transaction, UnitOfWork};
use uuid::Uuid;
use webhooks::{
    AddressPolicy, DeliveryId, LaneKey, Lanes, NewDelivery, NewSubscription, WebhookEvent, WebhookSecret,
    WebhookUrl,
};

/// A database of the test's own: empty, reached through its ports. Its clock stands still but for [`Fixture::advance`].
pub(super) struct Fixture {
    place: TestDatabase,
    clock: TestClock,
    database: Database,
}

impl Fixture {
    pub(super) async fn new() -> Self {
        let place = TestDatabase::create().await;
        let settings = DatabaseSettings {
            url: place.url().to_owned(),
            pool_size: 12,
            connect_timeout: Duration::from_secs(5),
            acquire_timeout: Duration::from_secs(20),
            statement_timeout: Duration::from_secs(5),
            default_rate_limit: NonZeroU32::new(LIMIT).unwrap(),
        };
        let clock = place.control_clock().await;
        clock.freeze("2026-03-01T10:00:00.123456Z".parse().unwrap()).await;
        let database = Database::new(settings).unwrap().with_sealer(Arc::new(Plain));
        Self {
            place,
            clock,
            database,
        }
    }

    pub(super) fn units(&self) -> Arc<dyn UnitOfWork> {
        self.database.units()
    }

    pub(super) fn claims(&self) -> Arc<dyn IdempotencyClaims> {
        self.database.claims()
    }

    pub(super) fn lanes(&self) -> Arc<dyn Lanes> {
        self.database.lanes()
    }

    pub(super) fn gate(&self) -> Arc<dyn Gate> {
        self.database.gate()
    }

    pub(super) fn feed(&self) -> Arc<dyn ChangeReader> {
        self.database.change_reader()
    }

    /// Waits until every transaction that has begun by now has ended: the feed waits also for those of other tests on the
    /// same server.
    pub(super) async fn quiet(&self) {
        let server = self.place.connect().await;
        let begun: String = server
            .query_one("select pg_snapshot_xmax(pg_current_snapshot())::text", &[])
            .await
            .unwrap()
            .get(0);
        let running = "select pg_snapshot_xmin(pg_current_snapshot()) < $1::text::xid8";
        let end = Instant::now() + Duration::from_mins(1);
        while server.query_one(running, &[&begun]).await.unwrap().get(0) {
            assert!(Instant::now() < end, "a transaction has been open for a minute");
            sleep(Duration::from_millis(1)).await;
        }
    }

    pub(super) async fn advance(&self, by: TimeDelta) {
        self.clock.advance(by).await;
    }
}

/// Seals nothing: other tests are about sealing.
struct Plain;

impl Sealer for Plain {
    fn seal(&self, _purpose: SealPurpose, _bound_to: &[u8], plain: &[u8]) -> Vec<u8> {
        plain.to_vec()
    }

    fn open(&self, _purpose: SealPurpose, _bound_to: &[u8], sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        Ok(sealed.to_vec())
    }
}

/// Requests a minute of an application that has no limit of its own.
pub(super) const LIMIT: u32 = 600;

static NUMBER: AtomicU64 = AtomicU64::new(1);

/// Ids that no other call gets, and secrets that are none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ids;

impl Randomness for Ids {
    fn secret(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        let number = NUMBER.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        bytes
            .iter_mut()
            .zip(number.iter().cycle())
            .for_each(|(to, from)| *to = *from);
        bytes
    }

    fn uuid(&self) -> Uuid {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Uuid::from_u128(0x019d_0000_0000_7000_8000_0000_0000_0000 | u128::from(number))
    }
}

/// An id that no other call gets; later ones are greater.
pub(super) fn id() -> Uuid {
    Ids.uuid()
}

pub(super) async fn begin(fixture: &Fixture) -> Box<dyn Transaction> {
    fixture.units().begin().await.unwrap()
}

pub(super) async fn seller(fixture: &Fixture) -> SellerId {
    let (tx, id) = (begin(fixture).await, id());
    let new = NewSeller {
        id: id.into(),
        name: SellerName::new("Kettles & Co".to_owned()).unwrap(),
        email: Email::new(format!("{id}@example.com")).unwrap(),
        password: None,
        created_at: tx.now(),
    };
    let seller = tx.add_seller(new).await.unwrap();
    tx.commit().await.unwrap();
    seller.id
}

/// An active application of a seller's.
pub(super) async fn application(fixture: &Fixture, owner: SellerId) -> ClientId {
    let (tx, client_id) = (begin(fixture).await, ClientId::from(id()));
    let application = Application {
        client_id,
        owner,
        name: client_id.to_string(),
        description: None,
        documentation_url: Some("https://example.com".to_owned()),
        purpose: Purpose::ForOtherSellers,
        client_type: ClientType::Public,
        redirect_uris: vec!["https://example.com/back".to_owned()],
        scopes: ScopeSet::all(),
        status: ApplicationStatus::Active,
        rate_limit: None,
        built_in: false,
        secret: None,
        created_at: tx.now(),
    };
    tx.save_application(Change::made(application, Vec::new()))
        .await
        .unwrap();
    tx.commit().await.unwrap();
    client_id
}

/// An offer with so many pieces, not yet saved.
pub(super) fn offer(seller: SellerId, pieces: i64, at: DateTime<Utc>) -> Offer {
    let id = OfferId::from(id());
    Offer {
        seller,
        id,
        title: format!("Kettle {id}"),
        handle: format!("kettle-{id}"),
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
        url: "https://shop.example/kettle".to_owned(),
        created_at: at,
        updated_at: at,
    }
}

/// An offer that is there.
pub(super) async fn saved_offer(fixture: &Fixture, seller: SellerId, pieces: i64) -> Offer {
    let tx = begin(fixture).await;
    let offer = offer(seller, pieces, tx.now());
    let change = Change::made(offer.clone(), Vec::new());
    tx.save_offers(seller, vec![change]).await.unwrap();
    tx.commit().await.unwrap();
    offer
}

/// A subscription of a seller's own application to everything; its lane.
pub(super) async fn lane(fixture: &Fixture) -> LaneKey {
    let seller = seller(fixture).await;
    let client_id = application(fixture, seller).await;
    subscribed(fixture, seller, client_id).await
}

pub(super) async fn subscribed(fixture: &Fixture, seller: SellerId, client_id: ClientId) -> LaneKey {
    let tx = begin(fixture).await;
    assert!(tx.take_subscription_place(seller, client_id).await.unwrap());
    let new = subscription(seller, client_id, tx.now());
    let lane = LaneKey {
        seller,
        subscription: new.id,
    };
    tx.add_subscription(new).await.unwrap();
    tx.commit().await.unwrap();
    lane
}

pub(super) fn subscription(seller: SellerId, client_id: ClientId, at: DateTime<Utc>) -> NewSubscription {
    NewSubscription {
        seller,
        client_id,
        id: id().into(),
        url: WebhookUrl::parse("https://receiver.example/", AddressPolicy::Public).unwrap(),
        events: WebhookEvent::ALL.to_vec(),
        secret: WebhookSecret::from_random(&Ids.secret()),
        created_at: at,
    }
}

/// Queues deliveries by hand, and returns their ids in the order in which they are due.
pub(super) async fn queue(fixture: &Fixture, lane: LaneKey, number: usize) -> Vec<DeliveryId> {
    let mut ids = Vec::new();
    for _ in 0..number {
        fixture.advance(TimeDelta::milliseconds(1)).await;
        let tx = begin(fixture).await;
        let id = DeliveryId::from(id());
        let new = NewDelivery {
            id,
            event: WebhookEvent::OrderPaid,
            body: format!("{{\"id\":\"{id}\"}}").into_bytes(),
            created_at: tx.now(),
        };
        assert!(
            tx.queue_delivery(lane.seller, lane.subscription, new)
                .await
                .unwrap()
        );
        tx.commit().await.unwrap();
        ids.push(id);
    }
    ids
}

/// A claim of its own on a key.
pub(super) fn claim(space: KeySpace, key: &str, request: &str) -> Claim {
    Claim {
        space,
        key: IdempotencyKey::new(key.as_bytes()).unwrap(),
        fingerprint: Fingerprint::of(&[request.as_bytes()]),
        fence: id(),
    }
}
