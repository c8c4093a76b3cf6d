//! `GET /oauth/authorize`: each parameter's rule, and whether its breach is told to the browser or to the client.

use blackbox::{Application, Asking, CALLBACK, Callback, Expect, World};
use reqwest::Method;
use serde_json::json;
use testkit::Answer;

use crate::world_of_consent;

async fn prepared() -> (World, Application) {
    let world = world_of_consent().await;
    let owner = world.seller().await;
    let application = world.partner(&owner, &["offers:read", "orders:read"]).await;
    (world, application)
}

async fn ask(world: &World, asking: &Asking) -> Answer {
    world
        .client
        .get(&world.url(&asking.path()))
        .without("user-agent")
        .send()
        .await
}

/// The error that goes back to the client, with the state and who answers.
#[track_caller]
fn sent_back(world: &World, answer: &Answer, error: &str, state: Option<&str>) {
    assert_eq!(answer.status, 302, "{answer:?}");
    let back = Callback::of(answer);
    assert!(back.address.starts_with(&format!("{CALLBACK}?")), "{back:?}");
    assert_eq!(back.get("error"), Some(error), "{back:?}");
    assert_eq!(back.get("state"), state, "{back:?}");
    assert_eq!(back.get("iss"), Some(world.server.base_url.as_str()), "{back:?}");
    assert_eq!(back.get("code"), None);
    assert_eq!(answer.must("cache-control"), "no-store");
    answer.must("x-trace-id");
}

#[track_caller]
fn to_consent(world: &World, answer: &Answer) {
    assert_eq!(answer.status, 302, "{answer:?}");
    let screen = format!("{}/panel/consent?request=", world.server.base_url);
    assert!(answer.must("location").starts_with(&screen), "{answer:?}");
    assert_eq!(answer.must("cache-control"), "no-store");
    assert_eq!(answer.must("referrer-policy"), "no-referrer");
    answer.must("x-trace-id");
}

#[tokio::test]
async fn a_proper_request_leads_to_the_screen_by_a_handle_that_tells_nothing() {
    let (world, application) = prepared().await;
    let asking = world.asking(&application, "offers:read");
    let (first, second) = (ask(&world, &asking).await, ask(&world, &asking).await);
    to_consent(&world, &first);
    assert_ne!(
        first.header("location"),
        second.header("location"),
        "each has a handle of its own"
    );
    let location = first.must("location");
    for (name, value) in &asking.parameters {
        assert!(
            name == "response_type" || !location.contains(value),
            "{name} is in {location}"
        );
    }
    let traced = world
        .client
        .get(&world.url(&asking.path()))
        .header("x-request-id", "my-trace-1");
    assert_eq!(traced.send().await.must("x-trace-id"), "my-trace-1");
}

#[tokio::test]
async fn where_nobody_knows_whom_to_trust_the_browser_is_told() {
    let (world, application) = prepared().await;
    let proper = world.asking(&application, "offers:read");
    let id = application.client_id.as_str();
    let tampered = [
        (proper.clone().without("client_id"), "invalid_request"),
        (proper.clone().with("client_id", ""), "invalid_request"),
        (proper.clone().and("client_id", id), "invalid_request"),
        (proper.clone().with("client_id", "psa_nobody"), "invalid_client"),
        (
            proper.clone().with("client_id", &id.to_uppercase()),
            "invalid_client",
        ),
        (proper.clone().without("redirect_uri"), "invalid_request"),
        (proper.clone().with("redirect_uri", ""), "invalid_request"),
        (proper.clone().and("redirect_uri", CALLBACK), "invalid_request"),
    ];
    for (asking, error) in tampered {
        let answer = ask(&world, &asking).await;
        answer.oauth_error(400, error);
        assert_eq!(answer.header("location"), None, "{asking:?}");
    }
    for address in [
        "https://app.example/callback/",
        "https://app.example/callback?x=1",
        "https://app.example/callback#",
        "https://app.example/Callback",
        "https://APP.example/callback",
        "https://app.example:443/callback",
        "http://app.example/callback",
        "https://app.example/%63allback",
        "https://app.example/",
        "https://app.example.evil.example/callback",
        "https://app.example/callback ",
        "javascript:alert(1)",
        "//app.example/callback",
    ] {
        let answer = ask(&world, &proper.clone().with("redirect_uri", address)).await;
        answer.oauth_error(400, "invalid_request");
        assert_eq!(answer.header("location"), None, "{address}");
    }
}

