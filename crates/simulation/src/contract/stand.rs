//! What the rules need: the ports of one database, its clock, and something to begin with.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use changes::ChangeReader;
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{
    Change, Claim, Fingerprint, IdempotencyClaims, IdempotencyKey, KeySpace, Money, OfferId, Randomness,
    SellerId,
};
use oauth::{
    Application, ApplicationStatus, ClientId, ClientType, Email, Gate, NewSeller, Purpose, ScopeSet,
    SellerName,
};
use offers::{Offer, OfferStatus, Price, PriceSource, Stock};
use usecases::{Transaction, UnitOfWork};
use uuid::Uuid;
use webhooks::{
    AddressPolicy, DeliveryId, LaneKey, Lanes, NewDelivery, NewSubscription, WebhookEvent, WebhookSecret,
    WebhookUrl,
};

/// A database of the test's own, empty and reached through its ports. Its clock stands still but for [`Stand::advance`].
#[async_trait]
pub trait Stand: Send + Sync {
    /// Opens transactions.
    fn units(&self) -> Arc<dyn UnitOfWork>;
    /// Claims keys.
    fn claims(&self) -> Arc<dyn IdempotencyClaims>;
    /// Gives lanes out.
    fn lanes(&self) -> Arc<dyn Lanes>;
    /// Admits requests; applications have [`LIMIT`] a minute.
    fn gate(&self) -> Arc<dyn Gate>;
    /// Reads the feed.
    fn feed(&self) -> Arc<dyn ChangeReader>;
    /// Waits until every transaction has ended that had begun by now, whoever's it is: the feed waits for those of other
    /// tests on the same server, too.
    async fn quiet(&self);
    /// Moves the database's clock on.
    async fn advance(&self, by: TimeDelta);
}

/// Requests a minute of an application that has no limit of its own.
pub const LIMIT: u32 = 600;

static NUMBER: AtomicU64 = AtomicU64::new(1);

/// Ids that no other call gets, and secrets that are none.
#[derive(Debug, Clone, Copy)]
pub struct Ids;

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

pub(super) async fn begin(stand: &dyn Stand) -> Box<dyn Transaction> {
    stand.units().begin().await.unwrap()
}

pub(super) async fn seller(stand: &dyn Stand) -> SellerId {
    let (tx, id) = (begin(stand).await, id());
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
pub(super) async fn application(stand: &dyn Stand, owner: SellerId) -> ClientId {
    let (tx, client_id) = (begin(stand).await, ClientId::from(id()));
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
pub(super) async fn saved_offer(stand: &dyn Stand, seller: SellerId, pieces: i64) -> Offer {
    let tx = begin(stand).await;
    let offer = offer(seller, pieces, tx.now());
    let change = Change::made(offer.clone(), Vec::new());
    tx.save_offers(seller, vec![change]).await.unwrap();
    tx.commit().await.unwrap();
    offer
}

/// A subscription of a seller's own application to everything; its lane.
pub(super) async fn lane(stand: &dyn Stand) -> LaneKey {
    let seller = seller(stand).await;
    let client_id = application(stand, seller).await;
    subscribed(stand, seller, client_id).await
}

pub(super) async fn subscribed(stand: &dyn Stand, seller: SellerId, client_id: ClientId) -> LaneKey {
    let tx = begin(stand).await;
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
pub(super) async fn queue(stand: &dyn Stand, lane: LaneKey, number: usize) -> Vec<DeliveryId> {
    let mut ids = Vec::new();
    for _ in 0..number {
        stand.advance(TimeDelta::milliseconds(1)).await;
        let tx = begin(stand).await;
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
