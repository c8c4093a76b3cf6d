//! Claims on idempotency keys: while the first request runs, after it, and after its process has died.

use blackbox::{Expect, Trader, Wire, World, eventually, keyed, parcel, whole};
use chrono::TimeDelta;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::{Answer, Request};

use crate::world_of_trade;

/// Locks every offer; `for update` would need a seller on Citus.
const LOCK_OFFERS: &str = "update offers set stock = stock";
/// A first request waits for a lock for two seconds: on a busy machine it may give up before the others came.
const TRIES: usize = 5;

fn patching(world: &World, trader: &Trader, offer: &str, body: &Value) -> Request {
    keyed(world.patching(&trader.token, offer, body), "k")
}

fn in_progress(answer: &Answer) {
    answer.is_problem(409, &[whole("idempotency_in_progress")]);
    assert_eq!(answer.must("retry-after"), "2");
}

#[tokio::test]
async fn while_the_first_request_runs_a_repeat_is_409_and_another_request_422() {
    let (world, trader, offer) = world_of_trade().await;
    let second = world.another().await;
    let patch = |base: &str, key: &str, stock: u32| {
        let url = format!("{base}/v1/offers/{offer}");
        let request = world.client.request(Method::PATCH, &url).bearer(&trader.token);
        keyed(request, key).json(&json!({"stock": stock})).send()
    };
    for n in 0.. {
        assert!(n < TRIES, "the first does not outlast the others");
        let key = format!("k-{n}");
        let locked = world.open_transaction(LOCK_OFFERS).await;
        let first = tokio::spawn(patch(&world.server.base_url, &key, 3));
        world.until_claimed(&key, &first).await;
        let same = patch(&second.base_url, &key, 3).await;
        let others = [
            patch(&world.server.base_url, &key, 4).await,
            patch(&second.base_url, &key, 4).await,
        ];
        locked.end("rollback").await;
        let first = first.await.unwrap();
        if first.status == 200 {
            in_progress(&same);
            for other in others {
                other.is_problem(422, &[whole("idempotency_key_reused")]);
            }
            // Another process returns the stored answer too.
            let again = patch(&second.base_url, &key, 3).await.expect(200);
            assert_eq!((again.is_replayed(), &again.bytes), (true, &first.bytes));
            break;
        }
    }
    // The same applies to the marketplace's requests.
    for n in 0.. {
        assert!(n < TRIES, "the first does not outlast the other");
        let key = format!("c-{n}");
        let order = world.paid_order(&trader).await;
        let locked = world
            .open_transaction("update seller_orders set status = status")
            .await;
        let cancellation = format!("/orders/{}/cancellation", order.id);
        let cancel = || keyed(world.office(Method::POST, &cancellation), &key).send();
        let first = tokio::spawn(cancel());
        world.until_claimed(&key, &first).await;
        let same = cancel().await;
        locked.end("rollback").await;
        if first.await.unwrap().status == 200 {
            in_progress(&same);
            assert!(cancel().await.expect(200).is_replayed());
            break;
        }
    }
}

#[tokio::test]
async fn a_disconnected_clients_request_is_completed() {
    let (world, trader, _) = world_of_trade().await;
    let body = json!({"stock": 3});
    let length = body.to_string().len().to_string();
    for n in 0.. {
        assert!(n < TRIES, "the first does not outlast its repeat");
        let (key, offer) = (format!("k-{n}"), world.any_offer(&trader.seller, json!({})).await);
        let headers = [
            ("content-type", "application/json"),
            ("content-length", &length),
            ("idempotency-key", &key),
        ];
        let locked = world.open_transaction(LOCK_OFFERS).await;
        let mut wire = Wire::connect(&world.server.base_url).await;
        let head = world.raw("PATCH", &format!("/v1/offers/{offer}"), &trader.token, &headers);
        wire.send(format!("{head}{body}")).await;
        world.waiters(1).await;
        drop(wire);
        let repeat = || keyed(world.patching(&trader.token, &offer, &body), &key).send();
        let early = repeat().await;
        locked.end("rollback").await;
        let done = async || Some(repeat().await).filter(|answer| answer.status == 200);
        if eventually("the answer", done).await.is_replayed() {
            in_progress(&early);
            assert_eq!(world.count_in_feed("offer.stock_changed", &offer).await, 1);
            break;
        }
    }
}

#[tokio::test]
async fn a_500_that_changed_nothing_releases_the_key() {
    let (world, trader, offer) = world_of_trade().await;
    let order = world.paid_order(&trader).await;
    let payment = format!("/orders/{}/payment", order.id);
    let all = async || {
        let patch = patching(&world, &trader, &offer, &json!({"stock": 3}))
            .send()
            .await;
        let ship = world.shipping(&trader.token, &order.id, &parcel("AAAA1"));
        let pay = world.office(Method::POST, &payment);
        [patch, keyed(ship, "s").send().await, keyed(pay, "c").send().await]
    };
    world.execute("alter table offers rename to away").await;
    world.execute("alter table seller_orders rename to gone").await;
    for answer in all().await {
        answer.is_problem(500, &[whole("internal_error")]);
    }
    world.execute("alter table away rename to offers").await;
    world.execute("alter table gone rename to seller_orders").await;
    for (answer, status) in all().await.into_iter().zip([200, 201, 200]) {
        assert!(!answer.expect(status).is_replayed());
    }
}

#[tokio::test]
async fn the_claim_of_a_dead_process_is_taken_over_after_its_lease() {
    let (mut world, trader, offer) = world_of_trade().await;
    let clock = world.stop_clock("2040-01-01T12:00:00Z").await;
    // The pooler of a fleet goes with its first server.
    let mut dead = Vec::new();
    for n in 0.. {
        assert!(n < TRIES, "the first gets an answer");
        let survivor = world.another().await;
        let locked = world.open_transaction(LOCK_OFFERS).await;
        let first = patching(&world, &trader, &offer, &json!({"stock": 3}));
        let first = tokio::spawn(first.try_send());
        world.until_claimed("k", &first).await;
        world.server.kill();
        dead.push(std::mem::replace(&mut world.server, survivor));
        locked.end("rollback").await;
        if first.await.unwrap().is_err() {
            break;
        }
    }
    let patch = |stock: u32| patching(&world, &trader, &offer, &json!({"stock": stock})).send();
    patch(3).await.refused(409, "idempotency_in_progress");
    clock.advance(TimeDelta::seconds(55)).await;
    patch(3).await.refused(409, "idempotency_in_progress");
    clock.advance(TimeDelta::seconds(10)).await;
    // An expired claim without an answer counts as absent, together with its fingerprint.
    assert!(!patch(5).await.expect(200).is_replayed());
    assert_eq!(world.stock(&trader.seller, &offer).await, 5);
    assert!(patch(5).await.is_replayed());
}
