//! Requests of the public listener, from the parsed head to the bytes of the answer.

use std::net::SocketAddr;

use actix_web::App;
use actix_web::body::to_bytes;
use actix_web::http::Method;
use actix_web::http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use actix_web::test::{TestRequest, call_service, init_service};
use actix_web::web::Bytes;
use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::ports::{OFFER, public, token};

/// `GET url`, so often.
pub(crate) fn reads(url: &str, times: u64) -> anyhow::Result<()> {
    answered(times, 200, || request(url)).map(drop)
}

/// A page behind the first one.
pub(crate) fn deep_pages(times: u64) -> anyhow::Result<()> {
    let url = "/v1/offers?limit=50";
    let page: Value = serde_json::from_slice(&answered(1, 200, || request(url))?)?;
    let next = page
        .get("next")
        .and_then(Value::as_str)
        .context("a page has no next one")?;
    let url = format!("{url}&after={next}");
    reads(&url, times)
}

/// A change of an offer.
pub(crate) fn patches(times: u64) -> anyhow::Result<()> {
    let url = format!("/v1/offers/{OFFER}");
    let patch = || {
        request(&url)
            .method(Method::PATCH)
            .insert_header((CONTENT_TYPE, "application/json"))
            .set_payload(r#"{"price":{"amount":17900,"currency":"PLN"},"stock":12}"#)
    };
    answered(times, 200, patch).map(drop)
}

/// A path that nothing is at.
pub(crate) fn misses(times: u64) -> anyhow::Result<()> {
    answered(times, 404, || request("/v1/nothing/here")).map(drop)
}

fn request(url: &str) -> TestRequest {
    TestRequest::get()
        .uri(url)
        .peer_addr(SocketAddr::from(([192, 0, 2, 1], 4711)))
        .insert_header((USER_AGENT, "Bench/1.0"))
        .insert_header((AUTHORIZATION, format!("Bearer {}", token().reveal())))
}

/// Makes requests one after another, each answered by the status; gives the last answer.
fn answered(times: u64, status: u16, request: impl Fn() -> TestRequest) -> anyhow::Result<Bytes> {
    actix_web::rt::System::new().block_on(async {
        let app = init_service(App::new().configure(adapter_http::configure(public()?))).await;
        let mut last = Bytes::new();
        for _ in 0..times {
            let response = call_service(&app, request().to_request()).await;
            let found = response.status().as_u16();
            let body = to_bytes(response.into_body()).await;
            last = body.ok().context("an answer has no body")?;
            ensure!(
                found == status,
                "answered {found}: {}",
                String::from_utf8_lossy(&last)
            );
        }
        Ok(last)
    })
}
