//! The connection breaks in the very moment of a COMMIT: the answer tells what really happened, or the key stays taken.

use blackbox::{Expect, Trader, World, eventually, parcel};
use chrono::TimeDelta;
use reqwest::Method;
use serde_json::json;
use testkit::{Answer, Link, LostCommit, Request};

use crate::PROGRAM;

/// A world whose server reaches its database over a link, and which commits nothing of its own accord.
async fn prepared() -> (World, Link, Trader, String) {
    let alone = |options: testkit::ServerOptions| options.set("SELLER_API__SERVER__WORKERS", "none");
    let (world, link) = World::over_a_link(PROGRAM, alone).await;
    let trader = world.trader().await;
    let offer = world.any_offer(&trader.seller, json!({})).await;
    (world, link, trader, offer)
}

fn patch(world: &World, trader: &Trader, offer: &str, key: Option<&str>) -> Request {
    let request = world.patching(&trader.token, offer, &json!({"stock": 3}));
    match key {
        Some(key) => request.header("idempotency-key", key),
        None => request,
    }
}

async fn stock(world: &World, offer: &str) -> i64 {
    world
        .count("select stock::bigint from offers where id::text = $1", offer)
        .await
}

/// Repeats until the claim of the first is decided.
async fn settled(request: impl Fn() -> Request) -> Answer {
    eventually("an answer that settles it", async || {
        let answer = request().send().await;
        let undecided = answer.status == 500
            || answer
                .errors()
                .iter()
                .any(|(code, _)| code == "idempotency_in_progress");
        (!undecided).then_some(answer)
    })
    .await
}

#[tokio::test]
async fn a_lost_answer_is_found_out() {
    let (world, link, trader, offer) = prepared().await;
    link.lose(LostCommit::Done);
    let answer = patch(&world, &trader, &offer, Some("done")).send().await;
    link.lost().await;
    assert_eq!(answer.expect(200).json()["stock"], 3);
    let again = patch(&world, &trader, &offer, Some("done"))
        .send()
        .await
        .expect(200);
    assert_eq!(again.must("idempotent-replayed"), "true");
    assert_eq!(world.told("offer.stock_changed", &offer).await, 1);
    let order = world.paid_order(&trader).await;
    link.lose(LostCommit::Done);
    let ship = || {
        world
            .shipping(&trader.token, &order.id, &parcel("AAAA1"))
            .header("idempotency-key", "ship")
    };
    let first = ship().send().await.expect(201);
    link.lost().await;
    assert_eq!(ship().send().await.expect(201).bytes, first.bytes);
    assert_eq!(world.mails(&order.id).await, 1);
    link.lose(LostCommit::Done);
    let deliver = || {
        world
            .office(Method::POST, &format!("/orders/{}/delivery", order.id))
            .header("idempotency-key", "deliver")
    };
    let first = deliver().send().await.expect(200);
    link.lost().await;
    assert_eq!(deliver().send().await.expect(200).bytes, first.bytes);
}

#[tokio::test]
async fn a_commit_that_never_arrived_did_nothing_and_releases_the_key() {
    let (world, link, trader, offer) = prepared().await;
    link.lose(LostCommit::Undone);
    let answer = patch(&world, &trader, &offer, Some("undone")).send().await;
    link.lost().await;
    // It is an honest 500, or was done again within the request.
    assert!(matches!(answer.status, 200 | 500), "{answer:?}");
    assert_eq!(
        stock(&world, &offer).await,
        if answer.status == 200 { 3 } else { 7 }
    );
    let settled = patch(&world, &trader, &offer, Some("undone"))
        .send()
        .await
        .expect(200);
    assert_eq!(
        settled.header("idempotent-replayed").is_some(),
        answer.status == 200
    );
    assert_eq!(stock(&world, &offer).await, 3);
    assert_eq!(world.told("offer.stock_changed", &offer).await, 1);
}

#[tokio::test]
async fn without_a_key_nothing_is_done_twice_and_nothing_is_claimed_that_was_not() {
    let (world, link, trader, _) = prepared().await;
    for loss in [LostCommit::Done, LostCommit::Undone] {
        let order = world.paid_order(&trader).await;
        link.lose(loss);
        let answer = world.ship(&trader.token, &order.id, &parcel("AAAA1")).await;
        link.lost().await;
        let seen = eventually("the order", async || {
            let answer = world
                .get(&trader.token, &format!("/v1/orders/{}", order.id))
                .await;
            (answer.status == 200).then(|| answer.json())
        })
        .await;
        let mails = world.mails(&order.id).await;
        if answer.status == 201 {
            assert_eq!((&seen["status"], mails), (&json!("shipped"), 1));
        } else {
            answer.refused(500, "internal_error");
            assert!(mails <= 1);
            assert_eq!(seen["status"] == "shipped", mails == 1);
        }
        if loss == LostCommit::Undone && answer.status == 500 {
            assert_eq!(seen["status"], "processing");
        }
    }
}

/// The way is blocked in the moment of the COMMIT, so that the request has to be answered without knowing.
async fn nobody_can_know(loss: LostCommit) {
    let (world, link, trader, offer) = prepared().await;
    let clock = world.database.control_clock().await;
    link.lose_and_block(loss);
    let answer = patch(&world, &trader, &offer, Some("k")).send().await;
    link.lost().await;
    answer.refused(500, "internal_error");
    link.unblock();
    world.server.ready().await;
    let repeat = || patch(&world, &trader, &offer, Some("k"));
    if loss == LostCommit::Done {
        // What was done is found as soon as the database is.
        let found = settled(repeat).await.expect(200);
        assert_eq!(found.must("idempotent-replayed"), "true");
    } else {
        let held = eventually("the database", async || {
            Some(repeat().send().await).filter(|answer| answer.status != 500)
        })
        .await;
        if held.status == 409 {
            held.refused(409, "idempotency_in_progress");
            assert_eq!(stock(&world, &offer).await, 7);
            clock.advance(TimeDelta::seconds(61)).await;
            settled(repeat).await.expect(200);
        } else {
            // Released meanwhile behind the row's lock, which is as good.
            held.expect(200);
        }
    }
    assert_eq!(stock(&world, &offer).await, 3);
    eventually("the feed", async || {
        (world.told("offer.stock_changed", &offer).await > 0).then_some(())
    })
    .await;
    assert_eq!(world.told("offer.stock_changed", &offer).await, 1);
}

#[tokio::test]
async fn a_commit_that_was_done_is_found_as_soon_as_the_database_is() {
    nobody_can_know(LostCommit::Done).await;
}

#[tokio::test]
async fn a_key_stays_taken_while_nobody_can_know() {
    nobody_can_know(LostCommit::Undone).await;
}
