//! Concurrent requests for the same rows: exactly one effect, no 500, and no stock below zero.

use std::collections::BTreeMap;

use blackbox::{Expect, Trader, World, at_once, keyed, line, order_body, parcel};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::Answer;

use crate::{unlimited, world_with};

/// Counts by status and code.
fn outcomes(answers: &[Answer]) -> BTreeMap<(u16, String), usize> {
    let mut outcomes = BTreeMap::new();
    for answer in answers {
        let code = answer.errors().first().map(|(code, _)| code.clone());
        *outcomes
            .entry((answer.status, code.unwrap_or_default()))
            .or_default() += 1;
    }
    outcomes
}

/// Traders with one offer each, and an order line for each offer.
pub(crate) async fn traders(world: &World, count: usize, stock: u32) -> (Vec<(Trader, String)>, Vec<Value>) {
    let (mut traders, mut lines) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let trader = world.trader().await;
        let offer = world.any_offer(&trader.seller, json!({"stock": stock})).await;
        lines.push(line(&trader.seller, &offer, 1));
        traders.push((trader, offer));
    }
    (traders, lines)
}

#[tokio::test(flavor = "multi_thread")]
async fn stock_never_goes_below_zero() {
    let world = unlimited().await;
    let (traders, mut lines) = traders(&world, 2, 7).await;
    let requests = (0..20).map(|n| {
        // Some list the sellers in reverse order.
        lines.reverse();
        let of_both = if n % 4 == 0 { &lines[..1] } else { &lines[..] };
        world
            .office(Method::POST, "/orders")
            .json(&order_body(of_both, json!({})))
    });
    let outcomes = outcomes(&at_once(requests).await);
    let fine = |(status, code): &(u16, String)| *status == 201 || code == "insufficient_stock";
    assert!(outcomes.keys().all(fine), "{outcomes:?}");
    let mut lefts = Vec::new();
    for (trader, offer) in &traders {
        let sold = "select coalesce(sum((item->>'quantity')::int), 0)
            from seller_orders, json_array_elements(items) item where seller_id::text = $1";
        let sold = world.count(sold, &[&trader.seller.id]).await;
        let left = world.stock(&trader.seller, offer).await.as_i64().unwrap();
        assert!(left >= 0);
        assert_eq!(left + sold, 7, "{outcomes:?}");
        lefts.push(left);
    }
    assert!(lefts.contains(&0), "one is sold out: {outcomes:?}");
}

async fn shipped_once(world: &World, trader: &Trader, order: &str) {
    assert_eq!(world.count_in_feed("order.shipped", order).await, 1);
    assert_eq!(world.mails(order).await, 1);
    assert_eq!(world.order(&trader.token, order).await["status"], "shipped");
}

/// Asserts that one of the requests with the same key was executed. The others got its answer, or that it is
/// in progress.
fn one_effect(answers: &[Answer], status: u16) {
    let outcomes = outcomes(answers);
    let known = |(got, code): &(u16, String)| *got == status || code == "idempotency_in_progress";
    assert!(outcomes.keys().all(known), "{outcomes:?}");
    let made: Vec<_> = answers.iter().filter(|answer| answer.status == status).collect();
    let fresh = made.iter().filter(|answer| !answer.is_replayed());
    assert_eq!(fresh.count(), 1, "{outcomes:?}");
    assert!(made.iter().all(|answer| answer.bytes == made[0].bytes));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_forty_shipments_of_an_order_succeeds_without_keys_or_with_different_ones() {
    let world = unlimited().await;
    let trader = world.trader().await;
    let expected = [
        ((201, String::new()), 1),
        ((409, "already_shipped".to_owned()), 39),
    ];
    // The winner's key replays its answer. The other keys are free, and a repeat is rejected again.
    for rounds in [1, 2] {
        let order = world.paid_order(&trader).await;
        let ship = |n: usize| {
            let request = world.shipping(&trader.token, &order.id, &parcel("PARCEL-1"));
            if rounds == 1 {
                request
            } else {
                keyed(request, &format!("key-{n}"))
            }
        };
        for _ in 0..rounds {
            let answers = at_once((0..40).map(ship)).await;
            assert_eq!(outcomes(&answers), expected.clone().into());
        }
        shipped_once(&world, &trader, &order.id).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_requests_with_one_key_have_one_effect() {
    let world = unlimited().await;
    let trader = world.trader().await;
    let order = world.paid_order(&trader).await;
    let ship = || keyed(world.shipping(&trader.token, &order.id, &parcel("PARCEL-1")), "s");
    one_effect(&at_once((0..60).map(|_| ship())).await, 201);
    shipped_once(&world, &trader, &order.id).await;
    let offer = world.any_offer(&trader.seller, json!({})).await;
    let body = json!({"stock": 3, "price": {"amount": 77, "currency": "PLN"}});
    let patch = || keyed(world.patching(&trader.token, &offer, &body), "p");
    one_effect(&at_once((0..20).map(|_| patch())).await, 200);
    for kind in ["offer.price_changed", "offer.stock_changed"] {
        assert_eq!(world.count_in_feed(kind, &offer).await, 1);
    }
    assert!(patch().send().await.expect(200).is_replayed());
}

/// D142: an application's changes have a quarter of the pool at all its sellers.
#[tokio::test]
async fn an_application_that_waits_at_its_sellers_leaves_connections_to_another() {
    let world = world_with(&[("DATABASE__POOL_SIZE", "8")]).await;
    let partner = world.partner(&world.seller().await, &["offers:write"]).await;
    let (mut locked, mut patches) = (Vec::new(), Vec::new());
    for stock in 1..=3 {
        let mut member = world.member().await;
        let offer = world.any_offer(&member.seller, json!({"stock": 20})).await;
        let pair = world.pair(&mut member.browser, &partner, "offers:write").await;
        let own = world
            .personal_token(&member.seller, &["offers:write"])
            .await
            .token;
        let patch = |token: &str| world.patching(token, &offer, &json!({"stock": stock}));
        patches.push((patch(&pair.access), patch(&own)));
        if stock < 3 {
            let seller = member.seller.id;
            let lock =
                format!("select from offers where seller_id = '{seller}' and id = '{offer}' for update");
            locked.push(world.open_transaction(&lock).await);
        }
    }
    let (third, own) = patches.pop().unwrap();
    let waiting = patches.into_iter().map(|(patch, _)| tokio::spawn(patch.send()));
    let waiting: Vec<_> = waiting.collect();
    world.waiters(2).await;
    let third = tokio::spawn(third.send());
    for _ in 0..3 {
        own.clone().send().await.expect(200);
    }
    assert!(!third.is_finished());
    drop(locked);
    third.await.unwrap().expect(200);
    for patch in waiting {
        patch.await.unwrap().expect(200);
    }
}