#[tokio::test]
async fn suspended_deleted_and_built_in_applications_are_unknown_here() {
    let (world, application) = prepared().await;
    let asking = world.asking(&application, "offers:read");
    world
        .move_application(&application.client_id, "suspension")
        .await
        .expect(200);
    ask(&world, &asking).await.oauth_error(400, "invalid_client");
    world
        .move_application(&application.client_id, "reinstatement")
        .await
        .expect(200);
    to_consent(&world, &ask(&world, &asking).await);
    let path = format!("/applications/{}", application.client_id);
    world.office(Method::DELETE, &path).send().await.expect(204);
    ask(&world, &asking).await.oauth_error(400, "invalid_client");
    let (_, personal) = world.reader().await;
    let me = world.get(&personal, "/v1/me").await.expect(200).json();
    let built_in = me["app"]["client_id"].as_str().unwrap();
    ask(&world, &asking.with("client_id", built_in))
        .await
        .oauth_error(400, "invalid_client");
}

#[tokio::test]
async fn every_other_breach_goes_back_to_the_client() {
    let (world, application) = prepared().await;
    let proper = world.asking(&application, "offers:read");
    let state = proper
        .parameters
        .iter()
        .find(|(name, _)| name == "state")
        .unwrap()
        .1
        .clone();
    let long = "x".repeat(1025);
    let broken = [
        (proper.clone().without("response_type"), "invalid_request"),
        (proper.clone().with("response_type", ""), "invalid_request"),
        (
            proper.clone().with("response_type", "token"),
            "unsupported_response_type",
        ),
        (
            proper.clone().with("response_type", "code token"),
            "unsupported_response_type",
        ),
        (
            proper.clone().with("response_type", "CODE"),
            "unsupported_response_type",
        ),
        (proper.clone().and("response_type", "code"), "invalid_request"),
        (
            proper.clone().and("unknown", "1").and("unknown", "2"),
            "invalid_request",
        ),
        (proper.clone().without("code_challenge"), "invalid_request"),
        (
            proper.clone().with("code_challenge", &"A".repeat(42)),
            "invalid_request",
        ),
        (
            proper.clone().with("code_challenge", &"A".repeat(44)),
            "invalid_request",
        ),
        (
            proper
                .clone()
                .with("code_challenge", &format!("{}=", "A".repeat(42))),
            "invalid_request",
        ),
        (
            proper
                .clone()
                .with("code_challenge", &format!("{}+", "A".repeat(42))),
            "invalid_request",
        ),
        (proper.clone().without("code_challenge_method"), "invalid_request"),
        (
            proper.clone().with("code_challenge_method", "plain"),
            "invalid_request",
        ),
        (
            proper.clone().with("code_challenge_method", "s256"),
            "invalid_request",
        ),
        (proper.clone().without("scope"), "invalid_scope"),
        (proper.clone().with("scope", ""), "invalid_scope"),
        (proper.clone().with("scope", "offers:delete"), "invalid_scope"),
        (proper.clone().with("scope", "offers:write"), "invalid_scope"),
        (
            proper.clone().with("scope", "offers:read messaging"),
            "invalid_scope",
        ),
        (
            proper.clone().with("scope", "offers:read,orders:read"),
            "invalid_scope",
        ),
    ];
    for (asking, error) in broken {
        sent_back(&world, &ask(&world, &asking).await, error, Some(&state));
    }
    for (state, echoed) in [("", None), ("seven77", Some("seven77")), (long.as_str(), None)] {
        let answer = ask(&world, &proper.clone().with("state", state)).await;
        sent_back(&world, &answer, "invalid_request", echoed);
    }
    sent_back(
        &world,
        &ask(&world, &proper.clone().without("state")).await,
        "invalid_request",
        None,
    );
    let twice = ask(&world, &proper.clone().and("state", "another-state")).await;
    sent_back(&world, &twice, "invalid_request", None);
}

