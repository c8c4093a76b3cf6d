//! A refusal that comes before the body, on a real connection.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::time::Duration;

use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web::Payload, web::to};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use web::{Problem, TraceId, response};

async fn refuse(request: HttpRequest, payload: Payload) -> HttpResponse {
    let trace_id = TraceId::of(request.headers(), || [0xcd; 16]);
    let refusal = Problem::unauthorized("test", "access token");
    response::keep_payload(refusal.into_response(&trace_id), payload)
}

/// Sends `request` to a listener and reads until it closes the connection.
async fn until_closed(request: &str) -> String {
    let server = HttpServer::new(|| App::new().default_service(to(refuse))).workers(1);
    let server = server.disable_signals().bind("127.0.0.1:0").unwrap();
    let address = *server.addrs().first().unwrap();
    actix_web::rt::spawn(server.run());
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = Vec::new();
    tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut response))
        .await
        .expect("the connection stays open")
        .unwrap();
    String::from_utf8(response).unwrap().to_ascii_lowercase()
}

#[actix_web::test]
async fn a_refusal_does_not_wait_for_the_body() {
    let response =
        until_closed("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n").await;
    assert!(response.starts_with("http/1.1 401 "), "{response}");
    assert!(response.contains("\r\nconnection: close\r\n"), "{response}");
}
