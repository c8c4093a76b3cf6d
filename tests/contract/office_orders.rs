//! `POST /orders`: a buyer's order is placed, and stock goes down with it.

use blackbox::{Expect, Trader, World, entry, line, merged, offer_id, order_body};
use serde_json::{Value, json};

use crate::world;

async fn prepared(stock: Value) -> (World, Trader, String) {
    let world = world().await;
    let trader = world.trader().await;
    let offer = world.any_offer(&trader.seller, json!({"stock": stock})).await;
    (world, trader, offer)
}

async fn stock(world: &World, trader: &Trader, offer: &str) -> Value {
    world.fed_offer(&trader.seller, offer).await["stock"].clone()
}

#[tokio::test]
async fn stock_goes_down_and_updated_at_with_it() {
    let (world, trader, offer) = prepared(json!(5)).await;
    let before = world.fed_offer(&trader.seller, &offer).await;
    let uncounted = world.any_offer(&trader.seller, json!({"stock": null})).await;
    let lines = [
        line(&trader.seller, &offer, 5),
        line(&trader.seller, &uncounted, 1_000_000),
    ];
    let made = world.place(&order_body(&lines, json!({}))).await.expect(201);
    assert_eq!(made.must("content-type"), "application/json");
    let made = made.json();
    assert_eq!(made.as_object().unwrap().len(), 2, "{made}");
    let number = made["order_number"].as_str().unwrap();
    assert!(
        number
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-'),
        "{number}"
    );
    let after = world.fed_offer(&trader.seller, &offer).await;
    assert_eq!(after["stock"], 0);
    assert!(after["updated_at"].as_str() > before["updated_at"].as_str());
    assert_eq!(stock(&world, &trader, &uncounted).await, Value::Null);
}

#[tokio::test]
async fn too_little_stock_names_every_short_line_and_takes_nothing() {
    let (world, trader, offer) = prepared(json!(2)).await;
    let other = world.trader().await;
    let theirs = world.any_offer(&other.seller, json!({"stock": 0})).await;
    let enough = world.any_offer(&other.seller, json!({})).await;
    let lines = [
        line(&trader.seller, &offer, 3),
        line(&other.seller, &enough, 1),
        line(&other.seller, &theirs, 1),
    ];
    let answer = world
        .place(&order_body(&lines, json!({"order_number": "PL-SHORT"})))
        .await;
    answer.is_problem(
        409,
        &[
            entry("insufficient_stock", "items[0].quantity"),
            entry("insufficient_stock", "items[2].quantity"),
        ],
    );
    assert_eq!(stock(&world, &trader, &offer).await, 2);
    assert_eq!(stock(&world, &other, &enough).await, 7);
    world
        .office_get("/orders/PL-SHORT")
        .await
        .refused(404, "not_found");
    // A test order takes nothing, so it can lack nothing.
    world
        .place(&order_body(&lines, json!({"is_test": true})))
        .await
        .expect(201);
    assert_eq!(stock(&world, &trader, &offer).await, 2);
}

#[tokio::test]
async fn unknown_sellers_and_offers_and_repeated_lines_are_told_by_their_place() {
    let (world, trader, offer) = prepared(json!(5)).await;
    let other = world.trader().await;
    let nobody = blackbox::Seller {
        id: offer_id(1),
        seller_no: 0,
        email: String::new(),
    };
    let good = line(&trader.seller, &offer, 1);
    for (lines, paths) in [
        (
            vec![good.clone(), line(&trader.seller, &offer_id(999_999), 1)],
            vec!["items[1].offer_id"],
        ),
        (
            vec![line(&other.seller, &offer, 1), good.clone()],
            vec!["items[0].offer_id"],
        ),
        (
            vec![good.clone(), line(&nobody, &offer, 1)],
            vec!["items[1].offer_id"],
        ),
        (
            vec![good.clone(), line(&trader.seller, &offer, 2)],
            vec!["items[1].offer_id"],
        ),
        (
            vec![
                line(&nobody, &offer, 1),
                good.clone(),
                line(&trader.seller, &offer_id(999_998), 1),
            ],
            vec!["items[0].offer_id", "items[2].offer_id"],
        ),
    ] {
        let answer = world.place(&order_body(&lines, json!({}))).await;
        assert_eq!(answer.status, 400, "{paths:?}: {answer:?}");
        answer.invalid(&paths);
    }
    assert_eq!(stock(&world, &trader, &offer).await, 5);
}

