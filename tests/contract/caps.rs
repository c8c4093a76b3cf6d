//! How large a head and a body may be, and what happens beyond.

use blackbox::{Expect, Wire, World, request, request_with_body, whole};

use crate::world;

const CAP: usize = 64 * 1024;

/// A world and the headers of a good request to it.
async fn prepared() -> (World, String) {
    let world = world().await;
    let (_, token) = world.reader().await;
    (world, format!("Bearer {token}"))
}

fn good(bearer: &str) -> [(&str, &str); 2] {
    [("user-agent", "App/1.0"), ("authorization", bearer)]
}

#[tokio::test]
async fn a_body_on_get_is_ignored_up_to_the_cap() {
    let (world, bearer) = prepared().await;
    let mut wire = Wire::connect(&world.server.base_url).await;
    for body in ["{", "not json", &"x".repeat(CAP)] {
        for kind in ["application/json", "text/plain"] {
            let headers = [good(&bearer).as_slice(), &[("content-type", kind)]].concat();
            wire.send(request_with_body("GET", "/v1/me", &headers, body))
                .await;
            wire.answer().await.unwrap().expect(200);
        }
    }
}

#[tokio::test]
async fn a_body_beyond_the_cap_is_one_entry_without_path_and_ends_the_connection() {
    let (world, bearer) = prepared().await;
    let body = "x".repeat(CAP + 1);
    let chunked = [good(&bearer).as_slice(), &[("transfer-encoding", "chunked")]].concat();
    let chunks = format!(
        "{}4000\r\n{}\r\n",
        request("GET", "/v1/me", &chunked),
        "x".repeat(0x4000)
    );
    let chunks = chunks + &format!("4000\r\n{}\r\n", "x".repeat(0x4000)).repeat(4);
    for bytes in [request_with_body("GET", "/v1/me", &good(&bearer), &body), chunks] {
        let mut wire = Wire::connect(&world.server.base_url).await;
        wire.send(bytes).await;
        let answer = wire.answer().await.unwrap();
        answer.is_problem(400, &[whole("validation_error")]);
        assert_eq!(answer.must("connection").to_lowercase(), "close");
        assert!(wire.is_closed().await);
    }
}

#[tokio::test]
async fn a_body_that_announces_too_much_is_refused_before_it_comes() {
    let (world, bearer) = prepared().await;
    for length in ["65537", "9999999999", "18446744073709551615"] {
        let headers = [good(&bearer).as_slice(), &[("content-length", length)]].concat();
        let mut wire = Wire::connect(&world.server.base_url).await;
        wire.send(request("GET", "/v1/me", &headers)).await;
        wire.answer()
            .await
            .unwrap()
            .is_problem(400, &[whole("validation_error")]);
        assert!(wire.is_closed().await);
    }
}

#[tokio::test]
async fn a_url_may_have_8_kib() {
    let (world, bearer) = prepared().await;
    let target = |length: usize| format!("/v1/me?x={}", "y".repeat(length - 9));
    let longest = request("GET", &target(8 * 1024), &good(&bearer));
    Wire::exchange(&world.server.base_url, longest)
        .await
        .invalid(&["x"]);
    for length in [8 * 1024 + 1, 12 * 1024] {
        let mut wire = Wire::connect(&world.server.base_url).await;
        wire.send(request("GET", &target(length), &good(&bearer))).await;
        let answer = wire.answer().await.unwrap();
        assert!((400..500).contains(&answer.status), "{answer:?}");
        assert!(wire.is_closed().await);
    }
}

#[tokio::test]
async fn headers_may_have_16_kib() {
    let (world, bearer) = prepared().await;
    let with = |size: usize| {
        let filler = "z".repeat(size);
        request(
            "GET",
            "/v1/me",
            &[good(&bearer).as_slice(), &[("x-filler", &filler)]].concat(),
        )
    };
    Wire::exchange(&world.server.base_url, with(15 * 1024))
        .await
        .expect(200);
    for size in [17 * 1024, 40 * 1024] {
        let mut wire = Wire::connect(&world.server.base_url).await;
        wire.send(with(size)).await;
        let answer = wire.answer().await.unwrap();
        assert!((400..500).contains(&answer.status), "{answer:?}");
        assert!(wire.is_closed().await);
    }
}

#[tokio::test]
async fn what_is_no_http_is_refused_and_the_server_goes_on() {
    let (world, bearer) = prepared().await;
    let garbage = [
        "GARBAGE\r\n\r\n",
        "GET /v1/me\r\n\r\n",
        "GET /v1/me HTTP/1.1\r\nno colon\r\n\r\n",
    ];
    for bytes in garbage {
        let mut wire = Wire::connect(&world.server.base_url).await;
        wire.send(bytes).await;
        if let Some(answer) = wire.answer().await {
            assert!((400..500).contains(&answer.status), "{answer:?}");
            assert!(wire.is_closed().await);
        }
    }
    Wire::exchange(&world.server.base_url, request("GET", "/v1/me", &good(&bearer)))
        .await
        .expect(200);
}

#[tokio::test]
async fn several_requests_on_one_connection_are_answered_in_order() {
    let (world, bearer) = prepared().await;
    let mut wire = Wire::connect(&world.server.base_url).await;
    let mut pipelined = String::new();
    for id in ["number-one", "number-two", "number-three"] {
        let headers = [good(&bearer).as_slice(), &[("x-request-id", id)]].concat();
        pipelined += &request("GET", "/v1/me", &headers);
    }
    wire.send(pipelined).await;
    for id in ["number-one", "number-two", "number-three"] {
        assert_eq!(wire.answer().await.unwrap().expect(200).must("x-trace-id"), id);
    }
}
