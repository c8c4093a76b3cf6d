//! A database with sellers, applications, subscriptions and deliveries in it.

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
use kernel::{Purpose, SealError, Sealer, SellerId};
use oauth::{ClientId, Email, NewSeller, SellerName};
use testkit::TestDatabase;
use tokio_postgres::Client;
use usecases::Transaction;
use uuid::Uuid;
use webhooks::{
    AddressPolicy, Conclusion, DeliveryId, Fate, Hold, Lane, LaneKey, Lanes, NewDelivery, NewSubscription,
    Outcome, Release, Room, SubscriptionId, UnderWay, WebhookEvent, WebhookSecret, WebhookUrl,
};

static NUMBER: AtomicU64 = AtomicU64::new(1);

/// An id that no other call gets; later ones are greater.
pub(crate) fn id() -> Uuid {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    Uuid::from_u128(0x019c_0000_0000_7000_8000_0000_0000_0000 | u128::from(number))
}

/// An instant on a quiet day.
pub(crate) fn instant() -> DateTime<Utc> {
    "2026-03-01T10:00:00.123456Z".parse().unwrap()
}

/// Seals so that a test sees that it was sealed, and opens only for the same binding.
struct Mirror;

impl Sealer for Mirror {
    fn seal(&self, purpose: Purpose, bound_to: &[u8], plain: &[u8]) -> Vec<u8> {
        let mirrored: Vec<u8> = plain.iter().map(|byte| !byte).collect();
        [purpose.name().as_bytes(), bound_to, &mirrored].concat()
    }

    fn open(&self, purpose: Purpose, bound_to: &[u8], sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let wrapping = [purpose.name().as_bytes(), bound_to].concat();
        let mirrored = sealed.strip_prefix(wrapping.as_slice()).ok_or(SealError)?;
        Ok(mirrored.iter().map(|byte| !byte).collect())
    }
}

fn database(url: &str, pool_size: usize) -> Database {
    let settings = DatabaseSettings {
        url: url.to_owned(),
        pool_size,
        connect_timeout: Duration::from_secs(5),
        acquire_timeout: Duration::from_secs(20),
        statement_timeout: Duration::from_secs(5),
        default_rate_limit: NonZeroU32::new(600).unwrap(),
    };
    Database::new(settings).unwrap().with_sealer(Arc::new(Mirror))
}

pub(crate) struct Fixture {
    pub(crate) place: TestDatabase,
    pub(crate) database: Database,
    pub(crate) client: Client,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let place = TestDatabase::create().await;
        let database = database(place.url(), 12);
        let client = place.connect().await;
        Self {
            place,
            database,
            client,
        }
    }

    /// Another handle on the database, with so many connections.
    pub(crate) fn another(&self, pool_size: usize) -> Database {
        database(self.place.url(), pool_size)
    }

    /// Until nobody else is connected but the fixture's own handle: a server process hands its figures in when it ends.
    pub(crate) async fn others_have_gone(&self) {
        let others = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() \
            and backend_start > (select backend_start from pg_stat_activity where pid = pg_backend_pid())";
        let own = "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() \
            and pid <> pg_backend_pid() and state = 'idle'";
        self.tamper(own).await;
        while self.count(others).await > 0 {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) async fn begin(&self) -> Box<dyn Transaction> {
        self.database.units().begin().await.unwrap()
    }

    pub(crate) fn lanes(&self) -> Arc<dyn Lanes> {
        self.database.lanes()
    }

    pub(crate) async fn seller(&self) -> SellerId {
        let id = id();
        let new = NewSeller {
            id: id.into(),
            name: SellerName::new("Kettles & Co".to_owned()).unwrap(),
            email: Email::new(format!("{id}@example.com")).unwrap(),
            password: None,
            created_at: instant(),
        };
        let tx = self.begin().await;
        let seller = tx.add_seller(new).await.unwrap();
        tx.commit().await.unwrap();
        seller.id
    }

    /// An active application of a seller's.
    pub(crate) async fn application(&self, owner: SellerId) -> ClientId {
        let client_id = id();
        let insert = "insert into applications (client_id, owner_id, name, documentation_url, purpose, client_type, redirect_uris, \
            scopes, status, built_in, created_at, updated_at) values ($1, $2, $3, 'https://d', 'for_other_sellers', 'public', '{}', \
            1, 'active', false, api_now(), api_now())";
        let name = format!("App {client_id}");
        self.client
            .execute(insert, &[&client_id, &owner.uuid(), &name])
            .await
            .unwrap();
        client_id.into()
    }

    /// The seller lets an application in.
    pub(crate) async fn connect(&self, seller: SellerId, application: ClientId) {
        let insert =
            "insert into connections (client_id, seller_id, connected_at) values ($1, $2, api_now())";
        self.client
            .execute(insert, &[&application.uuid(), &seller.uuid()])
            .await
            .unwrap();
    }

    /// A subscription to an order's payment.
    pub(crate) async fn subscribe(&self, seller: SellerId, client_id: ClientId) -> LaneKey {
        let new = subscription(seller, client_id);
        let lane = key(&new);
        let tx = self.begin().await;
        assert!(tx.take_subscription_place(seller, client_id).await.unwrap());
        tx.add_subscription(new).await.unwrap();
        tx.commit().await.unwrap();
        lane
    }

    /// A lane of a seller of its own, and of the seller's own application.
    pub(crate) async fn lane(&self) -> LaneKey {
        let seller = self.seller().await;
        let application = self.application(seller).await;
        self.subscribe(seller, application).await
    }

    /// Queues deliveries by hand, and returns their ids.
    pub(crate) async fn queue(&self, lane: LaneKey, number: usize) -> Vec<DeliveryId> {
        let tx = self.begin().await;
        let mut ids = Vec::new();
        for _ in 0..number {
            let new = delivery(&*tx);
            ids.push(new.id);
            assert!(
                tx.queue_delivery(lane.seller, lane.subscription, new)
                    .await
                    .unwrap()
            );
        }
        tx.commit().await.unwrap();
        ids
    }

    /// Claims as a worker with plenty of room.
    pub(crate) async fn claim(&self) -> Vec<Lane> {
        self.lanes().claim(id(), ROOM).await.unwrap().lanes
    }

    /// Claims the one lane that is due.
    pub(crate) async fn claim_one(&self) -> Lane {
        let mut lanes = self.claim().await;
        assert_eq!(lanes.len(), 1);
        lanes.remove(0)
    }

    /// Settles, which succeeds.
    pub(crate) async fn settle(&self, conclusions: &[Conclusion], released: &[Release]) {
        self.lanes().settle(conclusions, released).await.unwrap();
    }

    /// Every delivery of a lane ends so, and the lane is released.
    pub(crate) async fn end_all(&self, lane: &Lane, status: u16) {
        self.settle(&all_ended(lane, status), &[release(lane.hold)]).await;
    }

    pub(crate) async fn release(&self, hold: Hold) {
        self.settle(&[], &[release(hold)]).await;
    }

    /// The database's clock.
    pub(crate) async fn now(&self) -> DateTime<Utc> {
        self.client
            .query_one("select api_now()", &[])
            .await
            .unwrap()
            .get(0)
    }

    /// Runs SQL behind the adapter's back.
    pub(crate) async fn tamper(&self, sql: &str) {
        self.client.batch_execute(sql).await.unwrap();
    }

    pub(crate) async fn count(&self, sql: &str) -> i64 {
        self.client.query_one(sql, &[]).await.unwrap().get(0)
    }

    /// How many deliveries have been delivered.
    pub(crate) async fn delivered(&self) -> i64 {
        self.count("select count(*) from deliveries where delivered_at is not null")
            .await
    }

    /// How many lanes are in somebody's hand.
    pub(crate) async fn leased(&self) -> i64 {
        self.count("select count(*) from subscriptions where leased")
            .await
    }

    /// Until when a lane sleeps, seen from the database's present; none where nothing wakes it but work.
    pub(crate) async fn sleeps(&self, lane: LaneKey) -> Option<TimeDelta> {
        let sql = "select wake_at, api_now() from subscriptions where id = $1 and not leased";
        let row = self
            .client
            .query_one(sql, &[&lane.subscription.uuid()])
            .await
            .unwrap();
        let wake_at: Option<DateTime<Utc>> = row.get(0);
        wake_at.map(|at| at - row.get::<_, DateTime<Utc>>(1))
    }

    /// True when somebody waits for a lock.
    pub(crate) async fn somebody_waits(&self) {
        let waits = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
        while self.count(waits).await == 0 {
            tokio::task::yield_now().await;
        }
    }
}

