//! Crowds that stand in each other's way: no 500, and no stock below zero.

use std::sync::Arc;

use blackbox::{line, number_of, offer_body, order_body, parcel};
use serde_json::json;

use crate::once::{all, outcomes, world};

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
        let sold = "select coalesce(sum((item->>'quantity')::int), 0)
            from seller_orders, json_array_elements(items) item where seller_id::text = $1";
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
                let item = |n: usize| line(&traders[at(n) % 2].seller, &offers[at(n)], 1);
                let lines: Vec<_> = (0..3).map(item).collect();
                let placed = world.place(&order_body(&lines, json!({}))).await;
                let id = placed.json()["order_id"].as_str().unwrap_or_default().to_owned();
                let trader = &traders[at(0) % 2];
                let status = if round % 2 == 0 { "draft" } else { "published" };
                let body = json!({"stock": 100_000 + writer, "status": status});
                let patching = world.patching(&trader.token, &offers[at(0)], &body);
                let patching = patching.header("idempotency-key", &format!("{writer}-{round}"));
                let (pay, cancel) = (world.settle(&id, "payment"), world.settle(&id, "cancellation"));
                let (patch, pay, cancel) = tokio::join!(patching.send(), pay, cancel);
                let whole = offer_body(number_of(&json!(offers[at(0)])), json!({"stock": 100_000}));
                let feed = world.put(&trader.seller, &offers[at(0)], &whole).await;
                let ship = world.ship(&trader.token, &id, &parcel("AAAA1")).await;
                statuses.extend([placed, patch, pay, cancel, feed, ship].map(|answer| answer.status));
            }
            statuses
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        let statuses = writer.await.unwrap();
        assert!(
            statuses.iter().all(|status| matches!(status, 200 | 201 | 409)),
            "{statuses:?}, for which the log says {:?}",
            failures(&world.server.log())
        );
    }
}

/// What the log tells of why requests failed.
fn failures(log: &str) -> Vec<&str> {
    log.lines().filter(|line| line.contains("\"cause\"")).collect()
}
