//! Requests that are odd or broken below what the contract speaks of: they are answered all the same, and alarm nobody.

use std::time::{Duration, Instant};

use blackbox::{Expect, Wire, World, request};

use crate::world;

/// `GET /v1/me` with these headers beside the usual ones.
async fn me(world: &World, headers: &[(&str, &str)]) -> String {
    let (_, token) = world.reader().await;
    let bearer = format!("Bearer {token}");
    let usual = [("user-agent", "App/1.0"), ("authorization", bearer.as_str())];
    request("GET", "/v1/me", &[&usual, headers].concat())
}

#[tokio::test]
async fn an_upgrade_is_passed_over_and_the_connection_closed_as_announced() {
    let world = world().await;
    for protocol in ["h2c", "websocket", "something/1"] {
        let upgrade = [("connection", "Upgrade"), ("upgrade", protocol)];
        let began = Instant::now();
        let mut wire = Wire::connect(&world.server.base_url).await;
        wire.send(me(&world, &upgrade).await).await;
        let answer = wire.answer().await.expect("an answer").expect(200);
        assert_eq!(answer.must("connection").to_lowercase(), "close", "{protocol}");
        assert!(wire.is_closed().await);
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "{protocol}: {:?}",
            began.elapsed()
        );
    }
}

#[tokio::test]
async fn connect_is_answered_without_waiting_for_a_tunnel() {
    let world = world().await;
    for base in [&world.server.base_url, &world.server.backoffice_url] {
        let began = Instant::now();
        let answer = Wire::exchange(base, request("CONNECT", "tests.example:443", &[])).await;
        assert!((400..500).contains(&answer.status), "{answer:?}");
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "{base}: {:?}",
            began.elapsed()
        );
    }
}

#[tokio::test]
async fn a_chunk_that_breaks_while_the_body_is_awaited_is_answered() {
    let world = world().await;
    let operator = format!("Bearer {}", world.server.operator_token);
    let chunked = ("transfer-encoding", "chunked");
    let office = request(
        "POST",
        "/sellers",
        &[
            ("content-type", "application/json"),
            ("authorization", &operator),
            chunked,
        ],
    );
    for (base, asked) in [
        (&world.server.base_url, me(&world, &[chunked]).await),
        (&world.server.backoffice_url, office),
    ] {
        let mut wire = Wire::connect(base).await;
        wire.send(asked + "1\r\na\r\n").await;
        // Long enough for the token to have been looked up, so that the body is what is waited for.
        tokio::time::sleep(Duration::from_secs(1)).await;
        wire.send("ZZ\r\n").await;
        let answer = wire.answer().await.expect("an answer");
        answer.refused(400, "validation_error");
        assert_eq!(answer.must("connection").to_lowercase(), "close");
        assert!(wire.is_closed().await);
    }
}

#[tokio::test]
async fn a_chunk_that_is_broken_from_the_start_ends_the_connection() {
    let world = world().await;
    let mut wire = Wire::connect(&world.server.base_url).await;
    wire.send(me(&world, &[("transfer-encoding", "chunked")]).await + "ZZ\r\n")
        .await;
    // The HTTP library gives the connection up before the token has been looked up.
    assert!(wire.answer().await.is_none_or(|answer| answer.status == 400));
    assert!(wire.is_closed().await);
}

#[tokio::test]
async fn malformed_heads_are_no_error_of_ours() {
    let world = world().await;
    for base in [&world.server.base_url, &world.server.backoffice_url] {
        for head in [
            "GET / HTTP/9.9\r\n\r\n",
            "\u{1}\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
        ] {
            let answer = Wire::exchange(base, head).await;
            assert_eq!(answer.status, 400, "{head:?}");
        }
    }
    let log = world.server.log();
    assert!(!log.contains("\"ERROR\"") && !log.contains("actix_http"), "{log}");
}
