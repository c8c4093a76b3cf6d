//! Subscriptions, their queued deliveries, and the workers' calls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use kernel::SellerId;
use oauth::ClientId;
use usecases::Transaction;
use webhooks::{
    AddressPolicy, AttemptRecord, Capacity, Delivery, DeliveryId, Due, FreeAttempts, Lease, NewSubscription,
    Outcome, QueueKey, Refill, Release, RetrySchedule, SubscriptionQueue, SubscriptionQueues, WebhookEvent,
    WebhookSecret, WebhookUrl,
};

use super::{Fixture, id, instant};

/// So many free attempts of many more.
pub(crate) const fn free(attempts: u16) -> FreeAttempts {
    FreeAttempts {
        attempts,
        open: 10_000,
        of: 10_000,
        passed_over: BTreeSet::new(),
    }
}

pub(crate) const CAPACITY: Capacity = Capacity {
    all: free(128),
    failing: free(64),
    per_queue: 16,
    per_failing_queue: 2,
    first_window: 1_000,
    first_window_of_idle: 1_000,
    under_way: BTreeMap::new(),
};

/// The queues that a worker may claim, now or later.
pub(crate) const AWAKE: &str = "subscriptions where wake_at is not null and not leased";

impl Fixture {
    pub(crate) fn queues(&self) -> Arc<dyn SubscriptionQueues> {
        self.database.subscription_queues()
    }

    /// Connects the application with the seller.
    pub(crate) async fn connect(&self, seller: SellerId, client_id: ClientId) {
        let insert =
            "insert into connections (client_id, seller_id, connected_at) values ($1, $2, api_now())";
        let keys: [&(dyn tokio_postgres::types::ToSql + Sync); 2] = [&client_id.uuid(), &seller.uuid()];
        self.client.execute(insert, &keys).await.unwrap();
    }

    /// Subscribes to all events.
    pub(crate) async fn subscribe(&self, seller: SellerId, client_id: ClientId) -> QueueKey {
        let subscribe = async |tx: &dyn Transaction| {
            let new = subscription(seller, client_id);
            let queue = key(&new);
            assert!(tx.add_subscription(new).await.unwrap());
            queue
        };
        self.tx(subscribe).await
    }

    /// The whole row of a subscription.
    pub(crate) async fn row_of(&self, queue: QueueKey) -> Vec<String> {
        let id = queue.subscription.uuid();
        self.texts(&format!(
            "select s::text from subscriptions as s where id = '{id}'"
        ))
        .await
    }

    /// A new seller's own application, and its subscription.
    pub(crate) async fn subscribed(&self) -> (ClientId, QueueKey) {
        let seller = self.seller().await;
        let client_id = self.client_of(seller).await;
        (client_id, self.subscribe(seller, client_id).await)
    }

    pub(crate) async fn queue(&self) -> QueueKey {
        self.subscribed().await.1
    }

    /// Copies each subscription this many times, without its deliveries.
    pub(crate) async fn copies(&self, number: usize) {
        let copy = "insert into subscriptions
            select (jsonb_populate_record(s, jsonb_build_object('id', gen_random_uuid()))).*
            from subscriptions as s, generate_series(1, {number})";
        self.tamper(&copy.replace("{number}", &number.to_string())).await;
    }

    pub(crate) async fn several_queues<const N: usize>(&self) -> [QueueKey; N] {
        let mut queues = Vec::new();
        while queues.len() < N {
            queues.push(self.queue().await);
        }
        queues.try_into().unwrap()
    }

    /// Queues deliveries manually and returns their ids.
    pub(crate) async fn enqueue(&self, queue: QueueKey, number: usize) -> Vec<DeliveryId> {
        let queue = async |tx: &dyn Transaction| {
            let mut ids = Vec::new();
            for _ in 0..number {
                ids.push(queue_one(tx, queue).await.unwrap());
            }
            ids
        };
        self.tx(queue).await
    }

    /// Inserts deliveries by SQL: the first due an hour ago, then one each millisecond; with failed attempts
    /// the queue counts as failing.
    pub(crate) async fn fill(&self, queue: QueueKey, number: usize, attempt: i16) {
        let fill = "insert into deliveries (seller_id, subscription_id, id, created_at, due_at, attempt, response_status, event, body) \
               select '{seller}', '{queue}', api_uuid(api_now()), api_now(), api_now() - interval '1 hour' + n * interval '1 ms', \
                 {attempt}, case when {attempt} > 0 then 500 end, 'order.paid', 'x' from generate_series(1, {number}) n; \
             update subscriptions set wake_at = api_now() - interval '1 hour', none_due_before = null where id = '{queue}'";
        let fill = fill.replace("{seller}", &queue.seller.to_string());
        let fill = fill.replace("{queue}", &queue.subscription.to_string());
        let fill = fill.replace("{attempt}", &attempt.to_string());
        self.tamper(&fill.replace("{number}", &number.to_string())).await;
    }

    pub(crate) async fn set_queue(&self, queue: QueueKey, set: &str) {
        let id = queue.subscription;
        let update = format!("update subscriptions set {set} where id = '{id}'");
        self.tamper(&update).await;
    }

    pub(crate) async fn claim_within(&self, capacity: Capacity) -> Vec<SubscriptionQueue> {
        self.queues().claim(id(), capacity).await.unwrap().queues
    }

    /// Claims with ample capacity.
    pub(crate) async fn claim(&self) -> Vec<SubscriptionQueue> {
        self.claim_within(CAPACITY).await
    }

