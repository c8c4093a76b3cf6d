//! `POST /orders`: places a buyer's order and reduces the stock.

use std::collections::BTreeSet;

use blackbox::{
    Expect, Trader, World, all_invalid_changes, entry, line, merged, offer_id, order_body, sorted, text,
};
use serde_json::{Value, json};

use crate::world;

async fn prepared(stock: Value) -> (World, Trader, String) {
    let world = world().await;
    let trader = world.trader().await;
    let offer = world.any_offer(&trader.seller, json!({"stock": stock})).await;
    (world, trader, offer)
}

#[tokio::test]
async fn placing_an_order_reduces_stock_and_moves_updated_at() {
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
    assert!(number.starts_with("SO-") && number.chars().all(fine), "{number}");
    let after = world.fed_offer(&trader.seller, &offer).await;
    assert_eq!(after["stock"], 0);
    assert!(after["updated_at"].as_str() > before["updated_at"].as_str());
    assert_eq!(world.stock(&trader.seller, &uncounted).await, Value::Null);
}

#[tokio::test]
async fn lines_that_cannot_be_sold_are_named_and_no_stock_is_taken() {
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
    let missing = world.office_get("/orders/PL-SHORT").await;
    missing.refused(404, "not_found");
    // A test order takes no stock, so the stock cannot be too low.
    let test = order_body(&lines, json!({"is_test": true}));
    world.place(&test).await.expect(201);
    let mut nobody = trader.seller.clone();
    nobody.id = offer_id(1);
    let good = || line(&trader.seller, &offer, 1);
    let unknown = || line(&trader.seller, &offer_id(999_999), 1);
    for (lines, paths) in [
        (vec![good(), unknown()], "items[1].offer_id"),
        (vec![line(&other.seller, &offer, 1), good()], "items[0].offer_id"),
        (vec![good(), line(&nobody, &offer, 1)], "items[1].offer_id"),
        (vec![good(), line(&trader.seller, &offer, 2)], "items[1].offer_id"),
        (
            vec![unknown(), good(), line(&nobody, &offer, 1)],
            "items[0].offer_id items[2].offer_id",
        ),
    ] {
        let answer = world.place(&order_body(&lines, json!({}))).await;
        assert_eq!(answer.status, 400, "{paths:?}: {answer:?}");
        answer.invalid(paths);
    }
    assert_eq!(world.stock(&trader.seller, &offer).await, 2);
}

#[tokio::test]
async fn every_field_is_validated() {
    let (world, trader, offer) = prepared(json!(5)).await;
    let good = line(&trader.seller, &offer, 1);
    let of_item = r#"
        {"quantity": 0}     => items[0].quantity
        {"seller_id": "x"}  => items[0].seller_id
        {"offer_id": 7}     => items[0].offer_id
        {"unit_price": {"amount": -1, "currency": "PLN"}}  => items[0].unit_price.amount
        {"colour": "red"}   => items[0].colour"#;
    let place_item = async |item: &Value| {
        let body = order_body(std::slice::from_ref(item), json!({}));
        world.place(&body).await
    };
    all_invalid_changes(of_item, &good, place_item).await;
    let of_order = r#"
        {"items": []}    => items
        {"shipping_address": {"city": "Warszawa"}}            => shipping_address.country
        {"shipping_address": {"country": "PL", "zip": "1"}}   => shipping_address.zip
        {"buyer": {"age": 7}}     => buyer.age
        {"delivery_point": {}}    => delivery_point.id
        {"delivery_point": {"id": null}}         => delivery_point.id
        {"delivery_point": {"id": "A", "name": 7, "country": ""}}  => delivery_point.name delivery_point.country
        {"delivery_point": {"id": "A", "zip": "1"}}  => delivery_point.zip
        {"invoice": "yes"}        => invoice
        {"invoice": {"tax_id": 5260250274}}      => invoice.tax_id
        {"invoice": {"country": "", "name": "A"}}    => invoice.country invoice.name
        {"status": "paid"}        => status
        {"order_number": "pl-1"}  => order_number
        {"order_number": "01900000-ABCD-7000-8000-000000000001"}  => order_number"#;
    let place = async |body: &Value| world.place(body).await;
    let valid = order_body(std::slice::from_ref(&good), json!({}));
    all_invalid_changes(of_order, &valid, place).await;
    for object in ["shipping_address", "delivery_point", "invoice"] {
        let mut longest = valid.clone();
        let members = longest[object].as_object_mut().unwrap();
        for member in members.values_mut() {
            *member = json!("ż".repeat(500));
        }
        for member in members.keys().cloned().collect::<Vec<_>>() {
            let mut longer = longest.clone();
            longer[object][&member] = json!("ż".repeat(501));
            place(&longer).await.invalid(&format!("{object}.{member}"));
        }
        let test = merged(longest, json!({"is_test": true}));
        place(&test).await.expect(201);
    }
    let too_many = order_body(&vec![good; 1001], json!({}));
    place(&too_many).await.invalid("items");
    assert_eq!(world.stock(&trader.seller, &offer).await, 5);
}

#[tokio::test]
async fn order_numbers_are_unique_given_or_generated() {
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
    let whole = world.whole_order(&order.id).await;
    assert_eq!(world.whole_order("PL-1").await, whole);
    let told = ["order_id", "order_number", "is_test", "status"].map(|field| whole[field].clone());
    assert_eq!(json!(told), json!([order.id, "PL-1", false, "pending"]));
    let parts = whole["parts"].as_array().unwrap().iter();
    let sellers: Value = parts.map(|part| part["seller_id"].clone()).collect();
    let both = json!([trader.seller.id, other.seller.id]);
    assert_eq!(sorted(&sellers), sorted(&both));
    // The marketplace sees the buyer's data.
    for personal in ["ewa@buyer.example", "WAW01M", "5260250274"] {
        assert!(whole.to_string().contains(personal));
    }
    for missing in ["PL-78", &trader.seller.id, "%00"] {
        let answer = world.office_get(&format!("/orders/{missing}")).await;
        answer.refused(404, "not_found");
    }
}
