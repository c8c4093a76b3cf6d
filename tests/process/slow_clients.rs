//! Slow clients are disconnected; imports in progress are not.

use std::time::{Duration, Instant};

use blackbox::{Expect, Wire, World, offer_line, request};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::join;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::{me, world_with};

type Headers<'a> = &'a [(&'a str, &'a str)];

/// Short timeouts; the rules are the same as with long ones.
async fn hasty_world() -> World {
    world_with(&[
        ("SERVER__HEADER_TIMEOUT", "1s"),
        ("SERVER__BODY_TIMEOUT", "300ms"),
        ("SERVER__KEEP_ALIVE", "1s"),
    ])
    .await
}

/// Sends single bytes until the server closes.
async fn drip(wire: &mut Wire, byte: &str) {
    let began = Instant::now();
    while wire.send(byte).await {
        assert!(began.elapsed() < Duration::from_secs(15), "it is still open");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_head_that_drips_or_stalls_is_cut_off_also_after_other_requests() {
    let world = hasty_world().await;
    let (_, token) = world.reader().await;
    for earlier in [0, 1] {
        let begun = async || {
            let mut wire = Wire::connect(&world.server.base_url).await;
            for _ in 0..earlier {
                wire.send(me(&token)).await;
                wire.answer().await.unwrap().expect(200);
            }
            wire.send("GET /v1/me HTTP/1.1\r\nhost: tests.example\r\nx-slow: ")
                .await;
            wire
        };
        let (mut drips, mut stalls) = join!(begun(), begun());
        join!(drip(&mut drips, "a"), async {
            if let Some(answer) = stalls.answer().await {
                assert_eq!(answer.status, 408);
            }
        });
    }
    world.get(&token, "/v1/me").await.expect(200);
}

/// Where the end arrives with the head, too: the server reads it before it asks for the body.
#[tokio::test]
async fn a_connection_that_ends_before_its_body_is_answered_and_closed() {
    let world = hasty_world().await;
    let address = world.server.base_url.strip_prefix("http://").unwrap();
    let head = request("POST", "/v1/offers/batch", &[("content-length", "100")]);
    for _ in 0..50 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        let ends = timeout(Duration::from_secs(10), stream.read_to_string(&mut answer));
        ends.await.expect("an end").unwrap();
        assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
}

#[tokio::test]
async fn a_body_that_drips_is_answered_and_cut_off() {
    let world = hasty_world().await;
    let (_, token) = world.reader().await;
    let bearer = format!("Bearer {token}");
    let operator = format!("Bearer {}", world.server.operator_token);
    let (api, office) = (&world.server.base_url, &world.server.backoffice_url);
    let form = ("content-type", "application/x-www-form-urlencoded");
    let json = ("content-type", "application/json");
    let cases: [(&str, &str, &str, Headers<'_>); 3] = [
        (
            api,
            "GET",
            "/v1/me",
            &[("user-agent", "App/1.0"), ("authorization", &bearer)],
        ),
        (api, "POST", "/oauth/token", &[form]),
        (office, "POST", "/sellers", &[json, ("authorization", &operator)]),
    ];
    for (base, method, path, headers) in cases {
        for framing in [("content-length", "10000"), ("transfer-encoding", "chunked")] {
            let mut wire = Wire::connect(base).await;
            wire.send(request(method, path, &[headers, &[framing]].concat()))
                .await;
            let byte = if framing.1 == "chunked" { "1\r\na\r\n" } else { "a" };
            let began = Instant::now();
            wire.send(byte).await;
            let answer = wire.answer().await.expect("an answer").expect(400);
            let took = began.elapsed();
            assert!(took < Duration::from_secs(9), "{path}: {took:?}");
            answer.must("x-trace-id");
            assert_eq!(answer.must("connection").to_lowercase(), "close", "{path}");
            drip(&mut wire, byte).await;
        }
    }
}

#[tokio::test]
async fn a_connection_that_idles_is_closed() {
    let world = hasty_world().await;
    let (_, token) = world.reader().await;
    let mut used = Wire::connect(&world.server.base_url).await;
    used.send(me(&token)).await;
    used.answer().await.unwrap().expect(200);
    assert!(used.is_closed().await);
    let mut silent = Wire::connect(&world.server.base_url).await;
    if let Some(answer) = silent.answer().await {
        assert_eq!(answer.status, 408);
    }
    assert!(silent.is_closed().await);
}

#[tokio::test]
async fn an_import_may_take_longer_than_other_bodies() {
    let world = world_with(&[("SERVER__BODY_TIMEOUT", "3s")]).await;
    let seller = world.seller().await;
    let mut wire = Wire::importing(&world.server, &seller.id).await;
    for n in 1..=12 {
        let line = offer_line(n, json!({})) + "\n";
        assert!(wire.send_chunk(&line).await);
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    wire.send("0\r\n\r\n").await;
    assert_eq!(wire.answer().await.unwrap().expect(200).json()["created"], 12);
}

#[tokio::test]
async fn a_client_within_the_limits_is_not_cut_off() {
    let world = world_with(&[("SERVER__HEADER_TIMEOUT", "2s")]).await;
    let is_served = async |base: &str| {
        let mut wire = Wire::connect(base).await;
        wire.send(request("GET", "/healthz", &[])).await;
        wire.answer().await.expect("the first request is answered");
        // An idle import is not a slow client.
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        for _ in 0..3 {
            for part in ["GET /heal", "thz HTTP/1.1\r\nhost: tests", ".example\r\n\r\n"] {
                assert!(wire.send(part).await);
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
            wire.answer().await.expect("an answer");
        }
    };
    let server = &world.server;
    join!(is_served(&server.base_url), is_served(&server.backoffice_url));
}

#[tokio::test]
async fn a_client_that_reads_no_answers_is_cut_off() {
    let world = hasty_world().await;
    let mut wire = Wire::connect(&world.server.backoffice_url).await;
    let ask = request("GET", "/metrics", &[]).repeat(50);
    let began = Instant::now();
    while wire.send(&ask).await {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "the connection is still open"
        );
    }
}
