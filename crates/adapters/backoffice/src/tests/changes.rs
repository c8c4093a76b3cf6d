//! The change feed.

use std::time::Duration;

use ::changes::{ChangeItem, ChangeKind, Detail, Topic};
use ::offers::{OfferStatus, Stock};
use kernel::Money;
use serde_json::{Value, json};
use tokio::time::{Instant, pause};
use uuid::Uuid;

use super::fixture::{Office, uuid};
use super::rows::now;

fn offer(kind: ChangeKind, detail: Detail) -> ChangeItem {
    ChangeItem {
        kind,
        seller: Uuid::from_u128(1).into(),
        topic: Topic::Offer(Uuid::from_u128(7).into()),
        detail,
        at: now(),
    }
}

fn stock(pieces: i64) -> ChangeItem {
    offer(
        ChangeKind::OfferStockChanged,
        Detail::Stock(Stock::new(pieces).unwrap()),
    )
}

async fn read(office: &Office, query: &str) -> Value {
    let answer = office.get(&format!("/changes{query}")).await;
    assert_eq!(answer.status, 200, "{query}");
    answer.json()
}

#[actix_web::test]
async fn each_kind_has_its_fields() {
    let office = Office::new();
    let of = |kind, topic| ChangeItem {
        kind,
        topic,
        ..stock(0)
    };
    let order = Topic::Order(Uuid::from_u128(9).into());
    let application = Topic::Application(Uuid::from_u128(3).into());
    for item in [
        offer(
            ChangeKind::OfferPriceChanged,
            Detail::Price(Money::pln(1999).unwrap()),
        ),
        stock(4),
        offer(ChangeKind::OfferStatusChanged, Detail::Status(OfferStatus::Draft)),
        ChangeItem {
            detail: Detail::Nothing,
            ..of(ChangeKind::OrderShipped, order)
        },
        ChangeItem {
            detail: Detail::Nothing,
            ..of(ChangeKind::ApplicationRegistered, application)
        },
    ] {
        office.store.happens(item);
    }
    let (seller, offer, at) = (uuid(1), uuid(7), "2023-11-14T22:13:20.000000Z");
    let client = oauth::ClientId::from(Uuid::from_u128(3)).to_string();
    let expected = json!({"items": [
        {"kind": "offer.price_changed", "seller_id": seller, "offer_id": offer, "at": at,
         "price": {"amount": 1999, "currency": "PLN"}},
        {"kind": "offer.stock_changed", "seller_id": seller, "offer_id": offer, "at": at, "stock": 4},
        {"kind": "offer.status_changed", "seller_id": seller, "offer_id": offer, "at": at, "status": "draft"},
        {"kind": "order.shipped", "seller_id": seller, "order_id": uuid(9), "at": at},
        {"kind": "application.registered", "seller_id": seller, "client_id": client, "at": at},
    ], "next": "5"});
    assert_eq!(read(&office, "").await, expected);
}

#[actix_web::test]
async fn next_leads_on_and_is_never_null() {
    let office = Office::new();
    for pieces in 0..3 {
        office.store.happens(stock(pieces));
    }
    let first = read(&office, "?limit=2").await;
    assert_eq!(first["items"].as_array().unwrap().len(), 2);
    let second = read(&office, &format!("?after={}", first["next"].as_str().unwrap())).await;
    assert_eq!(second["items"][0]["stock"], 2);
    let end = read(&office, "?after=3").await;
    assert_eq!(end, json!({"items": [], "next": "3"}));
}

#[actix_web::test]
async fn limit_and_wait_are_clamped_and_what_is_no_cursor_is_refused() {
    let office = Office::new();
    for pieces in 0..1_100 {
        office.store.happens(stock(pieces));
    }
    for (query, items) in [
        ("", 100),
        ("?limit=0", 1),
        ("?limit=99999999999999999999", 1_000),
        ("?limit=7&wait=-5", 7),
        ("?wait=99999", 100),
    ] {
        let page = read(&office, query).await;
        assert_eq!(page["items"].as_array().unwrap().len(), items, "{query}");
    }
    for (query, errors) in [
        ("?after=x", "400 validation_error after"),
        ("?after=", "400 validation_error after"),
        (
            "?wait=1.5&limit=many&since=1",
            "400 validation_error limit, validation_error wait, validation_error since",
        ),
        ("?after=elsewhere", "409 conflict after"),
    ] {
        let answer = office.get(&format!("/changes{query}")).await;
        assert_eq!(answer.errors(), errors, "{query}");
    }
    let elsewhere = office.get("/changes?after=elsewhere").await.json();
    let message = elsewhere["errors"][0]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("read everything anew"), "{message}");
}

#[actix_web::test]
async fn who_waits_is_answered_as_soon_as_something_happens() {
    let office = Office::new();
    pause();
    let began = Instant::now();
    let happening = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        office.store.happens(stock(4));
    };
    let (page, ()) = tokio::join!(read(&office, "?wait=30"), happening);
    assert_eq!(page["items"][0]["stock"], 4);
    let waited = began.elapsed();
    assert!(
        waited >= Duration::from_secs(3) && waited < Duration::from_millis(3_300),
        "{waited:?}"
    );
}

#[actix_web::test]
async fn waiting_ends_with_an_empty_page_when_the_time_is_over() {
    let office = Office::new();
    pause();
    for (query, seconds) in [("?wait=2", 2), ("?wait=3600", 30), ("", 0)] {
        let began = Instant::now();
        assert_eq!(read(&office, query).await, json!({"items": [], "next": "0"}));
        let waited = began.elapsed();
        assert!(
            waited >= Duration::from_secs(seconds) && waited < Duration::from_millis(seconds * 1_000 + 100),
            "{query} {waited:?}"
        );
    }
}

#[actix_web::test]
async fn waiting_ends_when_the_process_stops() {
    let office = Office::new();
    pause();
    let began = Instant::now();
    let stopping = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        office.back_office.tasks.stop();
    };
    let (page, ()) = tokio::join!(read(&office, "?wait=30"), stopping);
    assert_eq!(page, json!({"items": [], "next": "0"}));
    assert!(began.elapsed() < Duration::from_millis(1_100));
}

#[actix_web::test]
async fn a_store_that_goes_away_ends_the_wait() {
    let office = Office::new();
    pause();
    let leaving = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        office.store.goes_away();
    };
    let (answer, ()) = tokio::join!(office.get("/changes?wait=30"), leaving);
    assert_eq!(answer.errors(), "500 internal_error");
    assert_eq!(answer.header("retry-after"), "1");
}