#[tokio::test]
async fn what_is_fine_is_taken_as_it_comes() {
    let (world, application) = prepared().await;
    let proper = world.asking(&application, "offers:read");
    let fine = [
        proper
            .clone()
            .with("scope", "offers:read offers:read orders:read"),
        proper.clone().with("state", &"ą".repeat(1024)),
        proper.clone().with("state", "eight888"),
        proper.clone().and("unknown", "parameter"),
        proper.clone().and("resource", "https://elsewhere.example"),
    ];
    for asking in fine {
        to_consent(&world, &ask(&world, &asking).await);
    }
}

#[tokio::test]
async fn checks_come_in_their_order() {
    let (world, application) = prepared().await;
    // From the last check to the first: each breach hides those behind it.
    let mut asking = world.asking(&application, "nothing");
    let state = asking
        .parameters
        .iter()
        .find(|(name, _)| name == "state")
        .unwrap()
        .1
        .clone();
    sent_back(&world, &ask(&world, &asking).await, "invalid_scope", Some(&state));
    asking = asking.with("code_challenge", "short");
    sent_back(
        &world,
        &ask(&world, &asking).await,
        "invalid_request",
        Some(&state),
    );
    asking = asking.with("state", "short");
    let back = ask(&world, &asking).await;
    sent_back(&world, &back, "invalid_request", Some("short"));
    assert!(
        Callback::of(&back)
            .get("error_description")
            .unwrap()
            .contains("state")
    );
    asking = asking.with("response_type", "token");
    sent_back(
        &world,
        &ask(&world, &asking).await,
        "unsupported_response_type",
        Some("short"),
    );
    asking = asking.and("scope", "again");
    sent_back(
        &world,
        &ask(&world, &asking).await,
        "invalid_request",
        Some("short"),
    );
    asking = asking.with("redirect_uri", "https://evil.example/callback");
    ask(&world, &asking).await.oauth_error(400, "invalid_request");
    asking = asking.with("client_id", "psa_nobody");
    ask(&world, &asking).await.oauth_error(400, "invalid_client");
}

#[tokio::test]
async fn a_redirect_address_keeps_its_query() {
    let (world, _) = prepared().await;
    let owner = world.seller().await;
    let address = "https://app.example/callback?shop=%C5%BC%C3%B3%C5%82w&x=1";
    let with_query = json!({"purpose": "for_other_sellers", "redirect_uris": [CALLBACK, address]});
    let application = world.register(&owner, with_query).await;
    let asking = world
        .asking(&application, "nothing")
        .with("redirect_uri", address);
    let back = Callback::of(&ask(&world, &asking).await);
    assert!(
        back.address
            .starts_with(&format!("{address}&error=invalid_scope&")),
        "{back:?}"
    );
    assert_eq!(back.get("shop"), Some("żółw"));
}

#[tokio::test]
async fn other_methods_and_paths_are_an_oauth_404() {
    let (world, application) = prepared().await;
    let path = world.asking(&application, "offers:read").path();
    for (method, path) in [
        (Method::POST, path.as_str()),
        (Method::DELETE, path.as_str()),
        (Method::GET, "/oauth/token"),
        (Method::GET, "/oauth/revoke"),
        (Method::GET, "/oauth/"),
        (Method::POST, "/oauth/device"),
        (Method::GET, "/oauth/authorize/"),
    ] {
        let answer = world.client.request(method, &world.url(path)).send().await;
        answer.oauth_error(404, "invalid_request");
    }
}
