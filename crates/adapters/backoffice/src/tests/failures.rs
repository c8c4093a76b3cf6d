//! When something of our own fails.

use std::future::pending;
use std::sync::Arc;

use actix_web::http::Method;
use async_trait::async_trait;
use kernel::{SellerId, StoreError};
use oauth::{MockOperatorTokens, MockPasswordHasher, MockSellerReader, Seller, SellerReader};

use super::fixture::{Office, authorized, uuid};

const NEW: &str = r#"{"name": "Kettles", "email": "shop@example.com", "password": "correct horse"}"#;

#[actix_web::test]
async fn a_store_that_is_away_is_a_500_that_says_when_to_come_again() {
    let (office, seller) = Office::with_seller().await;
    office.store.goes_away();
    for (method, path, body) in [
        (Method::GET, "/sellers".to_owned(), ""),
        (Method::POST, "/sellers".to_owned(), NEW),
        (Method::POST, format!("/sellers/{seller}/closure"), ""),
    ] {
        let answer = office.call(method, &path, body).await;
        assert_eq!(answer.errors(), "500 internal_error", "{path}");
        assert_eq!(answer.header("retry-after"), "1");
    }
}

#[actix_web::test]
async fn a_token_that_cannot_be_looked_up_lets_nobody_in() {
    let mut office = Office::new();
    let mut operators = MockOperatorTokens::new();
    operators
        .expect_operator()
        .returning(|_| Err(StoreError::Unavailable("connection refused".into())));
    office.back_office.operators = Arc::new(operators);
    let answer = office.get("/sellers").await;
    assert_eq!(
        (answer.errors().as_str(), answer.header("retry-after")),
        ("500 internal_error", "1")
    );
}

#[actix_web::test]
async fn an_impossible_row_is_a_500_without_hope() {
    let mut office = Office::new();
    let mut sellers = MockSellerReader::new();
    sellers
        .expect_sellers()
        .returning(|_, _| Err(StoreError::corrupt("sellers", 7, "has no number")));
    office.back_office.sellers = Arc::new(sellers);
    let answer = office.get("/sellers").await;
    assert_eq!(
        (answer.errors().as_str(), answer.header("retry-after")),
        ("500 internal_error", "")
    );
    assert!(!answer.json().to_string().contains("number"));
}

struct Silent;

#[async_trait]
impl SellerReader for Silent {
    async fn seller(&self, _: SellerId) -> Result<Option<Seller>, StoreError> {
        pending().await
    }

    async fn sellers(&self, _: i32, _: u16) -> Result<Vec<Seller>, StoreError> {
        pending().await
    }
}

#[actix_web::test]
async fn a_silent_store_is_not_waited_for() {
    let mut office = Office::new();
    office.back_office.sellers = Arc::new(Silent);
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    let answer = office.get(&format!("/sellers/{}", uuid(1))).await;
    assert_eq!(
        (answer.errors().as_str(), answer.header("retry-after")),
        ("500 internal_error", "1")
    );
    assert!(began.elapsed().as_secs() < 3);
}

#[actix_web::test]
async fn a_panic_is_a_500_under_the_requests_id() {
    let mut office = Office::new();
    let mut passwords = MockPasswordHasher::new();
    passwords.expect_hash().returning(|_| panic!("out of memory"));
    office.back_office.passwords = Arc::new(passwords);
    let request = authorized(Method::POST, "/sellers")
        .insert_header(("x-request-id", "operator:17"))
        .insert_header(("content-type", "application/json"))
        .set_payload(NEW);
    let answer = office.send(request).await;
    assert_eq!(answer.errors(), "500 internal_error");
    assert_eq!(answer.header("x-trace-id"), "operator:17");
}
