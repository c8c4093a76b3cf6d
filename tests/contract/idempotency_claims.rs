//! Claims on idempotency keys: while the first request runs, after it, when its process died, and what lies in the database.

use blackbox::{Expect, Trader, Wire, World, eventually, parcel, request_with_body, whole};
use chrono::TimeDelta;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::{Answer, Request};
use tokio::task::JoinHandle;

use crate::world_of_trade;

/// Waits until some statement on this database waits for a lock.
async fn somebody_waits(world: &World) {
    let client = world.database.connect().await;
    let waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    let look = async || (client.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) > 0).then_some(());
    eventually("somebody who waits for a lock", look).await;
}

const LOCK_OFFERS: &str = "select 1 from offers for update";

fn keyed(world: &World, trader: &Trader, offer: &str, body: &Value, key: &str) -> Request {
    world
        .patching(&trader.token, offer, body)
        .header("idempotency-key", key)
}

/// Sends a request that cannot go on for now, and returns once it stands.
pub(crate) async fn held(world: &World, request: Request) -> JoinHandle<Answer> {
    let running = tokio::spawn(request.send());
    somebody_waits(world).await;
    running
}

#[tokio::test]
async fn while_the_first_runs_a_repeat_is_told_so_and_another_request_is_refused() {
    let (world, trader, offer) = world_of_trade().await;
    let second = world.another().await;
    let mut client = world.database.connect().await;
    let lock = client.transaction().await.unwrap();
    lock.batch_execute(LOCK_OFFERS).await.unwrap();
    let body = json!({"stock": 3});
    let first = held(&world, keyed(&world, &trader, &offer, &body, "k")).await;
    for base in [&world.server.base_url, &second.base_url] {
        let patch = |body: &Value| {
            let request = world
                .client
                .request(Method::PATCH, &format!("{base}/v1/offers/{offer}"))
                .bearer(&trader.token);
            request.header("idempotency-key", "k").json(body).send()
        };
        let answer = patch(&body).await;
        answer.is_problem(409, &[whole("idempotency_in_progress")]);
        assert_eq!(answer.must("retry-after"), "2");
        patch(&json!({"stock": 4}))
            .await
            .is_problem(422, &[whole("idempotency_key_reused")]);
    }
    lock.rollback().await.unwrap();
    let first = first.await.unwrap().expect(200);
    // Another process knows the answer, too.
    let request = world
        .client
        .request(Method::PATCH, &format!("{}/v1/offers/{offer}", second.base_url))
        .bearer(&trader.token);
    let again = request
        .header("idempotency-key", "k")
        .json(&body)
        .send()
        .await
        .expect(200);
    assert_eq!(
        (again.must("idempotent-replayed"), &again.bytes),
        ("true", &first.bytes)
    );
}

#[tokio::test]
async fn the_marketplaces_requests_are_told_the_same() {
    let (world, trader, _) = world_of_trade().await;
    let order = world.paid_order(&trader).await;
    let mut client = world.database.connect().await;
    let lock = client.transaction().await.unwrap();
    lock.batch_execute("select 1 from seller_orders for update")
        .await
        .unwrap();
    let path = format!("/orders/{}/cancellation", order.id);
    let send = || world.office(Method::POST, &path).header("idempotency-key", "k");
    let first = held(&world, send()).await;
    let answer = send().send().await;
    answer.is_problem(409, &[whole("idempotency_in_progress")]);
    assert_eq!(answer.must("retry-after"), "2");
    lock.rollback().await.unwrap();
    first.await.unwrap().expect(200);
    assert_eq!(
        send().send().await.expect(200).must("idempotent-replayed"),
        "true"
    );
}

#[tokio::test]
async fn a_client_that_goes_away_stops_nothing() {
    let (world, trader, offer) = world_of_trade().await;
    let mut client = world.database.connect().await;
    let lock = client.transaction().await.unwrap();
    lock.batch_execute(LOCK_OFFERS).await.unwrap();
    let bearer = format!("Bearer {}", trader.token);
    let body = json!({"stock": 3}).to_string();
    let headers = [
        ("authorization", bearer.as_str()),
        ("user-agent", "Tests/1.0"),
        ("content-type", "application/json"),
        ("idempotency-key", "gone"),
    ];
    let mut wire = Wire::connect(&world.server.base_url).await;
    wire.send(request_with_body(
        "PATCH",
        &format!("/v1/offers/{offer}"),
        &headers,
        &body,
    ))
    .await;
    somebody_waits(&world).await;
    drop(wire);
    let repeat = || keyed(&world, &trader, &offer, &json!({"stock": 3}), "gone").send();
    repeat().await.refused(409, "idempotency_in_progress");
    lock.rollback().await.unwrap();
    let done = async || Some(repeat().await).filter(|answer| answer.status == 200);
    assert_eq!(
        eventually("the answer of the first", done)
            .await
            .must("idempotent-replayed"),
        "true"
    );
    assert_eq!(world.told("offer.stock_changed", &offer).await, 1);
}

