//! `PATCH /v1/offers/{id}`: what it refuses.

use actix_web::test::TestRequest;
use offers::{Offer, OfferStatus};

use super::fixture::{Answered, Fixture, OFFER, offer};
use super::trade::{finding, patch};

/// Sends what is refused before a transaction is opened.
async fn early(request: TestRequest) -> Answered {
    Fixture::writing().send(request).await
}

/// Patches this offer, of which nothing may be saved.
async fn refused(offer: Option<Offer>, body: &str) -> Answered {
    let fixture = Fixture::writing().transactions(vec![finding(offer)]);
    fixture.send(patch(body)).await
}

#[actix_web::test]
async fn each_field_has_its_rule() {
    let money = |money: &str| format!(r#"{{"price":{money}}}"#);
    for (body, paths) in [
        (money("null"), vec!["price"]),
        (money("1999"), vec!["price"]),
        (money("{}"), vec!["price.amount", "price.currency"]),
        (money(r#"{"amount":1}"#), vec!["price.currency"]),
        (money(r#"{"amount":"5","currency":"PLN"}"#), vec!["price.amount"]),
        (
            money(r#"{"amount":1999.0,"currency":"PLN"}"#),
            vec!["price.amount"],
        ),
        (money(r#"{"amount":1e3,"currency":"PLN"}"#), vec!["price.amount"]),
        (money(r#"{"amount":-1,"currency":"PLN"}"#), vec!["price.amount"]),
        (
            money(r#"{"amount":9007199254740992,"currency":"PLN"}"#),
            vec!["price.amount"],
        ),
        (money(r#"{"amount":1,"currency":"pln"}"#), vec!["price.currency"]),
        (money(r#"{"amount":1,"currency":"EUR"}"#), vec!["price.currency"]),
        (
            money(r#"{"x":1,"amount":null,"currency":null}"#),
            vec!["price.amount", "price.currency", "price.x"],
        ),
        (r#"{"stock":null}"#.to_owned(), vec!["stock"]),
        (r#"{"stock":-1}"#.to_owned(), vec!["stock"]),
        (r#"{"stock":2147483648}"#.to_owned(), vec!["stock"]),
        (r#"{"stock":1.5}"#.to_owned(), vec!["stock"]),
        (r#"{"stock":true}"#.to_owned(), vec!["stock"]),
        (r#"{"status":"proposed"}"#.to_owned(), vec!["status"]),
        (r#"{"status":"rejected"}"#.to_owned(), vec!["status"]),
        (r#"{"status":"Draft"}"#.to_owned(), vec!["status"]),
        (r#"{"status":null}"#.to_owned(), vec!["status"]),
        (r#"{"title":"x"}"#.to_owned(), vec!["title"]),
    ] {
        assert_eq!(early(patch(&body)).await.paths(), paths, "{body}");
    }
}

#[actix_web::test]
async fn everything_wrong_is_told_together_headers_first_unknown_fields_last() {
    let body = r#"{"title":1,"status":"x","colour":2,"stock":-1,"price":{"amount":-1,"currency":"x"}}"#;
    let url = format!("/v1/offers/{OFFER}?limit=1&fields=x");
    let request = patch(body)
        .uri(&url)
        .insert_header(("idempotency-key", "x".repeat(129)));
    let expected = [
        "Idempotency-Key",
        "fields",
        "limit",
        "price.amount",
        "price.currency",
        "stock",
        "status",
        "title",
        "colour",
    ];
    assert_eq!(early(request).await.paths(), expected);
}

#[actix_web::test]
async fn a_body_that_is_not_said_to_be_json_is_not_looked_into() {
    let bare = || patch("{").uri(&format!("/v1/offers/{OFFER}?x=1"));
    let request = bare()
        .insert_header(("content-type", "text/plain"))
        .insert_header(("idempotency-key", ""));
    let answered = early(request).await;
    assert_eq!(answered.paths(), ["Idempotency-Key", "Content-Type", "x"]);
    let request = bare().append_header(("content-type", "application/json"));
    assert_eq!(early(request).await.paths(), ["Content-Type", "x"]);
}

#[actix_web::test]
async fn what_is_no_object_with_fields_is_one_complaint_about_the_whole() {
    for body in [
        "",
        "{}",
        "[]",
        "null",
        "{",
        r#"{"stock":1,"stock":1}"#,
        r#"{"stock":1,"\u0073tock":1}"#,
        "{\"status\":\"draft\\u0000\"}",
        "\u{feff}{\"stock\":1}",
    ] {
        let answered = early(patch(body)).await;
        assert_eq!(answered.paths(), ["-"], "{body}");
    }
}

#[actix_web::test]
async fn all_that_the_offer_does_not_allow_is_told_together_in_field_order() {
    let bare = Offer {
        price: None,
        stock: None,
        status: OfferStatus::Rejected,
        ..offer()
    };
    let body = r#"{"status":"draft","stock":1,"price":{"amount":1,"currency":"PLN"}}"#;
    let answered = refused(Some(bare), body).await;
    assert_eq!(answered.status, 422);
    let entry = |code: &str, path: &str| (code.to_owned(), Some(path.to_owned()));
    let expected = [
        entry("no_price_row", "price"),
        entry("no_inventory_row", "stock"),
        entry("status_locked_by_moderation", "status"),
    ];
    assert_eq!(answered.entries(), expected);
    for entry in answered.json()["errors"].as_array().unwrap() {
        assert!(entry["userMessage"].as_str().is_some_and(|text| !text.is_empty()));
        assert!(entry["message"].as_str().is_some_and(|text| text.ends_with('.')));
    }
}

#[actix_web::test]
async fn moderation_locks_the_status_whatever_is_sent_and_a_wrong_one_is_told_first() {
    for status in [OfferStatus::Proposed, OfferStatus::Rejected] {
        let locked = Offer { status, ..offer() };
        for sent in ["draft", "published"] {
            let body = format!(r#"{{"status":"{sent}"}}"#);
            let answered = refused(Some(locked.clone()), &body).await;
            let expected = (422, "status_locked_by_moderation".to_owned());
            assert_eq!(answered.refusal(), expected, "{status:?} {sent}");
        }
    }
    assert_eq!(early(patch(r#"{"status":"rejected"}"#)).await.paths(), ["status"]);
}

#[actix_web::test]
async fn an_offer_that_is_not_there_is_not_found() {
    let answered = refused(None, r#"{"stock":1}"#).await;
    assert_eq!(answered.refusal(), (404, "not_found".to_owned()));
}

#[actix_web::test]
async fn what_can_be_no_id_opens_no_transaction_and_is_told_after_the_body() {
    for id in ["17", "%zz", "%00", &OFFER.to_uppercase()] {
        let url = format!("/v1/offers/{id}");
        let answered = early(patch(r#"{"stock":1}"#).uri(&url)).await;
        assert_eq!(answered.refusal(), (404, "not_found".to_owned()), "{id}");
        let answered = early(patch("{}").uri(&url)).await;
        assert_eq!(answered.refusal().0, 400, "{id}");
    }
}
