//! `GET /oauth/authorize`: the rule of each parameter, who gets its error (browser or client), and its limit.

use blackbox::{Asking, CALLBACK, Callback, Expect, World, text};
use serde_json::json;
use testkit::Answer;

use crate::{instant, with_partner, world};

async fn ask(world: &World, asking: &Asking) -> Answer {
    world.at("GET", &asking.path()).without("user-agent").send().await
}

/// Asserts that an error goes back to the client, with `state` and `iss`.
async fn sent_back(world: &World, asking: &Asking, error: &str, state: Option<&str>) -> Callback {
    let answer = ask(world, asking).await.expect(302);
    let back = Callback::of(&answer);
    assert!(back.address.starts_with(&format!("{CALLBACK}?")), "{back:?}");
    assert_eq!(back.get("error"), Some(error), "{asking:?}: {back:?}");
    assert_eq!(back.get("state"), state, "{asking:?}: {back:?}");
    assert_eq!(back.get("iss"), Some(world.server.base_url.as_str()), "{back:?}");
    assert_eq!(back.get("code"), None);
    back
}

/// Asserts that only the browser gets the error.
async fn refused(world: &World, asking: &Asking, error: &str) {
    let answer = ask(world, asking).await;
    answer.oauth_error(400, error);
    assert_eq!(answer.header("location"), None, "{asking:?}");
    // A seller reads it.
    let description = text(&answer.json(), "error_description");
    assert!(description.contains("Contact its provider."), "{description}");
    assert!(description.ends_with('.'), "cut off: {description}");
}

async fn to_consent(world: &World, asking: &Asking) -> String {
    let answer = ask(world, asking).await.expect(302);
    let screen = format!("{}/panel/consent?request=", world.server.base_url);
    assert!(answer.must("location").starts_with(&screen), "{answer:?}");
    answer.must("location").to_owned()
}

#[tokio::test]
async fn a_valid_request_redirects_to_the_screen_with_an_opaque_handle() {
    let (world, _, app) = with_partner(&["offers:read", "orders:read"]).await;
    let proper = world.asking(&app, "offers:read");
    let location = to_consent(&world, &proper).await;
    let other = to_consent(&world, &proper).await;
    assert_ne!(location, other, "each has its own handle");
    for (name, value) in &proper.parameters {
        let is_told = name != "response_type" && location.contains(value);
        assert!(!is_told, "{name} is in {location}");
    }
}

#[tokio::test]
async fn without_a_trusted_redirect_uri_the_browser_gets_the_error() {
    let (world, _, app) = with_partner(&["offers:read", "orders:read"]).await;
    let proper = || world.asking(&app, "offers:read");
    for (asking, error) in [
        (proper().without("client_id"), "invalid_request"),
        (proper().with("client_id", "psa_nobody"), "invalid_client"),
        (
            proper().with("redirect_uri", "https://app.example/callback?x=1"),
            "invalid_request",
        ),
    ] {
        refused(&world, &asking, error).await;
    }
    // A suspended application is unknown here.
    world.moved(&app, "suspension").await;
    refused(&world, &proper(), "invalid_client").await;
}

#[tokio::test]
async fn every_other_error_is_redirected_to_the_client() {
    let (world, _, app) = with_partner(&["offers:read", "orders:read"]).await;
    let proper = world.asking(&app, "offers:read");
    let state = proper.get("state").to_owned();
    // One missing parameter does not hide another one.
    let neither = proper
        .clone()
        .without("code_challenge")
        .without("code_challenge_method");
    let back = sent_back(&world, &neither, "invalid_request", Some(&state)).await;
    for name in ["code_challenge,", "code_challenge_method"] {
        assert!(back.get("error_description").unwrap().contains(name), "{back:?}");
    }
    for (asking, error, echoed) in [
        (
            proper.clone().with("response_type", "token"),
            "unsupported_response_type",
            Some(state.as_str()),
        ),
        (
            proper.clone().with("scope", "offers:write"),
            "invalid_scope",
            Some(&state),
        ),
        (
            proper.clone().with("state", "seven77"),
            "invalid_request",
            Some("seven77"),
        ),
        (proper.and("state", "another-state"), "invalid_request", None),
    ] {
        sent_back(&world, &asking, error, echoed).await;
    }
}

#[tokio::test]
async fn a_redirect_uri_keeps_its_query() {
    let world = world().await;
    let owner = world.seller().await;
    let address = "https://app.example/callback?shop=%C5%BC%C3%B3%C5%82w&x=1";
    let with_query = json!({"purpose": "for_other_sellers", "redirect_uris": [CALLBACK, address]});
    let app = world.register(&owner, with_query).await;
    let asking = world.asking(&app, "nothing").with("redirect_uri", address);
    let back = Callback::of(&ask(&world, &asking).await);
    let prefix = format!("{address}&error=invalid_scope&");
    assert!(back.address.starts_with(&prefix), "{back:?}");
    assert_eq!(back.get("shop"), Some("żółw"));
}

#[tokio::test]
async fn an_address_has_60_requests_a_minute_over_all_processes_and_separate_ones_for_tokens() {
    let world = world().await;
    let clock = world.stop_clock("2040-01-01T12:00:15Z").await;
    let second = world.another().await;
    let bases = [&world.server.base_url, &second.base_url];
    let app = world.partner(&world.seller().await, &["offers:read"]).await;
    let proper = world.asking(&app, "offers:read").path();
    let ask = |n: usize, path: &str| world.client.get(&format!("{}{path}", bases[n % 2])).send();
    for n in 0..60 {
        let nobody = "/oauth/authorize?client_id=psa_nobody";
        let cases = [(proper.as_str(), 302), ("/oauth/authorize", 400), (nobody, 400)];
        let (path, status) = cases[n % 3];
        ask(n, path).await.expect(status);
    }
    for n in 0..2 {
        let limited = ask(n, &proper).await;
        limited.oauth_error(429, "rate_limited");
        assert_eq!(limited.must("retry-after"), "45");
        assert_eq!(limited.header("location"), None);
    }
    world.token_answer(&app).await.expect(200);
    clock.freeze(instant("2040-01-01T12:01:00Z")).await;
    ask(0, &proper).await.expect(302);
}
