//! What operations see without a token.

use std::future::pending;
use std::sync::Arc;

use actix_web::http::Method;
use actix_web::test::TestRequest;
use async_trait::async_trait;
use serde_json::json;

use super::fixture::Office;
use crate::{Health, NotReady};

struct Ill;

#[async_trait]
impl Health for Ill {
    async fn ready(&self) -> Result<(), NotReady> {
        Err(NotReady("the schema is missing".to_owned()))
    }
}

struct Silent;

#[async_trait]
impl Health for Silent {
    async fn ready(&self) -> Result<(), NotReady> {
        pending().await
    }
}

#[actix_web::test]
async fn nobody_needs_a_token_to_see_how_a_process_is() {
    let office = Office::new();
    let health = office.send(TestRequest::with_uri("/healthz")).await;
    assert_eq!(
        (health.status.as_u16(), health.json()),
        (200, json!({"status": "ok"}))
    );
    let ready = office.send(TestRequest::with_uri("/readyz")).await;
    assert_eq!(
        (ready.status.as_u16(), ready.json()),
        (200, json!({"status": "ready"}))
    );
    let metrics = office.send(TestRequest::with_uri("/metrics")).await;
    assert_eq!(
        (metrics.status.as_u16(), &metrics.body[..]),
        (200, &b"up 1\n"[..])
    );
    assert_eq!(metrics.header("content-type"), "text/plain; version=0.0.4");
    for answer in [health, ready, metrics] {
        assert_eq!(answer.header("cache-control"), "no-store");
        assert_eq!(answer.header("x-trace-id").len(), 32);
    }
    let wrong = office
        .send(TestRequest::with_uri("/healthz").method(Method::POST))
        .await;
    assert_eq!(
        (wrong.errors().as_str(), wrong.header("allow")),
        ("404 not_found", "GET")
    );
    let query = office.send(TestRequest::with_uri("/healthz?x=1")).await;
    assert_eq!(query.errors(), "400 validation_error x");
}

#[actix_web::test]
async fn a_process_that_is_not_ready_says_why() {
    let mut office = Office::new();
    office.back_office.health = Arc::new(Ill);
    let answer = office.send(TestRequest::with_uri("/readyz")).await;
    assert_eq!(answer.status, 503);
    assert_eq!(
        answer.json(),
        json!({"status": "not_ready", "reason": "the schema is missing"})
    );
    tokio::time::pause();
    office.back_office.health = Arc::new(Silent);
    let answer = office.send(TestRequest::with_uri("/readyz")).await;
    assert_eq!(answer.status, 503);
    let alive = office.send(TestRequest::with_uri("/healthz")).await;
    assert_eq!(alive.status, 200);
}
