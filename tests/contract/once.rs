//! Exactly once, however many ask at a time; and no 500 when they stand in each other's way.

use std::{collections::BTreeMap, sync::Arc};

use blackbox::{Expect, Trader, World, eventually, line, order_body, parcel};
use serde_json::json;
use testkit::{Answer, Request};

use crate::PROGRAM;

/// A world without a limit of requests.
async fn world() -> Arc<World> {
    let unlimited =
        |options: testkit::ServerOptions| options.set("SELLER_API__RATE_LIMIT__DEFAULT", 1_000_000);
    Arc::new(World::with(PROGRAM, unlimited).await)
}

/// Sends all at a time.
async fn all(requests: impl IntoIterator<Item = Request>) -> Vec<Answer> {
    let running: Vec<_> = requests
        .into_iter()
        .map(|request| tokio::spawn(request.send()))
        .collect();
    let mut answers = Vec::new();
    for answer in running {
        answers.push(answer.await.unwrap());
    }
    answers
}

/// How often which status and code came.
fn outcomes(answers: &[Answer]) -> BTreeMap<(u16, String), usize> {
    let mut outcomes = BTreeMap::new();
    for answer in answers {
        let code = answer
            .errors()
            .first()
            .map(|(code, _)| code.clone())
            .unwrap_or_default();
        *outcomes.entry((answer.status, code)).or_default() += 1;
    }
    outcomes
}

