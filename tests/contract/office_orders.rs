//! `POST /orders`: places a buyer's order and reduces the stock.

use std::collections::BTreeSet;

use blackbox::{Expect, Trader, World, entry, line, merged, offer_id, order_body, sorted, text};
use reqwest::Method;
use serde_json::{Value, json};

use crate::world;

async fn prepared(stock: Value) -> (World, Trader, String) {
    let world = world().await;
    let trader = world.trader().await;
    let offer = world.any_offer(&trader.seller, json!({"stock": stock})).await;
    (world, trader, offer)
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
    let number = text(&made, "order_number");
    let fine = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-';
    assert!(number.chars().all(fine), "{number}");
    let after = world.fed_offer(&trader.seller, &offer).await;
    assert_eq!(after["stock"], 0);
    assert!(after["updated_at"].as_str() > before["updated_at"].as_str());
    assert_eq!(world.stock(&trader.seller, &uncounted).await, Value::Null);
}

#[tokio::test]
async fn lines_that_cannot_be_sold_are_told_by_their_places_and_nothing_is_taken() {
    let (world, trader, offer) = prepared(json!(2)).await;
    let other = world.trader().await;
    let theirs = world.any_offer(&other.seller, json!({"stock": 0})).await;
    let enough = world.any_offer(&other.seller, json!({})).await;
    let lines = [
        line(&trader.seller, &offer, 3),
        line(&other.seller, &enough, 1),
        line(&other.seller, &theirs, 1),
    ];
    let short = order_body(&lines, json!({"order_number": "PL-SHORT"}));
    let short_lines =
        ["items[0].quantity", "items[2].quantity"].map(|path| entry("insufficient_stock", path));
    world.place(&short).await.is_problem(409, &short_lines);
    assert_eq!(world.stock(&other.seller, &enough).await, 7);
    world
        .office_get("/orders/PL-SHORT")
        .await
        .refused(404, "not_found");
    // A test order takes no stock, so the stock cannot be too low.
    let test = order_body(&lines, json!({"is_test": true}));
    world.place(&test).await.expect(201);
    let mut nobody = trader.seller.clone();
    nobody.id = offer_id(1);
    let good = || line(&trader.seller, &offer, 1);
    let unknown = |n| line(&trader.seller, &offer_id(n), 1);
    for (lines, paths) in [
        (vec![good(), unknown(999_999)], "items[1].offer_id"),
        (vec![line(&other.seller, &offer, 1), good()], "items[0].offer_id"),
        (vec![good(), line(&nobody, &offer, 1)], "items[1].offer_id"),
        (vec![good(), line(&trader.seller, &offer, 2)], "items[1].offer_id"),
        (
            vec![line(&nobody, &offer, 1), good(), unknown(999_998)],
            "items[0].offer_id items[2].offer_id",
        ),
    ] {
        let answer = world.place(&order_body(&lines, json!({}))).await;
        assert_eq!(answer.status, 400, "{paths:?}: {answer:?}");
        answer.invalid(&paths.split(' ').collect::<Vec<_>>());
    }
    assert_eq!(world.stock(&trader.seller, &offer).await, 2);
}

