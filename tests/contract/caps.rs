//! Maximum sizes of a request's head and body, and the answers beyond them.

use blackbox::{Expect, Wire, World, request, request_with_body, whole};

use crate::world;

const CAP: usize = 64 * 1024;

/// A world and the bearer token of a valid request.
async fn prepared() -> (World, String) {
    let world = world().await;
    let (_, token) = world.reader().await;
    (world, format!("Bearer {token}"))
}

/// The headers of a valid request, and more.
fn good<'a>(bearer: &'a str, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [&[("user-agent", "App/1.0"), ("authorization", bearer)], more].concat()
}

#[tokio::test]
async fn a_body_has_a_cap() {
    let (world, bearer) = prepared().await;
    let base = &world.server.base_url;
    // On GET a body up to the limit is ignored.
    let mut wire = Wire::connect(base).await;
    for body in ["{", "not json", &"x".repeat(CAP)] {
        for kind in ["application/json", "text/plain"] {
            let headers = good(&bearer, &[("content-type", kind)]);
            wire.send(request_with_body("GET", "/v1/me", &headers, body))
                .await;
            wire.answer().await.unwrap().expect(200);
        }
    }
    // A body whose announced length is too large is rejected before it arrives.
    let mut beyond = Vec::new();
    for length in ["65537", "9999999999", "18446744073709551615"] {
        beyond.push(request(
            "GET",
            "/v1/me",
            &good(&bearer, &[("content-length", length)]),
        ));
    }
    let large = "x".repeat(CAP + 1);
    beyond.push(request_with_body("GET", "/v1/me", &good(&bearer, &[]), &large));
    let chunked = request(
        "GET",
        "/v1/me",
        &good(&bearer, &[("transfer-encoding", "chunked")]),
    );
    beyond.push(chunked + &format!("4000\r\n{}\r\n", "x".repeat(0x4000)).repeat(5));
    for bytes in beyond {
        let answer = Wire::last(base, bytes).await;
        answer.is_problem(400, &[whole("validation_error")]);
        assert_eq!(answer.must("connection").to_lowercase(), "close");
    }
}

#[tokio::test]
async fn a_url_may_have_8_kib_and_headers_16() {
    let (world, bearer) = prepared().await;
    let base = &world.server.base_url;
    let target = |length: usize| {
        let target = format!("/v1/me?x={}", "y".repeat(length - 9));
        request("GET", &target, &good(&bearer, &[]))
    };
    let filled = |size: usize| {
        request(
            "GET",
            "/v1/me",
            &good(&bearer, &[("x-filler", &"z".repeat(size))]),
        )
    };
    Wire::exchange(base, target(8 * 1024)).await.invalid(&["x"]);
    Wire::exchange(base, filled(15 * 1024)).await.expect(200);
    for bytes in [
        target(8 * 1024 + 1),
        target(12 * 1024),
        filled(17 * 1024),
        filled(40 * 1024),
    ] {
        let answer = Wire::last(base, bytes).await;
        assert!((400..500).contains(&answer.status), "{answer:?}");
    }
}

#[tokio::test]
async fn what_is_no_http_is_refused_and_several_requests_are_answered_in_order() {
    let (world, bearer) = prepared().await;
    for garbage in [
        "GARBAGE\r\n\r\n",
        "GET /v1/me\r\n\r\n",
        "GET /v1/me HTTP/1.1\r\nno colon\r\n\r\n",
    ] {
        let mut wire = Wire::connect(&world.server.base_url).await;
        wire.send(garbage).await;
        if let Some(answer) = wire.answer().await {
            assert!((400..500).contains(&answer.status), "{answer:?}");
            assert!(wire.is_closed().await);
        }
    }
    let mut wire = Wire::connect(&world.server.base_url).await;
    let ids = ["number-one", "number-two", "number-three"];
    let pipelined = ids.map(|id| request("GET", "/v1/me", &good(&bearer, &[("x-request-id", id)])));
    wire.send(pipelined.concat()).await;
    for id in ids {
        assert_eq!(wire.answer().await.unwrap().expect(200).must("x-trace-id"), id);
    }
}