async fn shipped_once(world: &World, trader: &Trader, order: &str) {
    eventually("the feed", async || {
        (world.told("order.shipped", order).await > 0).then_some(())
    })
    .await;
    assert_eq!(world.told("order.shipped", order).await, 1);
    assert_eq!(world.mails(order).await, 1);
    assert_eq!(world.order(&trader.token, order).await["status"], "shipped");
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_shipments_of_one_order_without_keys() {
    let world = world().await;
    let trader = world.trader().await;
    let order = world.paid_order(&trader).await;
    let answers =
        all((0..60).map(|n| world.shipping(&trader.token, &order.id, &parcel(&format!("PARCEL-{n}"))))).await;
    let expected = [
        ((201, String::new()), 1),
        ((409, "already_shipped".to_owned()), 59),
    ];
    assert_eq!(outcomes(&answers), expected.into());
    shipped_once(&world, &trader, &order.id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_shipments_of_one_order_with_one_key() {
    let world = world().await;
    let trader = world.trader().await;
    let order = world.paid_order(&trader).await;
    let ship = || {
        world
            .shipping(&trader.token, &order.id, &parcel("PARCEL-1"))
            .header("idempotency-key", "k")
    };
    let answers = all((0..60).map(|_| ship())).await;
    let outcomes = outcomes(&answers);
    let known = |(status, code): &(u16, String)| *status == 201 || code == "idempotency_in_progress";
    assert!(outcomes.keys().all(known), "{outcomes:?}");
    let made: Vec<_> = answers.iter().filter(|answer| answer.status == 201).collect();
    assert_eq!(
        made.iter()
            .filter(|answer| answer.header("idempotent-replayed").is_none())
            .count(),
        1,
        "{outcomes:?}"
    );
    assert!(made.iter().all(|answer| answer.bytes == made[0].bytes));
    shipped_once(&world, &trader, &order.id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_shipments_of_one_order_each_with_a_key_of_its_own() {
    let world = world().await;
    let trader = world.trader().await;
    let order = world.paid_order(&trader).await;
    let ship = |n: usize| {
        let request = world.shipping(&trader.token, &order.id, &parcel("PARCEL-1"));
        request.header("idempotency-key", &format!("key-{n}"))
    };
    let first = all((0..60).map(ship)).await;
    let expected: BTreeMap<_, _> = [
        ((201, String::new()), 1),
        ((409, "already_shipped".to_owned()), 59),
    ]
    .into();
    assert_eq!(outcomes(&first), expected);
    let again = all((0..60).map(ship)).await;
    assert_eq!(
        outcomes(&again),
        expected,
        "the winner's key replays, the others are free and refused again"
    );
    shipped_once(&world, &trader, &order.id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_patches_with_one_key_have_one_effect() {
    let world = world().await;
    let trader = world.trader().await;
    let offer = world.any_offer(&trader.seller, json!({})).await;
    let body = json!({"stock": 3, "price": {"amount": 77, "currency": "PLN"}});
    let patch = || {
        world
            .patching(&trader.token, &offer, &body)
            .header("idempotency-key", "k")
    };
    let answers = all((0..20).map(|_| patch())).await;
    let known = |(status, code): &(u16, String)| *status == 200 || code == "idempotency_in_progress";
    assert!(outcomes(&answers).keys().all(known), "{:?}", outcomes(&answers));
    let fresh = answers
        .iter()
        .filter(|answer| answer.status == 200 && answer.header("idempotent-replayed").is_none());
    assert_eq!(fresh.count(), 1);
    eventually("the feed", async || {
        (world.told("offer.price_changed", &offer).await > 0).then_some(())
    })
    .await;
    assert_eq!(
        [
            world.told("offer.price_changed", &offer).await,
            world.told("offer.stock_changed", &offer).await
        ],
        [1, 1]
    );
    assert_eq!(
        patch().send().await.expect(200).must("idempotent-replayed"),
        "true"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn stock_never_goes_below_zero() {
    let world = world().await;
    let traders = [world.trader().await, world.trader().await];
    let mut offers = Vec::new();
    for trader in &traders {
        offers.push(world.any_offer(&trader.seller, json!({"stock": 30})).await);
    }
    let mut lines: Vec<_> = traders
        .iter()
        .zip(&offers)
        .map(|(trader, offer)| line(&trader.seller, offer, 1))
        .collect();
    let requests = (0..80).map(|n| {
        // Some name the sellers the other way round.
        lines.reverse();
        let of_both = if n % 4 == 0 { &lines[..1] } else { &lines[..] };
        world
            .office(reqwest::Method::POST, "/orders")
            .json(&order_body(of_both, json!({})))
    });
    let answers = all(requests.collect::<Vec<_>>()).await;
    let outcomes = outcomes(&answers);
    assert!(
        outcomes
            .keys()
            .all(|(status, code)| *status == 201 || code == "insufficient_stock"),
        "{outcomes:?}"
    );
    for (trader, offer) in traders.iter().zip(&offers) {
        let sold = "select coalesce(sum((item->>'quantity')::int), 0) from seller_orders, json_array_elements(items) item
            where seller_id::text = $1";
        let sold = world.count(sold, &trader.seller.id).await;
        let left = world.fed_offer(&trader.seller, offer).await["stock"]
            .as_i64()
            .unwrap();
        assert!(left >= 0);
        assert_eq!(left + sold, 30, "{outcomes:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_moves_over_orders_of_several_sellers_end_consistently() {
    let world = world().await;
    let traders = [world.trader().await, world.trader().await, world.trader().await];
    let mut offers = Vec::new();
    for trader in &traders {
        offers.push(world.any_offer(&trader.seller, json!({"stock": 1000})).await);
    }
    let mut orders = Vec::new();
    for n in 0..8 {
        let mut lines: Vec<_> = traders
            .iter()
            .zip(&offers)
            .map(|(trader, offer)| line(&trader.seller, offer, 1))
            .collect();
        lines.rotate_left(n % 3);
        orders.push(world.unpaid(&lines, json!({})).await);
    }
    let mut requests = Vec::new();
    for (n, order) in orders.iter().enumerate() {
        for trader in &traders {
            for step in ["payment", "cancellation", "delivery"] {
                if step == "cancellation" && n % 2 == 0 {
                    continue;
                }
                requests.push(world.office(reqwest::Method::POST, &format!("/orders/{}/{step}", order.id)));
            }
            let path = format!("/orders/{}/shipment", order.id);
            requests.push(world.office(reqwest::Method::POST, &path).json(&parcel("ALL-1")));
            let part = json!({"seller_id": trader.seller.id, "carrier": "gls", "tracking_number": "PART-1"});
            requests.push(world.office(reqwest::Method::POST, &path).json(&part));
        }
    }
    let outcomes = outcomes(&all(requests).await);
    assert!(
        outcomes
            .keys()
            .all(|(status, _)| matches!(status, 200 | 201 | 409)),
        "{outcomes:?}"
    );
    let mut taken = 0;
    for order in &orders {
        let whole = world.whole_order(&order.id).await;
        let parts = whole["parts"].as_array().unwrap();
        let statuses: Vec<_> = parts
            .iter()
            .map(|part| part["status"].as_str().unwrap())
            .collect();
        let cancelled = statuses.iter().filter(|status| **status == "cancelled").count();
        assert!(
            cancelled == 0 || cancelled == 3,
            "whole or not at all: {statuses:?}"
        );
        taken += i64::from(cancelled == 0);
    }
    for (trader, offer) in traders.iter().zip(&offers) {
        assert_eq!(
            world.fed_offer(&trader.seller, offer).await["stock"],
            1000 - taken
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_two_writers_on_twenty_offers_and_orders_see_no_500() {
    let world = world().await;
    let traders = [world.trader().await, world.trader().await];
    let mut offers = Vec::new();
    for n in 0..20 {
        offers.push(
            world
                .any_offer(&traders[n % 2].seller, json!({"stock": 100_000}))
                .await,
        );
    }
    let offers = Arc::new(offers);
    let writers = (0..32).map(|writer: usize| {
        let (world, traders, offers) = (Arc::clone(&world), traders.clone(), Arc::clone(&offers));
        tokio::spawn(async move {
            let mut statuses = Vec::new();
            for round in 0..6 {
                let at = |n: usize| (writer * 7 + round * 3 + n * 11) % 20;
                let lines: Vec<_> = (0..3).map(|n| line(&traders[at(n) % 2].seller, &offers[at(n)], 1)).collect();
                let placed = world.place(&order_body(&lines, json!({}))).await;
                let id = placed.json()["order_id"].as_str().unwrap_or_default().to_owned();
                let trader = &traders[at(0) % 2];
                let body = json!({"stock": 100_000 + writer, "status": if round % 2 == 0 { "draft" } else { "published" }});
                let key = format!("{writer}-{round}");
                let patching = world.patching(&trader.token, &offers[at(0)], &body).header("idempotency-key", &key);
                let (pay, cancel) = (world.settle(&id, "payment"), world.settle(&id, "cancellation"));
                let (patch, pay, cancel) = tokio::join!(patching.send(), pay, cancel);
                let feed = world.put(&trader.seller, &offers[at(0)], &blackbox::offer_body(blackbox::number_of(&json!(offers[at(0)])), json!({"stock": 100_000}))).await;
                let ship = world.ship(&trader.token, &id, &parcel("AAAA1")).await;
                statuses.extend([placed.status, patch.status, pay.status, cancel.status, feed.status, ship.status]);
            }
            statuses
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        let statuses = writer.await.unwrap();
        assert!(
            statuses.iter().all(|status| matches!(status, 200 | 201 | 409)),
            "{statuses:?}"
        );
    }
}