    /// Claims with ample capacity, and returns the queues in order.
    pub(crate) async fn claim_keys(&self) -> Vec<QueueKey> {
        let mut keys: Vec<_> = self.claim().await.iter().map(|queue| queue.lease.queue).collect();
        keys.sort();
        keys
    }

    /// Claims the only due queue.
    pub(crate) async fn claim_one(&self) -> SubscriptionQueue {
        let mut queues = self.claim().await;
        assert_eq!(queues.len(), 1, "{queues:?}");
        queues.remove(0)
    }

    /// Further due deliveries of a leased queue, if its lease is valid.
    pub(crate) async fn refill(&self, refill: Refill) -> Option<Vec<Due>> {
        let mut given = self.queues().refill(&[refill]).await.unwrap();
        assert!(given.len() < 2);
        given.pop().map(|queue| queue.deliveries)
    }

    /// Records; this must succeed.
    pub(crate) async fn record(&self, records: &[AttemptRecord], released: &[Release]) {
        self.queues().record(records, released).await.unwrap();
    }

    /// All deliveries of a queue end with this status, and the queue is released.
    pub(crate) async fn end_all(&self, queue: &SubscriptionQueue, status: u16) {
        self.record(&all_ended(queue, status), &[release(queue.lease)])
            .await;
    }

    pub(crate) async fn release(&self, lease: Lease) {
        self.record(&[], &[release(lease)]).await;
    }

    pub(crate) async fn delivered(&self) -> i64 {
        self.rows_of("deliveries where delivered_at is not null").await
    }

    /// The number of pending deliveries.
    pub(crate) async fn waiting(&self) -> i64 {
        self.rows_of("deliveries where due_at is not null").await
    }

    /// The number of leased queues.
    pub(crate) async fn leased(&self) -> i64 {
        self.rows_of("subscriptions where leased").await
    }

    /// When a queue is due, or its lease ends.
    pub(crate) async fn sleeps_until(&self, queue: QueueKey) -> Option<DateTime<Utc>> {
        let sql = "select wake_at from subscriptions where id = $1";
        let row = self.client.query_one(sql, &[&queue.subscription.uuid()]).await;
        row.unwrap().get(0)
    }

    /// How long an unleased queue sleeps; None if only new work wakes it.
    pub(crate) async fn sleeps(&self, queue: QueueKey) -> Option<TimeDelta> {
        let leased = format!("subscriptions where leased and id = '{}'", queue.subscription);
        assert_eq!(self.rows_of(&leased).await, 0, "it is leased");
        let until = self.sleeps_until(queue).await?;
        Some(until - self.now().await)
    }

    /// A subscription's deliveries as its application sees them.
    pub(crate) async fn history(&self, client_id: ClientId, queue: QueueKey) -> Option<Vec<Delivery>> {
        let reader = self.database.subscriptions();
        let history = reader.history(queue.seller, client_id, queue.subscription).await;
        history.unwrap()
    }
}

/// Queues a delivery; None if the subscription gets none.
pub(crate) async fn queue_one(tx: &dyn Transaction, queue: QueueKey) -> Option<DeliveryId> {
    let id = DeliveryId::from(id());
    let body = format!("{{\"id\":\"{id}\"}}").into_bytes();
    let new = Delivery::queued(id, WebhookEvent::OrderPaid, body, tx.now());
    let queued = tx.queue_delivery(queue.seller, queue.subscription, &new).await;
    queued.unwrap().then_some(id)
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

pub(crate) fn key(new: &NewSubscription) -> QueueKey {
    QueueKey {
        seller: new.seller,
        subscription: new.id,
    }
}

/// The receiver responded with this status.
pub(crate) fn ended(lease: Lease, due: &Due, status: u16) -> AttemptRecord {
    let outcome = Outcome::Answered(status);
    let schedule = RetrySchedule([TimeDelta::minutes(1); 5]);
    let (next, phase) = due.progress.end(&outcome, &schedule, 0);
    AttemptRecord {
        lease,
        delivery: due.id,
        from: due.progress,
        next,
        phase,
        outcome,
        duration_ms: 12,
    }
}

/// All deliveries of a queue end with this status.
pub(crate) fn all_ended(queue: &SubscriptionQueue, status: u16) -> Vec<AttemptRecord> {
    let ends = queue.deliveries.iter();
    ends.map(|due| ended(queue.lease, due, status)).collect()
}

pub(crate) const fn release(lease: Lease) -> Release {
    Release {
        lease,
        failing: None,
        pause: TimeDelta::zero(),
    }
}

/// Another worker's lease of the same queue.
pub(crate) fn strangers(lease: Lease) -> Lease {
    Lease { fence: id(), ..lease }
}

/// A refill with capacity beside the running deliveries.
pub(crate) fn more(lease: Lease, running: &[DeliveryId], capacity: u16, repeats: u16) -> Refill {
    Refill {
        lease,
        running: running.to_vec(),
        capacity,
        repeats,
    }
}

pub(crate) fn ids(queue: &SubscriptionQueue) -> Vec<DeliveryId> {
    ids_of(&queue.deliveries)
}

pub(crate) fn ids_of(due: &[Due]) -> Vec<DeliveryId> {
    due.iter().map(|due| due.id).collect()
}

/// The number of deliveries given out.
pub(crate) fn given<'a>(queues: impl IntoIterator<Item = &'a SubscriptionQueue>) -> usize {
    queues.into_iter().map(|queue| queue.deliveries.len()).sum()
}
