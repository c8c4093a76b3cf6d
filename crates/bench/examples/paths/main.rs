//! Runs a hot path in one process, without sockets or a database, to count its instructions:
//! `paths <path> <times>`. `bench instructions` runs it under valgrind (`docs/development/performance.md`).

mod ports;

use std::hint::black_box;
use std::io::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;

use actix_web::App;
use actix_web::body::to_bytes;
use actix_web::http::Method;
use actix_web::http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use actix_web::test::{TestRequest, call_service, init_service};
use actix_web::web::Bytes;
use anyhow::{Context as _, bail, ensure};
use serde_json::Value;
use webhooks::WebhookSecret;

use crate::ports::{OFFER, public, token};

/// The body of a delivery.
const DELIVERY: &[u8] = br#"{"id":"0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e","event":"order.created","occurred_at":"2026-11-20T08:15:30.123456Z","data":{"order_id":"0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e","order_number":"SO-0123456789"}}"#;
const PAGE: &str = "/v1/offers?limit=50";

/// The product's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (path, times) = (arguments.next(), arguments.next());
    match run(path.as_deref(), times.as_deref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error may be closed.
            let _ = writeln!(std::io::stderr(), "paths: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(path: Option<&str>, times: Option<&str>) -> anyhow::Result<()> {
    let path = path.context("name a path")?;
    let times = times.unwrap_or("1").parse()?;
    let offer = format!("/v1/offers/{OFFER}");
    match path {
        "offer" => answered(times, 200, || request(&offer)).map(drop),
        "page" => answered(times, 200, || request(PAGE)).map(drop),
        "deep-page" => deep_pages(times),
        "patch" => {
            let change = || {
                request(&offer)
                    .method(Method::PATCH)
                    .insert_header((CONTENT_TYPE, "application/json"))
            };
            let body = r#"{"price":{"amount":17900,"currency":"PLN"},"stock":12}"#;
            answered(times, 200, || change().set_payload(body)).map(drop)
        }
        "unknown-route" => answered(times, 404, || request("/v1/nothing/here")).map(drop),
        "signature" => {
            let secret = WebhookSecret::from_random(&[7; 32]);
            for _ in 0..times {
                black_box(webhooks::signature(&secret, black_box(DELIVERY)));
            }
            Ok(())
        }
        other => bail!("there is no path {other}"),
    }
}

fn request(url: &str) -> TestRequest {
    TestRequest::get()
        .uri(url)
        .peer_addr(SocketAddr::from(([192, 0, 2, 1], 4711)))
        .insert_header((USER_AGENT, "Bench/1.0"))
        .insert_header((AUTHORIZATION, format!("Bearer {}", token().reveal())))
}

/// Handles `times` requests, from the parsed head to the answer's bytes. Returns the last answer.
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

fn deep_pages(times: u64) -> anyhow::Result<()> {
    let page: Value = serde_json::from_slice(&answered(1, 200, || request(PAGE))?)?;
    let next = page.get("next").and_then(Value::as_str);
    let url = format!("{PAGE}&after={}", next.context("a page has no next one")?);
    answered(times, 200, || request(&url)).map(drop)
}
