//! The database's clock steps by hours, forwards and back, while the service runs. Processes compare times
//! with this clock, so timeouts end early or late; nothing is lost, duplicated or rejected because of that.

use std::collections::BTreeMap;
use std::time::Duration;

use blackbox::{
    Expect, Integration, Receiver, World, items, line, local_receivers, merged, order_body, parcel, requests,
    text, until,
};
use chrono::{DateTime, TimeDelta, Utc};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::{Answer, Request, TestWorker};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_postgres::Client;

use crate::{PROGRAM, deliveries::without_workers, world};

/// Concurrent orders at each step, each repeated after it: few enough that each gets a connection.
const AT_ONCE: usize = 4;

fn instant(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// A seller whose orders are placed with idempotency keys.
struct Shop {
    own: Integration,
    offer: String,
}

impl Shop {
    async fn open(world: &World) -> Self {
        let own = world.integration().await;
        let offer = world.any_offer(&own.seller, json!({"stock": 1_000_000})).await;
        Self { own, offer }
    }

    fn ordering(&self, world: &World, sku: &str) -> Request {
        let item = merged(line(&self.own.seller, &self.offer, 1), json!({"sku": sku}));
        let body = order_body(&[item], json!({}));
        let request = world.office(Method::POST, "/orders").json(&body);
        request.header("idempotency-key", sku)
    }

    /// Locks the offer, so that all orders of it wait: for less than 2 s, their limit.
    async fn lock(&self, world: &World) -> Client {
        let client = world.database.connect().await;
        let lock = format!("begin; select from offers where id = '{}' for update", self.offer);
        client.batch_execute(&lock).await.unwrap();
        client
    }

    /// Pays and ships the order.
    async fn pay_and_ship(&self, world: &World, order: &str) {
        world.move_order(order, "payment").await.expect(200);
        let body = parcel(&format!("P{}", &order[order.len() - 12..]));
        world.ship(&self.own.token, order, &body).await.expect(201);
        assert_eq!(world.order(&self.own.token, order).await["status"], "shipped");
    }
}

/// The order's id if it was placed. Otherwise asserts that the concurrent repeat holds its key.
fn placed(answer: &Answer) -> Option<String> {
    if answer.status == 201 {
        return Some(answer.json()["order_id"].as_str().unwrap().to_owned());
    }
    answer.refused(409, "idempotency_in_progress");
    None
}

/// Reads the feed from the last cursor.
async fn follow(world: &World, after: &mut String, seen: &mut Vec<Value>) {
    let page = world.office_read(&format!("/changes?limit=1000{after}")).await;
    seen.extend_from_slice(items(&page));
    *after = format!("&after={}", text(&page, "next"));
}

#[tokio::test]
async fn under_use_nothing_fails_and_each_key_order_event_and_change_counts_once() {
    let world = World::with(PROGRAM, local_receivers).await;
    let clock = world.database.control_clock().await;
    let (shop, receiver) = (Shop::open(&world).await, Receiver::start().await);
    let hook = world.hook(&shop.own.token, &receiver).await;
    let before = shop.ordering(&world, "before").send().await.expect(201);
    let mut orders = BTreeMap::from([("before".to_owned(), before)]);
    let (mut after, mut seen) = (String::new(), Vec::new());
    for (round, hours) in [1, -1, -1, 2, -1].into_iter().enumerate() {
        let skus: Vec<_> = (0..AT_ONCE).map(|n| format!("SKU-{round}-{n}")).collect();
        // All orders wait for the offer while the clock steps, and are repeated before they continue.
        let lock = shop.lock(&world).await;
        let ask = |sku: &String| tokio::spawn(shop.ordering(&world, sku).send());
        let firsts: Vec<_> = skus.iter().map(ask).collect();
        let claimed_since = async |at: DateTime<Utc>| {
            let claims = "select count(*) from idempotency where created_at >= $1::text::timestamptz and status is null";
            usize::try_from(world.count(claims, &[&at.to_rfc3339()]).await).unwrap()
        };
        let beginning = clock.now().await - TimeDelta::minutes(1);
        until("the claims", async || claimed_since(beginning).await == AT_ONCE).await;
        clock.advance(TimeDelta::hours(hours)).await;
        follow(&world, &mut after, &mut seen).await;
        // A step forward expires the claims: a repeat takes the key over from a request that is still in
        // progress. A step back prolongs them: a repeat gets the answer that the key is in progress.
        let stepped = clock.now().await;
        let seconds: Vec<_> = skus.iter().map(ask).collect();
        until("the claims or refusals of those who repeat", async || {
            if hours > 0 {
                claimed_since(stepped).await == AT_ONCE
            } else {
                seconds.iter().all(JoinHandle::is_finished)
            }
        })
        .await;
        lock.batch_execute("commit").await.unwrap();
        let mut answers = Vec::new();
        for (first, second) in firsts.into_iter().zip(seconds) {
            answers.push([first.await.unwrap(), second.await.unwrap()]);
        }
        for (sku, both) in skus.iter().zip(&answers) {
            let good: Vec<_> = both.iter().filter(|answer| placed(answer).is_some()).collect();
            assert_eq!(good.len(), 1, "{both:?}");
            orders.insert(sku.clone(), good[0].clone());
        }
        // The stored answers are returned, whatever the clock says now; an order of another hour continues.
        for (sku, answer) in &orders {
            let again = shop.ordering(&world, sku).send().await.expect(201);
            assert_eq!(again.bytes, answer.bytes, "{sku}");
            assert!(again.header("idempotent-replayed").is_some(), "{sku}");
        }
        let order = placed(&orders[&format!("SKU-{round}-0")]).unwrap();
        shop.pay_and_ship(&world, &order).await;
        world.get(&shop.own.token, "/v1/me").await.expect(200);
    }
    let early = placed(&orders["before"]).unwrap();
    shop.pay_and_ship(&world, &early).await;

    for sku in orders.keys() {
        let there = "select count(*) from seller_orders where items->0->>'sku' = $1";
        assert_eq!(world.count(there, &[&sku]).await, 1, "{sku}");
    }
    // A delivery that is due at a time which comes again is due at that time at the latest.
    clock.advance(TimeDelta::hours(1)).await;
    // What was committed after a step forward, with a time from before it, may lie behind what claims look at: the
    // reconciliation finds it, once a minute.
    let ended = async {
        while world.waiting(&hook.id).await > 0 {
            sleep(Duration::from_millis(100)).await;
        }
    };
    let ended = timeout(Duration::from_mins(2), ended).await;
    ended.expect("the end of the deliveries");
    let mut ids = BTreeMap::new();
    for delivery in receiver.received() {
        // A step forward may expire a worker's lease on a delivery; the same delivery is then sent again.
        let earlier = ids.insert(delivery.delivery().to_owned(), delivery.body.clone());
        assert!(earlier.is_none_or(|earlier| earlier == delivery.body));
    }
    // One for each placed order, and two more for each order that was paid and shipped.
    assert_eq!(ids.len(), orders.len() + 2 * 6);
    world.caught_up_feed().await;
    follow(&world, &mut after, &mut seen).await;
    assert_eq!(seen, world.feed().await, "each change, in the feed's order");
    let failed = |request: &Value| request["status"].as_u64().unwrap() >= 500;
    let failures: Vec<_> = requests(&world.server.log()).into_iter().filter(failed).collect();
    assert!(failures.is_empty(), "{failures:?}");
}

#[tokio::test]
async fn a_minute_that_comes_twice_has_one_window_and_others_have_theirs() {
    let world = world().await;
    let clock = world.stop_clock("2040-01-01T12:00:30Z").await;
    let seller = world.seller().await;
    let application = world.application(&seller, &["offers:read"]).await;
    let limit = json!({"rate_limit": 3});
    world.adjust(&application.client_id, &limit).await.expect(200);
    let token = world.token(&application).await;
    let me = async |at: &str| {
        clock.freeze(instant(at)).await;
        world.get(&token, "/v1/me").await
    };
    let uses_up = async |at: &str| {
        for left in [2, 1, 0] {
            let answer = me(at).await.expect(200);
            assert_eq!(answer.number("x-ratelimit-remaining"), left, "{at}");
        }
    };
    let is_refused = async |at: &str, wait: &str| {
        let answer = me(at).await;
        answer.refused(429, "rate_limited");
        assert_eq!(answer.must("retry-after"), wait, "{at}");
    };
    for at in ["2040-01-01T12:00:30Z", "2040-01-01T12:01:30Z"] {
        uses_up(at).await;
        is_refused(at, "30").await;
    }
    // An hour earlier none of that counts; that minute has a separate count.
    uses_up("2040-01-01T11:00:30Z").await;
    is_refused("2040-01-01T11:00:30Z", "30").await;
    uses_up("2040-01-01T11:01:00Z").await;
    // Used-up minutes are still used up when they come again, each until its end, as `Retry-After` says.
    is_refused("2040-01-01T12:00:00Z", "60").await;
    is_refused("2040-01-01T12:01:00Z", "60").await;
    uses_up("2040-01-01T12:02:00Z").await;
}

#[tokio::test]
async fn a_delivery_that_is_due_in_time_to_come_waits_for_it_and_holds_up_no_other() {
    let world = World::with(PROGRAM, without_workers).await;
    let clock = world.database.control_clock().await;
    let (own, receiver) = (world.integration().await, Receiver::start().await);
    let hook = world.hook(&own.token, &receiver).await;
    let early = world.any_order(&own.seller).await;
    clock.advance(TimeDelta::hours(-1)).await;
    let _worker = TestWorker::start(&world.options, &world.database);
    let mut arrived = 0;
    for _ in 0..3 {
        let late = world.any_order(&own.seller).await;
        arrived += 1;
        let last = receiver.has(arrived).await.pop().unwrap();
        assert_eq!(last.json()["data"]["order_id"], late.id);
    }
    let waits = world.history(&own.token, &hook.id).await;
    let is_waiting = |delivery: &&Value| delivery["delivered_at"].is_null();
    assert_eq!(waits.len(), 4);
    until("the record of what has arrived", async || {
        let history = world.history(&own.token, &hook.id).await;
        history.iter().filter(is_waiting).count() == 1
    })
    .await;
    clock.advance(TimeDelta::hours(1)).await;
    let last = receiver.has(arrived + 1).await.pop().unwrap();
    assert_eq!(last.json()["data"]["order_id"], early.id);
    until("the end of the deliveries", async || {
        world.waiting(&hook.id).await == 0
    })
    .await;
    assert_eq!(receiver.count(), 4, "each came once");
}
