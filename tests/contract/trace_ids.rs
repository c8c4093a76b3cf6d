//! `X-Trace-Id` is on every response; a proper `X-Request-Id` becomes it.

use blackbox::{Wire, World, request};

use crate::world;

/// Places of both listeners that answer in every manner there is.
fn places(world: &World) -> Vec<String> {
    let public = [
        "/v1/me",
        "/v1/nothing",
        "/oauth/token",
        "/oauth/nothing",
        "/nothing",
        "/",
    ];
    let office = ["/healthz", "/readyz", "/metrics", "/sellers", "/nothing"];
    let public = public.iter().map(|path| world.url(path));
    public
        .chain(
            office
                .iter()
                .map(|path| format!("{}{path}", world.server.backoffice_url)),
        )
        .collect()
}

#[tokio::test]
async fn a_request_id_that_follows_the_rule_is_echoed_everywhere() {
    let world = world().await;
    let longest = "x".repeat(64);
    for url in places(&world) {
        for id in ["12345678", "order-17:try.2_A", &longest] {
            let answer = world.client.get(&url).header("x-request-id", id).send().await;
            assert_eq!(answer.header("x-trace-id"), Some(id), "{url}");
        }
        let answer = world
            .client
            .get(&url)
            .without("user-agent")
            .header("x-request-id", "no-agent-1")
            .send()
            .await;
        assert_eq!(answer.header("x-trace-id"), Some("no-agent-1"), "{url}");
    }
}

#[tokio::test]
async fn any_other_request_id_is_ignored_and_a_new_one_made() {
    let world = world().await;
    let too_long = "x".repeat(65);
    for url in places(&world) {
        let mut seen = vec![
            world
                .client
                .get(&url)
                .send()
                .await
                .header("x-trace-id")
                .unwrap()
                .to_owned(),
        ];
        for id in [
            "",
            "1234567",
            &too_long,
            "with space",
            "semi;colon",
            "sl/ash/es",
            "przecię",
        ] {
            let answer = world.client.get(&url).header("x-request-id", id).send().await;
            let made = answer.header("x-trace-id").unwrap().to_owned();
            assert_ne!(made, id, "{url}");
            assert!((8..=64).contains(&made.len()), "{made}");
            assert!(!seen.contains(&made), "{url}: {made} was made twice");
            seen.push(made);
        }
    }
}

#[tokio::test]
async fn two_request_ids_are_none() {
    let world = world().await;
    let headers = [
        ("user-agent", "App/1.0"),
        ("x-request-id", "first-one"),
        ("x-request-id", "second-one"),
    ];
    let answer = Wire::exchange(&world.server.base_url, request("GET", "/v1/me", &headers)).await;
    let made = answer.header("x-trace-id").unwrap();
    assert!(made != "first-one" && made != "second-one", "{made}");
}
