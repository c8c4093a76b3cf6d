//! Existing paths and methods, and the answers to others.

use blackbox::{Expect, Wire, World, offer_id, request};
use serde_json::json;
use testkit::Answer;

use crate::world;

async fn exchange(world: &World, method: &str, target: &str, token: Option<&str>) -> Answer {
    let bytes = match token {
        Some(token) => world.raw(method, target, token, &[]),
        None => request(method, target, &[("user-agent", "App/1.0")]),
    };
    Wire::exchange(&world.server.base_url, bytes).await
}

#[tokio::test]
async fn an_unknown_path_is_404_and_counted_with_a_token_and_401_without() {
    let world = world().await;
    world.stop_clock("2040-01-01T12:00:00Z").await;
    let (seller, token) = world.reader().await;
    let known = world.offer(&seller, 1, json!({})).await;
    let paths = "nothing||me/|me/more|Me|OFFERS|offers/|/offers|offers//|./offers|x/../offers|offers/ID/more|offers/ID/|\
        offers/%00|offers/%|offers/%4|offers/%zz|offers/%ff|offers/%E0%A4%A|offers/a%2Fb|offers/..|offers/%2E%2E|\
        offers/0|offers/nothing|offers/%7BID%7D|offers/urn:uuid:ID|offers/ID%20|offers/ID0|offers/ID%00|offers/ID%|\
        offers/ID%zz|offers/ID;x=1|offers/BARE|offers/LESS|offers/LONG";
    let paths = paths
        .replace("ID", &known)
        .replace("BARE", &known.replace('-', ""))
        .replace("LESS", &known[1..])
        .replace("LONG", &"x".repeat(4000));
    let before = world.get(&token, "/v1/me").await.number("x-ratelimit-remaining");
    for (n, path) in (1..).zip(paths.split('|')) {
        let path = format!("/v1/{path}");
        let answer = exchange(&world, "GET", &path, Some(&token)).await;
        assert_eq!(answer.status, 404, "{path}");
        answer.refused(404, "not_found");
        let remaining = answer.number("x-ratelimit-remaining");
        assert_eq!(remaining, before - n, "{path} is counted");
        let answer = exchange(&world, "GET", &path, None).await;
        assert_eq!(answer.status, 401, "{path}");
    }
    for path in ["/V1/me", "/v2/me", "/nothing", "/v1me"] {
        let answer = exchange(&world, "GET", path, Some(&token)).await;
        assert_eq!(answer.status, 404, "{path}");
    }
    let not_ascii = exchange(&world, "GET", "/v1/offers/ż%C5%BC", Some(&token)).await;
    assert!(matches!(not_ascii.status, 400 | 404), "{not_ascii:?}");
}

#[tokio::test]
async fn a_wrong_method_is_404_and_allow_lists_the_methods_of_the_path() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let one = format!("/v1/offers/{}", world.offer(&seller, 1, json!({})).await);
    for path in ["/v1/me", "/v1/offers", &one] {
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"] {
            let answer = exchange(&world, method, path, Some(&token)).await;
            assert_eq!(answer.status, 404, "{method} {path}");
            answer.refused(404, "not_found");
            let allow: Vec<_> = answer.must("allow").split(", ").collect();
            assert!(
                allow.contains(&"GET") && !allow.contains(&method),
                "{method} {path}: {allow:?}"
            );
            let answer = exchange(&world, method, path, None).await;
            answer.refused(401, "unauthorized");
        }
    }
    let shipments = format!("/v1/orders/{}/shipments", offer_id(1));
    for (method, path, allow) in [
        ("PATCH", "/v1/offers", Some("GET")),
        ("DELETE", &one, Some("GET, PATCH")),
        ("PUT", &shipments, Some("GET, POST")),
        ("PUT", "/v1/offers/batch", Some("POST")),
        ("GET", "/v1/offers/batch", Some("POST")),
        ("GET", "/v1/nothing", None),
    ] {
        let answer = exchange(&world, method, path, Some(&token)).await.expect(404);
        assert_eq!(answer.header("allow"), allow);
    }
    let office = world.office_delete("/sellers").await.expect(404);
    assert_eq!(office.header("allow"), Some("POST, GET"));
}

#[tokio::test]
async fn head_answers_as_get_without_a_body_and_is_counted() {
    let world = world().await;
    world.stop_clock("2040-01-01T12:00:00Z").await;
    let (seller, token) = world.reader().await;
    let one = format!("/v1/offers/{}", world.offer(&seller, 1, json!({})).await);
    let missing = format!("/v1/offers/{}", offer_id(2));
    let request = |method: &str, path: &str| world.raw(method, path, &token, &[]);
    let mut wire = Wire::connect(&world.server.base_url).await;
    for (path, status) in [
        ("/v1/me", 200),
        ("/v1/offers", 200),
        (&one, 200),
        (&missing, 404),
        ("/v1/nothing", 404),
    ] {
        wire.send(request("GET", path)).await;
        let get = wire.answer().await.unwrap().expect(status);
        wire.send(request("HEAD", path)).await;
        let head = wire.bare_answer().await.unwrap().expect(status);
        assert_eq!(head.header("content-type"), get.header("content-type"), "{path}");
        assert_ne!(head.must("x-trace-id"), get.must("x-trace-id"));
        // If an answer to HEAD had a body, the next answer could not be parsed.
        wire.send(request("GET", "/v1/me")).await;
        let next = wire.answer().await.unwrap().expect(200);
        let left = |answer: &Answer| answer.number("x-ratelimit-remaining");
        assert_eq!(left(&next), left(&get) - 2, "{path}");
    }
    wire.send(world.raw("HEAD", "/v1/me", "ps_at_x", &[])).await;
    let head = wire.bare_answer().await.unwrap().expect(401);
    head.must("www-authenticate");
}

#[tokio::test]
async fn a_404_for_a_slash_at_the_end_says_so() {
    let world = world().await;
    let (_, token) = world.reader().await;
    for (path, says_so) in [
        ("/v1/offers/", true),
        ("/v1/offers/x/", true),
        ("/v1/orders/ZAM-1/shipments/", true),
        ("/v1/offers//", false),
        ("/v1/nothing/", false),
        ("/oauth/token/", true),
        ("/oauth/nothing/", false),
    ] {
        let answer = exchange(&world, "GET", path, Some(&token)).await.expect(404);
        let said = String::from_utf8_lossy(&answer.bytes);
        assert_eq!(said.contains("trailing slash"), says_so, "{path}: {said}");
    }
}

#[tokio::test]
async fn the_root_leads_to_the_documentation() {
    let world = world().await;
    let answer = exchange(&world, "GET", "/", None).await.expect(308);
    assert_eq!(answer.must("location"), "/docs");
}
