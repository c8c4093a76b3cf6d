//! Idempotency keys: effects that happen once.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::Method;
use async_trait::async_trait;
use futures_util::future::join_all;
use kernel::{Claim, Claimed, IdempotencyClaims, Remembered, StoreError};
use oauth::MockPasswordHasher;
use serde_json::json;

use super::fixture::{Office, authorized, uuid};
use super::orders::{order, shop};

const NEW: &str = r#"{"name": "Cups", "email": "cups@example.com"}"#;

#[actix_web::test]
async fn a_repeat_is_answered_as_the_first_was_and_does_nothing() {
    let (office, sellers, offers) = shop().await;
    let body = order(&sellers, &offers).to_string();
    let first = office.post_once("k-1", "/orders", &body).await;
    assert_eq!(
        (first.status.as_u16(), first.header("idempotent-replayed")),
        (201, "")
    );
    let repeat = office.post_once("k-1", "/orders", &body).await;
    assert_eq!((repeat.status, &repeat.body), (first.status, &first.body));
    assert_eq!(repeat.header("idempotent-replayed"), "true");
    assert_ne!(repeat.header("x-trace-id"), first.header("x-trace-id"));
    assert_eq!(repeat.header("content-type"), "application/json");
    assert_eq!(office.store.rows().numbers.len(), 1);
    // Without a key the same order is another one.
    assert_eq!(
        office.post("/orders", &body).await.errors(),
        "409 conflict order_number"
    );
}

#[actix_web::test]
async fn a_replay_asks_no_state_any_more() {
    let (office, sellers, offers) = shop().await;
    office
        .post("/orders", &order(&sellers, &offers).to_string())
        .await;
    office.post("/orders/SHOP-1/payment", "").await;
    let shipment = json!({"carrier": "gls", "tracking_number": "ABC-123"}).to_string();
    let first = office
        .post_once("k-1", "/orders/SHOP-1/shipment", &shipment)
        .await;
    let repeat = office
        .post_once("k-1", "/orders/SHOP-1/shipment", &shipment)
        .await;
    assert_eq!((repeat.status.as_u16(), repeat.body), (201, first.body));
}

#[actix_web::test]
async fn a_key_belongs_to_one_request() {
    let office = Office::new();
    assert_eq!(office.post_once("k-1", "/sellers", NEW).await.status, 201);
    let other_body = NEW.replace("Cups", "Mugs");
    for (path, body) in [
        ("/sellers", other_body.as_str()),
        ("/orders/SHOP-1/payment", "{}"),
    ] {
        let answer = office.post_once("k-1", path, body).await;
        assert_eq!(answer.errors(), "422 idempotency_key_reused", "{path}");
    }
}

#[actix_web::test]
async fn of_parallel_requests_with_one_key_one_works_and_the_others_wait_or_replay() {
    let office = Office::new();
    let requests = (0..20).map(|_| office.post_once("k-1", "/sellers", NEW));
    let answers = join_all(requests).await;
    let created = answers
        .iter()
        .filter(|answer| answer.status == 201 && answer.header("idempotent-replayed").is_empty());
    assert_eq!(created.count(), 1);
    for answer in &answers {
        let waits = answer.status == 409
            && answer.errors() == "409 idempotency_in_progress"
            && answer.header("retry-after") == "2";
        assert!(answer.status == 201 || waits, "{answer:?}");
    }
    assert_eq!(office.store.rows().sellers.len(), 1);
}

#[actix_web::test]
async fn a_refusal_gives_the_key_back() {
    let (office, seller) = Office::with_seller().await;
    let taken = NEW.replace("cups@", "shop@");
    assert_eq!(
        office.post_once("k-1", "/sellers", &taken).await.errors(),
        "409 conflict email"
    );
    assert_eq!(office.post_once("k-1", "/sellers", NEW).await.status, 201);
    let path = format!("/sellers/{seller}/closure");
    assert_eq!(office.post_once("k-2", &path, "{}").await.status, 200);
}

#[actix_web::test]
async fn what_is_wrong_with_the_request_never_comes_to_the_key() {
    let office = Office::new();
    for key in ["", &"k".repeat(129), "zażółć", "a\tb"] {
        let answer = office.post_once(key, "/sellers", "{}").await;
        assert_eq!(
            answer.errors(),
            "400 validation_error Idempotency-Key, validation_error name, validation_error email",
            "{key}"
        );
    }
    let twice = authorized(Method::POST, "/sellers")
        .append_header(("idempotency-key", "a"))
        .append_header(("idempotency-key", "a"));
    let answer = office.send(twice.set_payload("{}")).await;
    assert_eq!(
        answer.errors(),
        "400 validation_error Idempotency-Key, validation_error Content-Type"
    );
    office.post_once("k-1", "/sellers", "{}").await;
    assert!(!office.store.holds("k-1"));
}

