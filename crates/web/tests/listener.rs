//! A real listener made of this crate's parts: bodies, panics and closed connections on the wire.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web as routes};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use web::body::{self, Body, BodyLimits};
use web::error::catch_panic;
use web::{Entry, Problem, TraceId, head, response};

const LIMITS: BodyLimits = BodyLimits {
    cap: 1024,
    within: Duration::from_millis(200),
};

async fn answer(request: HttpRequest, payload: routes::Payload) -> HttpResponse {
    let trace_id = TraceId::of(request.headers(), || [0xcd; 16]);
    let handled = catch_panic(&trace_id, handle(&request, payload, &trace_id)).await;
    handled.unwrap_or_else(|_| Problem::internal().into_response(&trace_id))
}

async fn handle(request: &HttpRequest, mut payload: routes::Payload, trace_id: &TraceId) -> HttpResponse {
    let refused = |entry: Entry| Problem::from(entry).into_response(trace_id);
    if let Err(excess) = head::check(request.head()) {
        return response::closing(refused(Entry::whole(excess.to_string())), payload);
    }
    if request.path() == "/unauthorized" {
        return response::keep_payload(Problem::unauthorized("test").into_response(trace_id), payload);
    }
    let body = body::read(request.headers(), &mut payload, LIMITS).await;
    if let Some(complaint) = body.complaint() {
        return response::closing(refused(Entry::whole(complaint)), payload);
    }
    assert!(request.path() != "/panic", "asked to");
    match body {
        Body::Whole(bytes) => response::json(StatusCode::OK, bytes, trace_id),
        _ => response::empty(StatusCode::NO_CONTENT, trace_id),
    }
}

/// Starts a listener and connects to it.
async fn connect() -> TcpStream {
    let server = HttpServer::new(|| App::new().default_service(routes::to(answer))).workers(1);
    let server = server.disable_signals().bind("127.0.0.1:0").unwrap();
    let address = *server.addrs().first().unwrap();
    actix_web::rt::spawn(server.run());
    TcpStream::connect(address).await.unwrap()
}

/// Sends `request` and reads until the server closes the connection.
async fn until_closed(mut stream: TcpStream, request: String) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = Vec::new();
    tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut response))
        .await
        .expect("the connection stays open")
        .unwrap();
    String::from_utf8(response).unwrap().to_ascii_lowercase()
}

fn is_a_closing_refusal(response: &str, message: &str) {
    assert!(response.starts_with("http/1.1 400 "), "{response}");
    assert!(response.contains("\r\nconnection: close\r\n"), "{response}");
    assert!(response.contains("\r\nx-trace-id: request-17\r\n"), "{response}");
    assert!(response.contains(message), "{response}");
}

#[actix_web::test]
async fn a_body_that_announces_too_much_is_refused_before_it_is_sent() {
    let request = "POST / HTTP/1.1\r\nhost: x\r\nx-request-id: request-17\r\ncontent-length: 1025\r\n\r\n";
    is_a_closing_refusal(
        &until_closed(connect().await, request.to_owned()).await,
        "larger than",
    );
}

#[actix_web::test]
async fn a_chunked_body_is_refused_once_it_is_too_large() {
    let head = "POST / HTTP/1.1\r\nhost: x\r\nx-request-id: request-17\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = format!("200\r\n{}\r\n", "a".repeat(0x200));
    let request = format!("{head}{}", chunk.repeat(3));
    is_a_closing_refusal(&until_closed(connect().await, request).await, "larger than");
}

#[actix_web::test]
async fn a_body_that_never_ends_is_cut_off() {
    let request = "POST / HTTP/1.1\r\nhost: x\r\nx-request-id: request-17\r\ncontent-length: 10\r\n\r\n12345";
    is_a_closing_refusal(
        &until_closed(connect().await, request.to_owned()).await,
        "in time",
    );
}

#[actix_web::test]
async fn a_url_beyond_the_cap_is_refused() {
    let url = "a".repeat(head::LONGEST_URL);
    let request = format!("GET /{url} HTTP/1.1\r\nhost: x\r\nx-request-id: request-17\r\n\r\n");
    is_a_closing_refusal(&until_closed(connect().await, request).await, "the url is longer");
}

#[actix_web::test]
async fn a_panic_is_answered_and_the_connection_goes_on() {
    let panicking = "GET /panic HTTP/1.1\r\nhost: x\r\nx-request-id: request-17\r\n\r\n";
    let last = "POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
    let responses = until_closed(connect().await, format!("{panicking}{last}")).await;
    let (first, second) = responses.split_once("http/1.1 200 ").expect("a second response");
    assert!(first.starts_with("http/1.1 500 "), "{first}");
    assert!(first.contains("\r\nx-trace-id: request-17\r\n"), "{first}");
    assert!(first.contains("internal_error"), "{first}");
    assert!(second.ends_with("\r\n\r\n{}"), "{second}");
}

#[actix_web::test]
async fn a_refusal_before_the_body_does_not_wait_for_it() {
    let request = "POST /unauthorized HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n";
    let response = until_closed(connect().await, request.to_owned()).await;
    assert!(response.starts_with("http/1.1 401 "), "{response}");
    assert!(response.contains("\r\nconnection: close\r\n"), "{response}");
}

#[actix_web::test]
async fn a_refusal_before_the_body_keeps_the_connection_where_the_body_was_sent() {
    let refused = "POST /unauthorized HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}";
    let last = "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let responses = until_closed(connect().await, format!("{refused}{last}")).await;
    assert!(responses.starts_with("http/1.1 401 "), "{responses}");
    assert!(responses.contains("http/1.1 200 "), "{responses}");
}