/// More than any test needs.
pub(crate) const ROOM: Room = Room {
    attempts: 128,
    failing_attempts: 64,
    per_lane: 16,
    per_failing_lane: 2,
    per_application: 128,
    failing_per_application: 128,
    under_way: Vec::new(),
};

/// So much of an application is under way.
pub(crate) fn of(client_id: ClientId, attempts: u16, failing: u16) -> UnderWay {
    UnderWay {
        client_id,
        attempts,
        failing,
    }
}

pub(crate) fn subscription(seller: SellerId, client_id: ClientId) -> NewSubscription {
    NewSubscription {
        seller,
        client_id,
        id: SubscriptionId::from(id()),
        url: WebhookUrl::parse("https://receiver.example/hook?a=b%20", AddressPolicy::Public).unwrap(),
        events: vec![WebhookEvent::OrderPaid, WebhookEvent::OfferRejected],
        secret: WebhookSecret::from_random(&[7; 32]),
        created_at: instant(),
    }
}

pub(crate) fn key(new: &NewSubscription) -> LaneKey {
    LaneKey {
        seller: new.seller,
        subscription: new.id,
    }
}

pub(crate) fn delivery(tx: &dyn Transaction) -> NewDelivery {
    let id = DeliveryId::from(id());
    NewDelivery {
        id,
        event: WebhookEvent::OrderPaid,
        body: format!("{{\"id\":\"{id}\"}}").into_bytes(),
        created_at: tx.now(),
    }
}

/// The receiver answered so.
pub(crate) fn ended(hold: Hold, due: &webhooks::Due, status: u16) -> Conclusion {
    Conclusion {
        hold,
        delivery: due.id,
        attempt: due.attempt,
        outcome: Outcome::Answered(status),
        duration_ms: 12,
        fate: if status < 300 {
            Fate::Delivered
        } else {
            Fate::Retry(TimeDelta::minutes(1))
        },
    }
}

/// Every delivery of a lane ends so.
pub(crate) fn all_ended(lane: &Lane, status: u16) -> Vec<Conclusion> {
    let ends = lane.deliveries.iter();
    ends.map(|due| ended(lane.hold, due, status)).collect()
}

pub(crate) const fn release(hold: Hold) -> Release {
    Release {
        hold,
        failing: None,
        rest: TimeDelta::zero(),
    }
}

pub(crate) fn ids(lane: &Lane) -> Vec<DeliveryId> {
    lane.deliveries.iter().map(|due| due.id).collect()
}
