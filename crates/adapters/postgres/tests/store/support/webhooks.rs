//! Subscriptions, what is queued in them, and what workers do with it.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use kernel::SellerId;
use oauth::ClientId;
use usecases::Transaction;
use webhooks::{
    AddressPolicy, Conclusion, Delivery, DeliveryId, Due, Fate, Hold, Lane, LaneKey, Lanes, NewDelivery,
    NewSubscription, Outcome, Release, Room, TopUp, UnderWay, WebhookEvent, WebhookSecret, WebhookUrl,
};

use super::{Fixture, id, instant};

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

impl Fixture {
    pub(crate) fn lanes(&self) -> Arc<dyn Lanes> {
        self.database.lanes()
    }

    /// The seller lets an application in.
    pub(crate) async fn connect(&self, seller: SellerId, client_id: ClientId) {
        let insert =
            "insert into connections (client_id, seller_id, connected_at) values ($1, $2, api_now())";
        let keys: [&(dyn tokio_postgres::types::ToSql + Sync); 2] = [&client_id.uuid(), &seller.uuid()];
        self.client.execute(insert, &keys).await.unwrap();
    }

    /// Subscribes to everything.
    pub(crate) async fn subscribe(&self, seller: SellerId, client_id: ClientId) -> LaneKey {
        let subscribe = async |tx: &dyn Transaction| {
            assert!(tx.take_subscription_place(seller, client_id).await.unwrap());
            let new = subscription(seller, client_id);
            let lane = key(&new);
            tx.add_subscription(new).await.unwrap();
            lane
        };
        self.tx(subscribe).await
    }

    /// A subscription of a new seller's own application.
    pub(crate) async fn lane(&self) -> LaneKey {
        let seller = self.seller().await;
        let client_id = self.client_of(seller).await;
        self.subscribe(seller, client_id).await
    }

    /// Queues deliveries by hand, and returns their ids.
    pub(crate) async fn queue(&self, lane: LaneKey, number: usize) -> Vec<DeliveryId> {
        let queue = async |tx: &dyn Transaction| {
            let mut ids = Vec::new();
            for _ in 0..number {
                ids.push(queue_one(tx, lane).await.unwrap());
            }
            ids
        };
        self.tx(queue).await
    }

    /// Deliveries of a lane by SQL: due an hour ago and later, one each millisecond; after attempts that failed the lane fails.
    pub(crate) async fn fill(&self, lane: LaneKey, number: usize, attempt: i16) {
        let fill = "insert into deliveries (seller_id, subscription_id, id, created_at, due_at, attempt, response_status, event, body) \
               select '{seller}', '{lane}', api_uuid(api_now()), api_now(), api_now() - interval '1 hour' + n * interval '1 ms', \
                 {attempt}, case when {attempt} > 0 then 500 end, 'order.paid', 'x' from generate_series(1, {number}) n; \
             update subscriptions set wake_at = api_now() - interval '1 hour' where id = '{lane}'";
        let fill = fill.replace("{seller}", &lane.seller.to_string());
        let fill = fill.replace("{lane}", &lane.subscription.to_string());
        let fill = fill.replace("{attempt}", &attempt.to_string());
        self.tamper(&fill.replace("{number}", &number.to_string())).await;
    }

    /// Sets columns of a subscription.
    pub(crate) async fn set_lane(&self, lane: LaneKey, set: &str) {
        self.tamper(&format!(
            "update subscriptions set {set} where id = '{}'",
            lane.subscription
        ))
        .await;
    }

    pub(crate) async fn claim_within(&self, room: Room) -> Vec<Lane> {
        self.lanes().claim(id(), room).await.unwrap().lanes
    }

    /// Claims as a worker with plenty of room.
    pub(crate) async fn claim(&self) -> Vec<Lane> {
        self.claim_within(ROOM).await
    }

