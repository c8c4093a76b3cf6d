//! Payment, cancellation, delivery, and the erasure of the buyer.

use ::orders::OrderEventKind::{self, Cancelled, Created, Delivered, Paid, Shipped};
use serde_json::{Value, json};

use super::fixture::Office;
use super::orders::{order, place, shop};

async fn placed() -> Office {
    let (office, sellers, offers) = shop().await;
    assert_eq!(place(&office, &order(&sellers, &offers)).await.status, 201);
    office
}

/// The status of the whole, and the status and payment of each part.
fn told(order: &Value) -> Vec<&str> {
    let parts = order["parts"].as_array().unwrap().iter();
    let words = parts.flat_map(|part| [&part["status"], &part["payment_status"]]);
    std::iter::once(&order["status"])
        .chain(words)
        .map(|word| word.as_str().unwrap())
        .collect()
}

async fn moved(office: &Office, step: &str) -> String {
    let answer = office.post(&format!("/orders/SHOP-1/{step}"), "").await;
    match answer.status.as_u16() {
        200 => told(&answer.json()).join(" "),
        _ => answer.errors(),
    }
}

/// What was announced, to any seller, without what placing announces.
fn events(office: &Office) -> Vec<OrderEventKind> {
    let rows = office.store.rows();
    let kinds = rows.order_events.iter().map(|(_, kind)| *kind);
    kinds.filter(|kind| *kind != Created).collect()
}

const PROCESSING: &str = "processing processing paid processing paid";
const DELIVERED: &str = "delivered delivered paid delivered paid";
const CANCELLED: &str = "cancelled cancelled cancelled cancelled cancelled";

#[actix_web::test]
async fn every_part_moves_and_repeating_is_harmless() {
    let office = placed().await;
    for (step, told) in [("payment", PROCESSING), ("delivery", DELIVERED)] {
        assert_eq!(moved(&office, step).await, told);
        assert_eq!(moved(&office, step).await, told);
    }
    assert_eq!(
        events(&office),
        [Paid, Paid, Shipped, Delivered, Shipped, Delivered]
    );
    assert_eq!(moved(&office, "payment").await, DELIVERED);
}

#[actix_web::test]
async fn a_cancellation_gives_the_stock_back_once() {
    let office = placed().await;
    for _ in 0..2 {
        assert_eq!(moved(&office, "cancellation").await, CANCELLED);
    }
    assert_eq!(events(&office), [Cancelled, Cancelled]);
    let stock = office.store.rows().offers.values().next().unwrap().stock;
    assert_eq!(stock.unwrap().get(), 5);
}

#[actix_web::test]
async fn an_impossible_move_is_refused_by_its_reason() {
    let unpaid = placed().await;
    assert_eq!(moved(&unpaid, "delivery").await, "409 order_unpaid");
    moved(&unpaid, "cancellation").await;
    assert_eq!(moved(&unpaid, "payment").await, "409 order_cancelled");
    assert_eq!(moved(&unpaid, "delivery").await, "409 order_cancelled");
    let delivered = placed().await;
    moved(&delivered, "payment").await;
    moved(&delivered, "delivery").await;
    assert_eq!(moved(&delivered, "cancellation").await, "409 already_shipped");
}

#[actix_web::test]
async fn a_move_takes_no_body_but_an_empty_one() {
    let office = placed().await;
    let path = "/orders/SHOP-1/payment";
    let refused = office.post(path, r#"{"at": "now"}"#).await;
    assert_eq!(refused.errors(), "400 validation_error at");
    assert_eq!(office.post(path, "{}").await.status, 200);
}

#[actix_web::test]
async fn answers_that_can_be_remembered_hold_no_buyer() {
    let office = placed().await;
    for step in ["payment", "delivery"] {
        let answer = office.post(&format!("/orders/SHOP-1/{step}"), "").await;
        assert_eq!(answer.json()["parts"][0].get("buyer"), None, "{step}");
        assert!(!String::from_utf8_lossy(&answer.body).contains("Nowak"));
    }
    let read = office.get("/orders/SHOP-1").await.json();
    assert_eq!(read["parts"][1]["buyer"]["name"], "Jan Nowak");
}

#[actix_web::test]
async fn an_erasure_leaves_nothing_of_the_buyer_and_may_be_repeated() {
    let office = placed().await;
    moved(&office, "payment").await;
    let shipment = json!({"carrier": "inpost", "tracking_number": "ABC-123"});
    office
        .post("/orders/SHOP-1/shipment", &shipment.to_string())
        .await;
    assert_eq!(office.store.rows().mails.len(), 1);
    for _ in 0..2 {
        let erased = office.post("/orders/SHOP-1/buyer-erasure", "").await;
        assert_eq!(erased.status, 200);
        assert_eq!(office.get("/orders/SHOP-1").await.json(), erased.json());
        for part in erased.json()["parts"].as_array().unwrap() {
            assert_eq!(part["buyer"], Value::Null);
            assert_eq!(part["shipping_address"], Value::Null);
        }
    }
    assert!(office.store.rows().mails.is_empty());
}
