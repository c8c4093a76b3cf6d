//! What a client is told, and what the log is, when something fails.

use std::future::pending;

use async_trait::async_trait;
use kernel::StoreError;
use oauth::{Admission, Gate, TokenKey};
use tracing::Level;

use super::fixture::{Answered, Fixture, OFFER, good, principal, token, unavailable};
use super::logs::Logs;
use crate::configure;

fn is_internal_error(answered: &Answered, retry_after: Option<&str>) {
    assert_eq!(answered.refusal(), (500, "internal_error".to_owned()));
    assert_eq!(answered.json()["errors"].as_array().unwrap().len(), 1);
    assert_eq!(answered.header("retry-after"), retry_after);
    assert!(answered.header("x-ratelimit-limit").is_some());
}

fn is_logged_once(logs: &Logs, answered: &Answered, cause: &str) {
    let errors = logs.at(Level::ERROR);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(
        errors[0].contains(answered.header("x-trace-id").unwrap()),
        "{errors:?}"
    );
    assert!(errors[0].contains(cause), "{errors:?}");
}

#[actix_web::test]
async fn a_gate_without_database_lets_nothing_through() {
    let (logs, _listening) = Logs::listen();
    let mut fixture = Fixture::new();
    fixture
        .gate
        .expect_admit()
        .once()
        .returning(|_| Err(unavailable()));
    let answered = fixture.get("/v1/me").await;
    is_internal_error(&answered, Some("1"));
    assert_eq!(answered.header("x-ratelimit-remaining"), Some("600"));
    is_logged_once(
        &logs,
        &answered,
        "the store cannot be reached: connection refused",
    );
}

#[actix_web::test]
async fn a_count_that_failed_oddly_may_be_tried_again_too() {
    let mut fixture = Fixture::new();
    fixture
        .gate
        .expect_admit()
        .once()
        .returning(|_| Err(StoreError::unexpected("odd")));
    is_internal_error(&fixture.get("/v1/me").await, Some("1"));
}

#[actix_web::test]
async fn an_operation_fails_by_what_its_store_says() {
    type Case = (fn() -> StoreError, Option<&'static str>, &'static str);
    let cases: [Case; 3] = [
        (unavailable, Some("1"), "connection refused"),
        (|| StoreError::Retryable("deadlock".into()), Some("1"), "deadlock"),
        (
            || StoreError::corrupt("offers", OFFER, "no title"),
            None,
            "no title",
        ),
    ];
    for (error, retry_after, cause) in cases {
        let (logs, _listening) = Logs::listen();
        let mut fixture = Fixture::admitting(principal());
        fixture
            .offers
            .expect_offer()
            .once()
            .returning(move |_, _| Err(error()));
        let answered = fixture.get(&format!("/v1/offers/{OFFER}")).await;
        is_internal_error(&answered, retry_after);
        assert_eq!(answered.header("x-ratelimit-remaining"), Some("597"));
        assert!(!answered.text().contains(cause));
        is_logged_once(&logs, &answered, cause);
    }
}

#[actix_web::test]
async fn a_panic_is_answered_and_the_request_stays_counted() {
    let (logs, _listening) = Logs::listen();
    let mut fixture = Fixture::admitting(principal());
    fixture
        .offers
        .expect_offer()
        .once()
        .returning(|_, _| panic!("half-way"));
    let answered = fixture.get(&format!("/v1/offers/{OFFER}")).await;
    is_internal_error(&answered, None);
    assert_eq!(answered.header("x-ratelimit-remaining"), Some("597"));
    is_logged_once(&logs, &answered, "half-way");
}

/// A gate that never answers.
struct Silent;

#[async_trait]
impl Gate for Silent {
    async fn admit(&self, _: TokenKey) -> Result<Option<Admission>, StoreError> {
        pending().await
    }
}

#[actix_web::test]
async fn a_silent_database_is_given_up_within_3_seconds() {
    tokio::time::pause();
    let mut public = Fixture::new().public();
    public.gate = std::sync::Arc::new(Silent);
    let app = actix_web::test::init_service(actix_web::App::new().configure(configure(public))).await;
    let began = tokio::time::Instant::now();
    let response = actix_web::test::call_service(&app, good("/v1/me").to_request()).await;
    assert_eq!(response.status(), 500);
    assert_eq!(response.headers().get("retry-after").unwrap(), "1");
    assert!(began.elapsed().as_secs_f64() < 3.0);
}

#[actix_web::test]
async fn each_request_leaves_one_line_and_no_token() {
    let (logs, _listening) = Logs::listen();
    let mut fixture = Fixture::admitting(principal());
    fixture.offers.expect_offer().once().returning(|_, _| Ok(None));
    let answered = fixture.get(&format!("/v1/offers/{OFFER}?fields=title")).await;
    let lines = logs.at(Level::INFO);
    assert_eq!(lines.len(), 1, "{lines:?}");
    for part in [
        "listener=\"api\"",
        answered.header("x-trace-id").unwrap(),
        "method=\"GET\"",
        "route=\"/v1/offers/{id}\"",
        "status=404",
    ] {
        assert!(lines[0].contains(part), "{lines:?}");
    }
    assert!(!lines[0].contains(token().reveal()));
    assert!(logs.at(Level::ERROR).is_empty());
}