    /// Claims the one lane that is due.
    pub(crate) async fn claim_one(&self) -> Lane {
        let mut lanes = self.claim().await;
        assert_eq!(lanes.len(), 1, "{lanes:?}");
        lanes.remove(0)
    }

    /// What else a lane that is held is given, if it is given anything.
    pub(crate) async fn top_up(&self, top_up: TopUp) -> Option<Vec<Due>> {
        let mut given = self.lanes().top_up(&[top_up]).await.unwrap();
        assert!(given.len() < 2);
        given.pop().map(|lane| lane.deliveries)
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

    /// How many deliveries have been delivered.
    pub(crate) async fn delivered(&self) -> i64 {
        self.rows_of("deliveries where delivered_at is not null").await
    }

    /// How many deliveries wait.
    pub(crate) async fn waiting(&self) -> i64 {
        self.rows_of("deliveries where due_at is not null").await
    }

    /// How many lanes workers hold.
    pub(crate) async fn leased(&self) -> i64 {
        self.rows_of("subscriptions where leased").await
    }

    /// When a lane is due, or its lease ends.
    pub(crate) async fn sleeps_until(&self, lane: LaneKey) -> Option<DateTime<Utc>> {
        let sql = "select wake_at from subscriptions where id = $1";
        let row = self.client.query_one(sql, &[&lane.subscription.uuid()]).await;
        row.unwrap().get(0)
    }

    /// How long a lane that nobody holds sleeps on; none where nothing wakes it but work.
    pub(crate) async fn sleeps(&self, lane: LaneKey) -> Option<TimeDelta> {
        let held = format!("subscriptions where leased and id = '{}'", lane.subscription);
        assert_eq!(self.rows_of(&held).await, 0, "it is held");
        let until = self.sleeps_until(lane).await?;
        Some(until - self.now().await)
    }

    /// What an application is told of a subscription's deliveries.
    pub(crate) async fn history(&self, client_id: ClientId, lane: LaneKey) -> Option<Vec<Delivery>> {
        let reader = self.database.subscriptions();
        reader
            .history(lane.seller, client_id, lane.subscription)
            .await
            .unwrap()
    }
}

/// Queues a delivery, if the subscription is told of anything at all.
pub(crate) async fn queue_one(tx: &dyn Transaction, lane: LaneKey) -> Option<DeliveryId> {
    let id = DeliveryId::from(id());
    let new = NewDelivery {
        id,
        event: WebhookEvent::OrderPaid,
        body: format!("{{\"id\":\"{id}\"}}").into_bytes(),
        created_at: tx.now(),
    };
    let queued = tx
        .queue_delivery(lane.seller, lane.subscription, new)
        .await
        .unwrap();
    queued.then_some(id)
}

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
        id: id().into(),
        url: WebhookUrl::parse("https://receiver.example/hook?a=b%20", AddressPolicy::Public).unwrap(),
        events: WebhookEvent::ALL.to_vec(),
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

/// The receiver answered so.
pub(crate) fn ended(hold: Hold, due: &Due, status: u16) -> Conclusion {
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

/// Another worker's hold on the same lane.
pub(crate) fn strangers(hold: Hold) -> Hold {
    Hold { fence: id(), ..hold }
}

/// Room for more beside what runs.
pub(crate) fn more(hold: Hold, running: &[DeliveryId], room: u16, repeats: u16) -> TopUp {
    TopUp {
        hold,
        running: running.to_vec(),
        room,
        repeats,
    }
}

pub(crate) fn ids(lane: &Lane) -> Vec<DeliveryId> {
    ids_of(&lane.deliveries)
}

pub(crate) fn ids_of(due: &[Due]) -> Vec<DeliveryId> {
    due.iter().map(|due| due.id).collect()
}

/// How many deliveries were given out.
pub(crate) fn given<'a>(lanes: impl IntoIterator<Item = &'a Lane>) -> usize {
    lanes.into_iter().map(|lane| lane.deliveries.len()).sum()
}
