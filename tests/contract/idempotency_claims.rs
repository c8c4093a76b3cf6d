//! Claims on idempotency keys: while the first request runs, after it, after its process has died, and their rows in the database.

use blackbox::{Expect, Trader, Wire, World, eventually, parcel, request_with_body, whole};
use chrono::TimeDelta;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::Request;

use crate::world_of_trade;

const LOCK_OFFERS: &str = "select 1 from offers for update";

fn keyed(world: &World, trader: &Trader, offer: &str, body: &Value) -> Request {
    let request = world.patching(&trader.token, offer, body);
    request.header("idempotency-key", "k")
}

#[tokio::test]
async fn while_the_first_runs_a_repeat_is_told_so_and_another_request_is_refused() {
    let (world, trader, offer) = world_of_trade().await;
    let second = world.another().await;
    let held = world.hold(LOCK_OFFERS).await;
    let patch = |base: &str, stock: u32| {
        let url = format!("{base}/v1/offers/{offer}");
        let request = world.client.request(Method::PATCH, &url).bearer(&trader.token);
        let request = request.header("idempotency-key", "k");
        request.json(&json!({"stock": stock})).send()
    };
    let first = tokio::spawn(patch(&world.server.base_url, 3));
    world.waiters(1).await;
    for base in [&world.server.base_url, &second.base_url] {
        let answer = patch(base, 3).await;
        answer.is_problem(409, &[whole("idempotency_in_progress")]);
        assert_eq!(answer.must("retry-after"), "2");
        patch(base, 4)
            .await
            .is_problem(422, &[whole("idempotency_key_reused")]);
    }
    held.end("rollback").await;
    let first = first.await.unwrap().expect(200);
    // Another process returns the stored answer too.
    let again = patch(&second.base_url, 3).await.expect(200);
    assert_eq!(
        (again.must("idempotent-replayed"), &again.bytes),
        ("true", &first.bytes)
    );
}

#[tokio::test]
async fn the_marketplaces_requests_are_told_the_same() {
    let (world, trader, _) = world_of_trade().await;
    let order = world.paid_order(&trader).await;
    let held = world.hold("select 1 from seller_orders for update").await;
    let path = format!("/orders/{}/cancellation", order.id);
    let send = || {
        world
            .office(Method::POST, &path)
            .header("idempotency-key", "k")
            .send()
    };
    let first = tokio::spawn(send());
    world.waiters(1).await;
    let answer = send().await;
    answer.is_problem(409, &[whole("idempotency_in_progress")]);
    assert_eq!(answer.must("retry-after"), "2");
    held.end("rollback").await;
    first.await.unwrap().expect(200);
    assert_eq!(send().await.expect(200).must("idempotent-replayed"), "true");
}

#[tokio::test]
async fn a_client_that_goes_away_stops_nothing() {
    let (world, trader, offer) = world_of_trade().await;
    let held = world.hold(LOCK_OFFERS).await;
    let bearer = format!("Bearer {}", trader.token);
    let headers = [
        ("authorization", bearer.as_str()),
        ("user-agent", "Tests/1.0"),
        ("content-type", "application/json"),
        ("idempotency-key", "k"),
    ];
    let mut wire = Wire::connect(&world.server.base_url).await;
    let (path, body) = (format!("/v1/offers/{offer}"), json!({"stock": 3}));
    wire.send(request_with_body("PATCH", &path, &headers, &body.to_string()))
        .await;
    world.waiters(1).await;
    drop(wire);
    let repeat = || keyed(&world, &trader, &offer, &body).send();
    repeat().await.refused(409, "idempotency_in_progress");
    held.end("rollback").await;
    let done = async || Some(repeat().await).filter(|answer| answer.status == 200);
    let answer = eventually("the answer of the first", done).await;
    assert_eq!(answer.must("idempotent-replayed"), "true");
    assert_eq!(world.told("offer.stock_changed", &offer).await, 1);
}

#[tokio::test]
async fn a_500_that_changed_nothing_releases_the_key() {
    let (world, trader, offer) = world_of_trade().await;
    let order = world.paid_order(&trader).await;
    let payment = format!("/orders/{}/payment", order.id);
    let all = async || {
        let patch = keyed(&world, &trader, &offer, &json!({"stock": 3})).send().await;
        let ship = world.shipping(&trader.token, &order.id, &parcel("AAAA1"));
        let ship = ship.header("idempotency-key", "s").send().await;
        let pay = world
            .office(Method::POST, &payment)
            .header("idempotency-key", "c");
        [patch, ship, pay.send().await]
    };
    world
        .execute("alter table offers rename to away; alter table seller_orders rename to gone")
        .await;
    for answer in all().await {
        answer.is_problem(500, &[whole("internal_error")]);
    }
    world
        .execute("alter table away rename to offers; alter table gone rename to seller_orders")
        .await;
    for (answer, status) in all().await.into_iter().zip([200, 201, 200]) {
        assert_eq!(answer.expect(status).header("idempotent-replayed"), None);
    }
}

#[tokio::test]
async fn a_claim_whose_process_died_is_taken_over_when_its_lease_has_run_out() {
    let (mut world, trader, offer) = world_of_trade().await;
    let clock = world.database.control_clock().await;
    let held = world.hold(LOCK_OFFERS).await;
    let first = keyed(&world, &trader, &offer, &json!({"stock": 3}));
    let first = tokio::spawn(first.try_send());
    world.waiters(1).await;
    let survivor = world.another().await;
    let mut dead = std::mem::replace(&mut world.server, survivor);
    dead.kill();
    assert!(first.await.unwrap().is_err(), "nobody answers the first");
    held.end("rollback").await;
    let patch = |stock: u32| keyed(&world, &trader, &offer, &json!({"stock": stock})).send();
    patch(3).await.refused(409, "idempotency_in_progress");
    clock.advance(TimeDelta::seconds(55)).await;
    patch(3).await.refused(409, "idempotency_in_progress");
    clock.advance(TimeDelta::seconds(10)).await;
    // An expired claim without an answer counts as absent, together with its fingerprint.
    let taken = patch(5).await.expect(200);
    assert_eq!(taken.header("idempotent-replayed"), None);
    assert_eq!(world.stock(&trader.seller, &offer).await, 5);
    assert_eq!(patch(5).await.must("idempotent-replayed"), "true");
}

#[tokio::test]
async fn whoever_has_lost_its_claim_cannot_apply_its_effect() {
    let (world, trader, offer) = world_of_trade().await;
    let clock = world.database.control_clock().await;
    let held = world.hold(LOCK_OFFERS).await;
    let body = json!({"stock": 3, "price": {"amount": 77, "currency": "PLN"}});
    let slow = tokio::spawn(keyed(&world, &trader, &offer, &body).send());
    world.waiters(1).await;
    clock.advance(TimeDelta::minutes(2)).await;
    let quick = tokio::spawn(keyed(&world, &trader, &offer, &body).send());
    // Two requests wait for the offer now: the one that lost its claim and the one that has it.
    world.waiters(2).await;
    held.end("rollback").await;
    let (slow, quick) = (slow.await.unwrap(), quick.await.unwrap());
    slow.is_problem(409, &[whole("idempotency_in_progress")]);
    assert_eq!(quick.expect(200).json()["stock"], 3);
    assert_eq!(world.told("offer.price_changed", &offer).await, 1, "one effect");
}
