//! `POST /v1/orders/{id}/shipments`: orders that cannot be shipped.

use actix_web::http::Method;
use orders::{Delivery, Lookup, SellerOrder};

use super::fixture::{Answered, Fixture, OFFER, good};
use super::trade::{PARCEL, SHIPMENTS, later, paid, post, shipped, transaction, unpaid};

fn of_several(order: SellerOrder) -> SellerOrder {
    SellerOrder {
        several_sellers: true,
        ..order
    }
}

/// Each state that refuses, with its code; of two reasons the earlier is told.
fn cases() -> Vec<(SellerOrder, &'static str)> {
    let cancelled = |order: SellerOrder| order.cancel(later()).unwrap().after;
    let delivered = |order: SellerOrder| order.deliver(Delivery { at: None }, later()).unwrap().after;
    vec![
        (cancelled(unpaid()), "order_cancelled"),
        (cancelled(of_several(paid())), "order_cancelled"),
        (unpaid(), "order_unpaid"),
        (of_several(unpaid()), "order_unpaid"),
        (shipped(), "already_shipped"),
        (of_several(shipped()), "already_shipped"),
        (delivered(shipped()), "already_shipped"),
        (delivered(of_several(paid())), "already_shipped"),
        (of_several(paid()), "multi_seller_order"),
    ]
}

fn is(answered: &Answered, code: &str) {
    assert_eq!(answered.refusal(), (409, code.to_owned()));
    let entry = &answered.json()["errors"][0];
    assert!(
        entry["userMessage"].as_str().is_some_and(|text| !text.is_empty()),
        "{code}"
    );
    assert_eq!(entry["path"], serde_json::Value::Null);
    let own: Vec<_> = paid().items.iter().map(|item| item.offer.to_string()).collect();
    let expected = if code == "multi_seller_order" {
        serde_json::json!(own)
    } else {
        serde_json::Value::Null
    };
    assert_eq!(entry["item_ids"], expected, "{code}");
    assert_eq!(answered.header("retry-after"), None);
}

#[actix_web::test]
async fn each_state_has_its_code_and_no_carrier_is_asked() {
    for (order, code) in cases() {
        let fixture = Fixture::writing().with_order(Some(order));
        is(&fixture.send(post(SHIPMENTS, PARCEL)).await, code);
    }
}

#[actix_web::test]
async fn what_was_fine_before_the_carrier_was_asked_is_judged_again_with_the_row_locked() {
    for (order, code) in cases() {
        let mut transaction = transaction();
        transaction
            .expect_lock_part()
            .once()
            .return_once(|_, _| Ok(Some(order)));
        let fixture = Fixture::writing()
            .with_order(Some(paid()))
            .with_carrier(Lookup::NotFound)
            .transactions(vec![transaction]);
        is(&fixture.send(post(SHIPMENTS, PARCEL)).await, code);
    }
}

#[actix_web::test]
async fn an_order_that_is_not_there_or_cannot_be_is_not_found() {
    let absent = Fixture::writing().with_order(None);
    let answered = absent.send(post(SHIPMENTS, PARCEL)).await;
    assert_eq!(answered.refusal(), (404, "not_found".to_owned()));
    for named in ["pl-2026-17", "%00", "x%2Fy"] {
        let url = format!("/v1/orders/{named}/shipments");
        let answered = Fixture::writing().send(post(&url, PARCEL)).await;
        assert_eq!(answered.refusal(), (404, "not_found".to_owned()), "{named}");
        let answered = Fixture::writing().send(post(&url, "{}")).await;
        assert_eq!(answered.refusal().0, 400, "{named}");
    }
}

#[actix_web::test]
async fn what_has_no_such_method_is_not_found_and_told_what_there_is() {
    for (method, url, allow) in [
        (Method::GET, SHIPMENTS, Some("POST")),
        (Method::HEAD, SHIPMENTS, Some("POST")),
        (Method::DELETE, &format!("/v1/offers/{OFFER}"), Some("GET, PATCH")),
        (Method::PATCH, "/v1/orders/PL-2026-17", Some("GET")),
        (Method::POST, "/v1/orders", Some("GET")),
        (Method::GET, "/v1/orders/PL-2026-17/items", None),
    ] {
        let request = good(url)
            .method(method.clone())
            .insert_header(("idempotency-key", "k"));
        let answered = Fixture::writing().send(request).await;
        assert_eq!(answered.status, 404, "{method} {url}");
        assert_eq!(answered.header("allow"), allow, "{method} {url}");
    }
}
