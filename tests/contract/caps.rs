//! Maximum sizes of a request's head and body, and the answers beyond them.

use blackbox::{Expect, Wire, World, text, whole};

use crate::world_with;

const CAP: usize = 64 * 1024;

/// A world and a token for valid requests. It waits for a body longer than a [`Wire`] waits for the answer.
async fn prepared() -> (World, String) {
    let world = world_with(&[("SERVER__BODY_TIMEOUT", "1m")]).await;
    let (_, token) = world.reader().await;
    (world, token)
}

#[tokio::test]
async fn a_body_may_have_64_kib() {
    let (world, token) = prepared().await;
    let base = &world.server.base_url;
    let get = |more: &[(&str, &str)]| world.raw("GET", "/v1/me", &token, more);
    let filled = |body: &str, kind: &str| {
        let length = body.len().to_string();
        get(&[("content-type", kind), ("content-length", &length)]) + body
    };
    // On GET a body up to the limit is ignored.
    let mut wire = Wire::connect(base).await;
    for body in ["{", "not json", &"x".repeat(CAP)] {
        for kind in ["application/json", "text/plain"] {
            wire.send(filled(body, kind)).await;
            wire.answer().await.unwrap().expect(200);
        }
    }
    let chunked = get(&[("transfer-encoding", "chunked")]);
    let small = "1\r\nx\r\n".repeat(CAP);
    wire.send(format!("{chunked}{small}0\r\n\r\n")).await;
    wire.answer().await.unwrap().expect(200);
    // A body whose announced length is too large is rejected before it arrives.
    let announced = ["65537", "9999999999", "18446744073709551615"];
    let mut beyond = Vec::from(announced.map(|length| get(&[("content-length", length)])));
    beyond.push(filled(&"x".repeat(CAP + 1), "text/plain"));
    let chunks = format!("4000\r\n{}\r\n", "x".repeat(0x4000)).repeat(5);
    // Extensions count too.
    let extended = format!("1;{}", "x".repeat(2 * CAP));
    beyond.extend([chunks, extended].map(|body| format!("{chunked}{body}")));
    for bytes in beyond {
        let answer = Wire::last(base, bytes).await;
        answer.is_problem(400, &[whole("validation_error")]);
        let message = text(&answer.json()["errors"][0], "message");
        assert!(message.contains("at most 65536 bytes"), "{message}");
        assert_eq!(answer.must("connection").to_lowercase(), "close");
    }
}

#[tokio::test]
async fn a_url_may_have_8_kib_and_headers_16() {
    let (world, token) = prepared().await;
    let base = &world.server.base_url;
    let target = |length: usize| {
        let target = format!("/v1/me?x={}", "y".repeat(length - 9));
        world.raw("GET", &target, &token, &[])
    };
    let with_filler =
        |length: usize| world.raw("GET", "/v1/me", &token, &[("x-filler", &"z".repeat(length))]);
    // The names and values of all headers count.
    let others = with_filler(0);
    let others = others.lines().filter_map(|line| line.split_once(": "));
    let others: usize = others.map(|(name, value)| name.len() + value.len()).sum();
    let filled = |size: usize| with_filler(size - others);
    Wire::exchange(base, target(8 * 1024)).await.invalid("x");
    Wire::exchange(base, filled(16 * 1024)).await.expect(200);
    let too_long = [8 * 1024 + 1, 12 * 1024].map(target);
    let too_large = [16 * 1024 + 1, 40 * 1024].map(filled);
    // The token is checked later.
    let unknown = world.raw(
        "GET",
        "/v1/me",
        "unknown",
        &[("x-filler", &"z".repeat(16 * 1024))],
    );
    for bytes in too_long.into_iter().chain(too_large).chain([unknown]) {
        let answer = Wire::last(base, bytes).await;
        answer.is_problem(400, &[whole("validation_error")]);
        assert_eq!(answer.must("connection").to_lowercase(), "close");
    }
}

#[tokio::test]
async fn a_refusal_waits_for_no_body_and_keeps_the_connection_where_it_is_small() {
    let (world, token) = prepared().await;
    let mut wire = Wire::connect(&world.server.base_url).await;
    let refused = ["{}", "{\n\n\r\n\n}\n", &"x".repeat(4096)].map(|body| {
        let length = body.len().to_string();
        let headers = [("content-length", length.as_str())];
        world.raw("PATCH", "/v1/offers/1", "expired", &headers) + body
    });
    for refused in &refused {
        wire.send(refused).await;
        wire.answer().await.unwrap().expect(401);
    }
    wire.send(refused.concat() + &world.raw("GET", "/v1/me", &token, &[]))
        .await;
    for _ in &refused {
        wire.answer().await.unwrap().expect(401);
    }
    wire.answer().await.unwrap().expect(200);
    let chunked = [("transfer-encoding", "chunked")];
    let chunked = world.raw("PATCH", "/v1/offers/1", "expired", &chunked) + "1\r\na\r\n";
    let refused = Wire::last(&world.server.base_url, chunked).await;
    assert_eq!(refused.expect(401).must("connection").to_lowercase(), "close");
}