#[tokio::test]
async fn a_500_that_changed_nothing_releases_the_key() {
    let (world, trader, offer) = world_of_trade().await;
    let client = world.database.connect().await;
    let order = world.paid_order(&trader).await;
    let patch = || keyed(&world, &trader, &offer, &json!({"stock": 3}), "p").send();
    let ship = || {
        world
            .shipping(&trader.token, &order.id, &parcel("AAAA1"))
            .header("idempotency-key", "s")
            .send()
    };
    let cancel = || {
        world
            .office(Method::POST, &format!("/orders/{}/payment", order.id))
            .header("idempotency-key", "c")
            .send()
    };
    client
        .batch_execute("alter table offers rename to away; alter table seller_orders rename to gone")
        .await
        .unwrap();
    for answer in [patch().await, ship().await, cancel().await] {
        answer.is_problem(500, &[whole("internal_error")]);
    }
    client
        .batch_execute("alter table away rename to offers; alter table gone rename to seller_orders")
        .await
        .unwrap();
    for (answer, status) in [(patch().await, 200), (ship().await, 201), (cancel().await, 200)] {
        assert_eq!(answer.expect(status).header("idempotent-replayed"), None);
    }
}

#[tokio::test]
async fn a_claim_whose_process_died_is_taken_over_when_its_lease_has_run_out() {
    let (mut world, trader, offer) = world_of_trade().await;
    let clock = world.database.control_clock().await;
    let mut client = world.database.connect().await;
    let lock = client.transaction().await.unwrap();
    lock.batch_execute(LOCK_OFFERS).await.unwrap();
    let request = keyed(&world, &trader, &offer, &json!({"stock": 3}), "k");
    let first = tokio::spawn(request.try_send());
    somebody_waits(&world).await;
    let survivor = world.another().await;
    let mut dead = std::mem::replace(&mut world.server, survivor);
    dead.kill();
    assert!(first.await.unwrap().is_err(), "nobody answers the first");
    lock.rollback().await.unwrap();
    let patch = |stock: u32| keyed(&world, &trader, &offer, &json!({"stock": stock}), "k").send();
    patch(3).await.refused(409, "idempotency_in_progress");
    clock.advance(TimeDelta::seconds(55)).await;
    patch(3).await.refused(409, "idempotency_in_progress");
    clock.advance(TimeDelta::seconds(10)).await;
    // An expired claim that was never completed counts as absent, its fingerprint too.
    let taken = patch(5).await.expect(200);
    assert_eq!(taken.header("idempotent-replayed"), None);
    assert_eq!(world.fed_offer(&trader.seller, &offer).await["stock"], 5);
    assert_eq!(patch(5).await.must("idempotent-replayed"), "true");
}

#[tokio::test]
async fn whoever_has_lost_its_claim_cannot_apply_its_effect() {
    let (world, trader, offer) = world_of_trade().await;
    let clock = world.database.control_clock().await;
    let mut client = world.database.connect().await;
    let lock = client.transaction().await.unwrap();
    lock.batch_execute(LOCK_OFFERS).await.unwrap();
    let body = json!({"stock": 3, "price": {"amount": 77, "currency": "PLN"}});
    let slow = held(&world, keyed(&world, &trader, &offer, &body, "k")).await;
    clock.advance(TimeDelta::minutes(2)).await;
    let quick = tokio::spawn(keyed(&world, &trader, &offer, &body, "k").send());
    // Two stand before the offer now: the one that lost its claim, and the one that has it.
    let watcher = world.database.connect().await;
    let waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    let two = async || (watcher.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) > 1).then_some(());
    eventually("two who wait", two).await;
    lock.rollback().await.unwrap();
    let (slow, quick) = (slow.await.unwrap(), quick.await.unwrap());
    slow.is_problem(409, &[whole("idempotency_in_progress")]);
    assert_eq!(quick.expect(200).json()["stock"], 3);
    eventually("the feed", async || {
        (world.told("offer.price_changed", &offer).await > 0).then_some(())
    })
    .await;
    assert_eq!(world.told("offer.price_changed", &offer).await, 1, "one effect");
}
