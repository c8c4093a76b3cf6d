//! A real socket: what only shows on the wire.

use std::time::Duration;

use actix_web::{App, HttpServer};
use oauth::Admission;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::fixture::{Fixture, principal, quota, token};
use crate::configure;

/// Starts a listener that admits the token any number of times and gives a connection to it.
async fn connect() -> TcpStream {
    let factory = || {
        let mut fixture = Fixture::new();
        fixture.gate.expect_admit().returning(|_| {
            Ok(Some(Admission {
                principal: principal(),
                quota: quota(1),
            }))
        });
        fixture
            .rates
            .expect_count()
            .returning(|_, _| Ok(super::fixture::count(1)));
        App::new().configure(configure(fixture.public()))
    };
    let server = HttpServer::new(factory).workers(1).disable_signals();
    let server = server.bind("127.0.0.1:0").unwrap();
    let address = server.addrs()[0];
    actix_web::rt::spawn(server.run());
    TcpStream::connect(address).await.unwrap()
}

fn head(first_line: &str, more: &str) -> String {
    let token = token();
    let token = token.reveal();
    format!(
        "{first_line} HTTP/1.1\r\nhost: x\r\nuser-agent: Tests/1\r\nauthorization: Bearer {token}\r\n{more}\r\n"
    )
}

/// Reads until the server closes the connection.
async fn until_closed(mut stream: TcpStream) -> String {
    let mut response = Vec::new();
    let reading = stream.read_to_end(&mut response);
    tokio::time::timeout(Duration::from_secs(10), reading)
        .await
        .expect("the connection stays open")
        .unwrap();
    String::from_utf8(response).unwrap()
}

#[actix_web::test]
async fn head_has_the_length_of_get_and_no_body() {
    let mut stream = connect().await;
    let requests = [
        head("GET /v1/me", ""),
        head("HEAD /v1/me", "connection: close\r\n"),
    ];
    for request in &requests {
        stream.write_all(request.as_bytes()).await.unwrap();
        // One at a time: what is tested is HEAD, not pipelining.
        stream.readable().await.unwrap();
    }
    let text = until_closed(stream).await;
    let responses: Vec<_> = text.split("HTTP/1.1 200 OK\r\n").collect();
    let length = |response: &str| {
        let mut lines = response.lines().map(str::to_owned);
        lines.find(|line| line.starts_with("content-length: ")).unwrap()
    };
    assert_eq!(length(responses[1]), length(responses[2]));
    assert!(responses[1].ends_with('}'), "{text}");
    assert!(responses[2].ends_with("\r\n\r\n"), "{text}");
}

#[actix_web::test]
async fn a_body_beyond_the_cap_closes_the_connection() {
    for (path, cap) in [("/v1/me", 64 * 1024 + 1), ("/oauth/token", 16 * 1024 + 1)] {
        let mut stream = connect().await;
        let method = if path == "/v1/me" { "GET" } else { "POST" };
        let head = head(&format!("{method} {path}"), &format!("content-length: {cap}\r\n"));
        stream.write_all(head.as_bytes()).await.unwrap();
        let response = until_closed(stream).await;
        assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
        assert!(response.contains("connection: close\r\n"), "{response}");
        assert!(response.contains("x-trace-id: "), "{response}");
    }
}

#[actix_web::test]
async fn a_slow_body_is_cut_off() {
    let mut stream = connect().await;
    let head = head("POST /oauth/token", "content-length: 100\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let response = until_closed(stream).await;
    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
    assert!(response.contains("\"error\":\"invalid_request\""), "{response}");
    assert!(response.contains("x-trace-id: "), "{response}");
}

#[actix_web::test]
async fn a_head_beyond_the_caps_closes_the_connection() {
    let long = "x".repeat(9 * 1024);
    for path in [
        format!("/v1/me?{long}"),
        format!("/oauth/token?{long}"),
        format!("/other?{long}"),
    ] {
        let mut stream = connect().await;
        stream
            .write_all(head(&format!("GET {path}"), "").as_bytes())
            .await
            .unwrap();
        let response = until_closed(stream).await;
        assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
        assert!(response.contains("x-trace-id: "), "{response}");
    }
}

#[actix_web::test]
async fn a_refusal_with_the_body_still_under_way_ends_the_connection() {
    let mut stream = connect().await;
    let request = "POST /v1/me HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let response = until_closed(stream).await;
    assert!(response.contains("missing_user_agent"), "{response}");
}