#[tokio::test]
async fn the_shape_of_an_order() {
    let (world, trader, offer) = prepared(json!(5)).await;
    let good = line(&trader.seller, &offer, 1);
    let with = |changes: Value| order_body(std::slice::from_ref(&good), changes);
    let item = |changes: Value| with(json!({"items": [merged(good.clone(), changes)]}));
    for (body, path) in [
        (with(json!({"items": []})), "items"),
        (with(json!({"items": null})), "items"),
        (with(json!({"items": vec![&good; 1001]})), "items"),
        (item(json!({"quantity": 0})), "items[0].quantity"),
        (item(json!({"quantity": -1})), "items[0].quantity"),
        (item(json!({"quantity": "1"})), "items[0].quantity"),
        (item(json!({"quantity": 1.0})), "items[0].quantity"),
        (item(json!({"quantity": null})), "items[0].quantity"),
        (item(json!({"seller_id": "x"})), "items[0].seller_id"),
        (item(json!({"offer_id": 7})), "items[0].offer_id"),
        (
            item(json!({"unit_price": {"amount": -1, "currency": "PLN"}})),
            "items[0].unit_price.amount",
        ),
        (
            item(json!({"unit_price": {"amount": 1, "currency": "EUR"}})),
            "items[0].unit_price.currency",
        ),
        (item(json!({"colour": "red"})), "items[0].colour"),
        (
            with(json!({"shipping_address": {"city": "Warszawa"}})),
            "shipping_address.country",
        ),
        (
            with(json!({"shipping_address": {"country": null}})),
            "shipping_address.country",
        ),
        (
            with(json!({"shipping_address": {"country": "PL", "zip": "1"}})),
            "shipping_address.zip",
        ),
        (with(json!({"buyer": {"name": 7}})), "buyer.name"),
        (with(json!({"buyer": {"age": 7}})), "buyer.age"),
        (with(json!({"is_test": "yes"})), "is_test"),
        (with(json!({"order_number": ""})), "order_number"),
        (with(json!({"order_number": "pl-1"})), "order_number"),
        (with(json!({"order_number": "PL 1"})), "order_number"),
        (
            with(json!({"order_number": "01900000-0000-7000-8000-000000000001"})),
            "order_number",
        ),
        (
            with(json!({"order_number": "01900000-ABCD-7000-8000-000000000001"})),
            "order_number",
        ),
        (with(json!({"status": "paid"})), "status"),
    ] {
        let answer = world.place(&body).await;
        assert_eq!(answer.status, 400, "{path}: {answer:?}");
        answer.invalid(&[path]);
    }
    for text in ["", "{", "[]", "null"] {
        let request = world
            .office(reqwest::Method::POST, "/orders")
            .header("content-type", "application/json");
        assert_eq!(
            request.body(text).send().await.code(),
            "validation_error",
            "{text}"
        );
    }
    assert_eq!(stock(&world, &trader, &offer).await, 5);
}

#[tokio::test]
async fn numbers_are_given_or_made_and_never_twice() {
    let (world, trader, offer) = prepared(json!(null)).await;
    let lines = [line(&trader.seller, &offer, 1)];
    let first = world.unpaid(&lines, json!({"order_number": "PL-1"})).await;
    assert_eq!(first.number, "PL-1");
    let taken = world
        .place(&order_body(&lines, json!({"order_number": "PL-1"})))
        .await;
    taken.is_problem(409, &[entry("conflict", "order_number")]);
    // Also among the orders of other sellers.
    let other = world.trader().await;
    let theirs = world.any_offer(&other.seller, json!({})).await;
    let taken = world
        .place(&order_body(
            &[line(&other.seller, &theirs, 1)],
            json!({"order_number": "PL-1"}),
        ))
        .await;
    taken.is_problem(409, &[entry("conflict", "order_number")]);
    assert_eq!(stock(&world, &other, &theirs).await, 7);
    let mut numbers = std::collections::BTreeSet::new();
    for _ in 0..20 {
        assert!(numbers.insert(world.unpaid(&lines, json!({})).await.number));
    }
    for number in &numbers {
        world.order(&trader.token, number).await;
    }
}

#[tokio::test]
async fn the_whole_order_is_read_back_by_id_and_number() {
    let (world, trader, offer) = prepared(json!(5)).await;
    let other = world.trader().await;
    let theirs = world.any_offer(&other.seller, json!({})).await;
    let lines = [line(&trader.seller, &offer, 1), line(&other.seller, &theirs, 2)];
    let order = world.unpaid(&lines, json!({"order_number": "PL-77"})).await;
    let whole = world.whole_order(&order.id).await;
    assert_eq!(world.whole_order("PL-77").await, whole);
    assert_eq!(
        (&whole["order_id"], &whole["order_number"]),
        (&json!(order.id), &json!("PL-77"))
    );
    assert_eq!(
        (&whole["is_test"], &whole["status"]),
        (&json!(false), &json!("pending"))
    );
    let parts = whole["parts"].as_array().unwrap();
    let mut sellers: Vec<_> = parts
        .iter()
        .map(|part| part["seller_id"].as_str().unwrap())
        .collect();
    sellers.sort_unstable();
    let mut expected = [trader.seller.id.as_str(), other.seller.id.as_str()];
    expected.sort_unstable();
    assert_eq!(sellers, expected);
    let text = whole.to_string();
    assert!(
        text.contains("ewa@buyer.example"),
        "the marketplace knows its own buyer: {text}"
    );
    for missing in ["PL-78", &trader.seller.id, "%00"] {
        world
            .office_get(&format!("/orders/{missing}"))
            .await
            .refused(404, "not_found");
    }
}

#[tokio::test]
async fn a_closed_door_stays_closed() {
    let (world, trader, offer) = prepared(json!(5)).await;
    let body = order_body(&[line(&trader.seller, &offer, 1)], json!({}));
    let url = format!("{}/orders", world.server.backoffice_url);
    for token in [&trader.token, "ps_op_nothing"] {
        world
            .client
            .post(&url)
            .bearer(token)
            .json(&body)
            .send()
            .await
            .refused(401, "unauthorized");
        world
            .client
            .get(&format!("{}/changes", world.server.backoffice_url))
            .bearer(token)
            .send()
            .await
            .refused(401, "unauthorized");
    }
    world
        .client
        .post(&url)
        .json(&body)
        .send()
        .await
        .refused(401, "unauthorized");
    assert_eq!(stock(&world, &trader, &offer).await, 5);
}