#[tokio::test]
async fn the_shape_of_an_order() {
    let (world, trader, offer) = prepared(json!(5)).await;
    let good = line(&trader.seller, &offer, 1);
    let refused = async |changes: Value, path: &str| {
        let body = order_body(std::slice::from_ref(&good), changes);
        let answer = world.place(&body).await;
        assert_eq!(answer.status, 400, "{path}: {answer:?}");
        answer.invalid(&[path]);
    };
    for (item, path) in [
        (json!({"quantity": 0}), "quantity"),
        (json!({"quantity": -1}), "quantity"),
        (json!({"quantity": "1"}), "quantity"),
        (json!({"quantity": 1.0}), "quantity"),
        (json!({"quantity": null}), "quantity"),
        (json!({"seller_id": "x"}), "seller_id"),
        (json!({"offer_id": 7}), "offer_id"),
        (
            json!({"unit_price": {"amount": -1, "currency": "PLN"}}),
            "unit_price.amount",
        ),
        (
            json!({"unit_price": {"amount": 1, "currency": "EUR"}}),
            "unit_price.currency",
        ),
        (json!({"colour": "red"}), "colour"),
    ] {
        let items = json!({"items": [merged(good.clone(), item)]});
        refused(items, &format!("items[0].{path}")).await;
    }
    for (changes, path) in [
        (json!({"items": []}), "items"),
        (json!({"items": null}), "items"),
        (json!({"items": vec![&good; 1001]}), "items"),
        (
            json!({"shipping_address": {"city": "Warszawa"}}),
            "shipping_address.country",
        ),
        (
            json!({"shipping_address": {"country": null}}),
            "shipping_address.country",
        ),
        (
            json!({"shipping_address": {"country": "PL", "zip": "1"}}),
            "shipping_address.zip",
        ),
        (json!({"buyer": {"name": 7}}), "buyer.name"),
        (json!({"buyer": {"age": 7}}), "buyer.age"),
        (json!({"is_test": "yes"}), "is_test"),
        (json!({"status": "paid"}), "status"),
    ] {
        refused(changes, path).await;
    }
    let numbers = "|pl-1|PL 1|01900000-0000-7000-8000-000000000001|01900000-ABCD-7000-8000-000000000001";
    for number in numbers.split('|') {
        refused(json!({"order_number": number}), "order_number").await;
    }
    for text in ["", "{", "[]", "null"] {
        let request = world
            .office(Method::POST, "/orders")
            .header("content-type", "application/json");
        assert_eq!(
            request.body(text).send().await.code(),
            "validation_error",
            "{text}"
        );
    }
    assert_eq!(world.stock(&trader.seller, &offer).await, 5);
}

#[tokio::test]
async fn numbers_are_given_or_made_and_never_twice_and_the_order_is_read_back() {
    let (world, trader, offer) = prepared(json!(null)).await;
    let (other, theirs) = (world.trader().await, offer_id(1));
    world.offer(&other.seller, 1, json!({})).await;
    let lines = [line(&trader.seller, &offer, 1), line(&other.seller, &theirs, 2)];
    let order = world.unpaid(&lines, json!({"order_number": "PL-1"})).await;
    assert_eq!(order.number, "PL-1");
    // Also in the orders of other sellers.
    for line in &lines {
        let body = order_body(std::slice::from_ref(line), json!({"order_number": "PL-1"}));
        let taken = world.place(&body).await;
        taken.is_problem(409, &[entry("conflict", "order_number")]);
    }
    assert_eq!(world.stock(&other.seller, &theirs).await, 5);
    let mut numbers = BTreeSet::new();
    for _ in 0..20 {
        assert!(numbers.insert(world.ordered(&trader.seller, &[&offer]).await.number));
    }
    for number in &numbers {
        world.order(&trader.token, number).await;
    }
    let whole = world.whole_order(&order.id).await;
    assert_eq!(world.whole_order("PL-1").await, whole);
    let told = ["order_id", "order_number", "is_test", "status"].map(|field| whole[field].clone());
    assert_eq!(json!(told), json!([order.id, "PL-1", false, "pending"]));
    let parts = whole["parts"].as_array().unwrap().iter();
    let sellers: Value = parts.map(|part| part["seller_id"].clone()).collect();
    assert_eq!(
        sorted(&sellers),
        sorted(&json!([trader.seller.id, other.seller.id]))
    );
    assert!(
        whole.to_string().contains("ewa@buyer.example"),
        "the marketplace knows its own buyer"
    );
    for missing in ["PL-78", &trader.seller.id, "%00"] {
        let answer = world.office_get(&format!("/orders/{missing}")).await;
        answer.refused(404, "not_found");
    }
}