#[actix_web::test]
async fn other_methods_and_the_import_do_not_look_at_keys() {
    let (office, seller) = Office::with_seller().await;
    let offer = json!({"title": "K", "handle": "k", "status": "draft", "url": "https://shop.example/k"});
    let put = format!("/sellers/{seller}/offers/{}", uuid(7));
    for status in [201, 200] {
        let request = authorized(Method::PUT, &put)
            .insert_header(("idempotency-key", ""))
            .insert_header(("content-type", "application/json"))
            .set_payload(offer.to_string());
        assert_eq!(office.send(request).await.status, status);
    }
    let import = authorized(Method::POST, &format!("/sellers/{seller}/offers:import"))
        .insert_header(("idempotency-key", ""))
        .insert_header(("content-type", "application/x-ndjson"));
    assert_eq!(office.send(import).await.status, 200);
}

#[actix_web::test]
async fn a_lost_answer_to_the_commit_is_found_in_the_row() {
    let office = Office::new();
    office.store.loses_answers();
    let found = office.post_once("k-1", "/sellers", NEW).await;
    assert_eq!(
        (found.status.as_u16(), found.header("idempotent-replayed")),
        (201, "")
    );
    let repeat = office.post_once("k-1", "/sellers", NEW).await;
    assert_eq!(repeat.body, found.body);
    assert_eq!(office.store.rows().sellers.len(), 1);
    let unkeyed = office.post("/sellers", &NEW.replace("cups@", "mugs@")).await;
    assert_eq!(unkeyed.errors(), "500 internal_error");
}

#[actix_web::test]
async fn a_panic_gives_the_key_back() {
    let mut office = Office::new();
    let mut passwords = MockPasswordHasher::new();
    passwords.expect_hash().returning(|_| panic!("out of memory"));
    office.back_office.passwords = Arc::new(passwords);
    let with_password = NEW.replace('}', r#", "password": "correct horse"}"#);
    let answer = office.post_once("k-1", "/sellers", &with_password).await;
    assert_eq!(answer.errors(), "500 internal_error");
    assert!(!office.store.holds("k-1"));
}

#[actix_web::test]
async fn a_claim_that_was_lost_meanwhile_undoes_the_work() {
    let mut office = Office::new();
    let mut passwords = MockPasswordHasher::new();
    let store = office.store.clone();
    passwords.expect_hash().returning(move |_| {
        store.steals("k-1");
        Ok(oauth::PasswordHash::new("hash".to_owned()))
    });
    office.back_office.passwords = Arc::new(passwords);
    let with_password = NEW.replace('}', r#", "password": "correct horse"}"#);
    let answer = office.post_once("k-1", "/sellers", &with_password).await;
    assert_eq!(
        (answer.errors().as_str(), answer.header("retry-after")),
        ("409 idempotency_in_progress", "2")
    );
    assert!(office.store.rows().sellers.is_empty());
    assert!(office.store.holds("k-1"));
}

#[actix_web::test]
async fn a_key_that_cannot_be_claimed_runs_nothing() {
    let office = Office::new();
    office.store.goes_away();
    let answer = office.post_once("k-1", "/sellers", NEW).await;
    assert_eq!(
        (answer.errors().as_str(), answer.header("retry-after")),
        ("500 internal_error", "1")
    );
}

#[actix_web::test]
async fn a_silent_store_of_keys_is_not_waited_for() {
    let mut office = Office::new();
    office.back_office.claims = Arc::new(Silent);
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    let answer = office.post_once("k-1", "/sellers", NEW).await;
    assert_eq!(
        (answer.errors().as_str(), answer.header("retry-after")),
        ("500 internal_error", "1")
    );
    assert!(began.elapsed() < Duration::from_secs(2));
}

struct Silent;

#[async_trait]
impl IdempotencyClaims for Silent {
    async fn claim(&self, _: &Claim, _: Duration) -> Result<Claimed, StoreError> {
        pending().await
    }

    async fn release(&self, _: &Claim) -> Result<(), StoreError> {
        pending().await
    }

    async fn outcome(&self, _: &Claim) -> Result<Option<Remembered>, StoreError> {
        pending().await
    }
}
