//! `POST /oauth/token` with `authorization_code`: what a code is good for, and what uses it up.

use blackbox::{Asking, CALLBACK, Expect, Pair, World};
use serde_json::{Value, json};
use testkit::Answer;

use crate::{
    instant,
    token_endpoint::{basic, credentials, form_with_basic},
    world_of_consent,
};

async fn exchange_with(
    world: &World,
    application: &blackbox::Application,
    fields: &[(&str, &str)],
) -> Answer {
    let grant = [&[("grant_type", "authorization_code")], fields].concat();
    world.oauth(application, "token", &grant).await
}

#[tokio::test]
async fn a_code_gives_a_pair_for_the_seller_who_consented() {
    let world = world_of_consent().await;
    let (owner, mut member) = (world.seller().await, world.member().await);
    let application = world
        .partner(&owner, &["offers:read", "orders:read", "messaging"])
        .await;
    let asking = world.asking(&application, "orders:read offers:read");
    let code = world.code(&mut member.browser, &asking).await;
    assert!(code.starts_with("ps_ac_"), "{code}");
    let answer = world.exchange(&application, &asking, &code).await.expect(200);
    assert_eq!(answer.must("cache-control"), "no-store");
    assert_eq!(answer.must("pragma"), "no-cache");
    answer.must("x-trace-id");
    let json = answer.json();
    assert_eq!(json.as_object().unwrap().len(), 5, "{json}");
    assert_eq!(
        (&json["token_type"], &json["expires_in"]),
        (&json!("Bearer"), &json!(43200))
    );
    assert_eq!(json["scope"], "offers:read orders:read");
    let pair = Pair::of(answer);
    assert!(pair.access.starts_with("ps_at_") && pair.refresh.starts_with("ps_rt_"));
    let me = world.get(&pair.access, "/v1/me").await.expect(200).json();
    assert_eq!(me["seller"]["id"], json!(member.seller.id));
    assert_eq!(me["app"]["client_id"], json!(application.client_id));
    assert_eq!(me["scopes"], json!(["offers:read", "orders:read"]));
    assert_eq!(me["token"]["kind"], "access");
    world
        .get(&pair.refresh, "/v1/me")
        .await
        .refused(401, "unauthorized");
    world.get(&code, "/v1/me").await.refused(401, "unauthorized");
}

#[tokio::test]
async fn each_consent_gives_an_independent_pair() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let application = world
        .partner(&world.seller().await, &["offers:read", "orders:read"])
        .await;
    let one = world.pair(&mut member.browser, &application, "offers:read").await;
    let other = world.pair(&mut member.browser, &application, "orders:read").await;
    world.revoke(&application, &one.refresh).await.expect(200);
    assert!(!world.works(&one.access).await);
    assert!(world.works(&other.access).await);
    assert_eq!(
        Pair::of(world.refresh(&application, &other.refresh).await).scope,
        "orders:read"
    );
}

/// A code with which everything is fine, and the ways to break its exchange.
fn breaches(asking: &Asking, code: &str) -> Vec<(Vec<(String, String)>, &'static str)> {
    let proper = [
        ("code", code),
        ("redirect_uri", CALLBACK),
        ("code_verifier", asking.verifier.as_str()),
    ];
    let with = |name: &str, value: &str| -> Vec<(String, String)> {
        let changed = proper
            .iter()
            .map(|(key, old)| (*key, if *key == name { value } else { *old }));
        changed
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    };
    let long = "v".repeat(129);
    vec![
        (with("code", ""), "invalid_request"),
        (with("redirect_uri", ""), "invalid_request"),
        (with("code_verifier", ""), "invalid_request"),
        (with("code_verifier", &"v".repeat(42)), "invalid_request"),
        (with("code_verifier", &long), "invalid_request"),
        (
            with("code_verifier", &format!("{}+", "v".repeat(43))),
            "invalid_request",
        ),
        (
            with("code_verifier", &format!("{}ż", "v".repeat(43))),
            "invalid_request",
        ),
        (with("code_verifier", &"v".repeat(43)), "invalid_grant"),
        (with("code_verifier", &"v".repeat(128)), "invalid_grant"),
        (with("redirect_uri", "https://app.example/other"), "invalid_grant"),
        (
            with("redirect_uri", "https://app.example/callback/"),
            "invalid_grant",
        ),
        (with("code", "ps_ac_"), "invalid_grant"),
        (with("code", "nonsense"), "invalid_grant"),
        (with("code", &code[..code.len() - 1]), "invalid_grant"),
        (with("code", &code.replace("ps_ac_", "ps_rt_")), "invalid_grant"),
    ]
}

#[tokio::test]
async fn a_failed_exchange_uses_nothing_up() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let application = world.partner(&world.seller().await, &["offers:read"]).await;
    let asking = world.asking(&application, "offers:read");
    let code = world.code(&mut member.browser, &asking).await;
    for (fields, error) in breaches(&asking, &code) {
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let answer = exchange_with(&world, &application, &fields).await;
        assert_eq!(answer.json()["error"], error, "{fields:?}: {answer:?}");
        answer.oauth_error(400, error);
    }
    let mut wrong = application.clone();
    wrong.client_secret.push('x');
    world
        .exchange(&wrong, &asking, &code)
        .await
        .oauth_error(401, "invalid_client");
    wrong.client_secret.clear();
    world
        .exchange(&wrong, &asking, &code)
        .await
        .oauth_error(401, "invalid_client");
    Pair::of(world.exchange(&application, &asking, &code).await);
}

#[tokio::test]
async fn another_client_gets_nothing_and_harms_nobody() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let owner = world.seller().await;
    let (application, other) = (
        world.partner(&owner, &["offers:read"]).await,
        world.partner(&owner, &["offers:read"]).await,
    );
    let asking = world.asking(&application, "offers:read");
    let code = world.code(&mut member.browser, &asking).await;
    world
        .exchange(&other, &asking, &code)
        .await
        .oauth_error(400, "invalid_grant");
    let pair = Pair::of(world.exchange(&application, &asking, &code).await);
    // A used code in another client's hand is no replay.
    world
        .exchange(&other, &asking, &code)
        .await
        .oauth_error(400, "invalid_grant");
    assert!(world.works(&pair.access).await);
    world
        .refresh(&other, &pair.refresh)
        .await
        .oauth_error(400, "invalid_grant");
    assert!(world.works(&pair.access).await);
    world.refresh(&application, &pair.refresh).await.expect(200);
}

#[tokio::test]
async fn a_replay_revokes_what_the_code_gave_and_a_wrong_one_does_not() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let application = world.partner(&world.seller().await, &["offers:read"]).await;
    let asking = world.asking(&application, "offers:read");
    let code = world.code(&mut member.browser, &asking).await;
    let first = Pair::of(world.exchange(&application, &asking, &code).await);
    let second = Pair::of(world.refresh(&application, &first.refresh).await);
    let mut forged = asking.clone();
    forged.verifier = "v".repeat(43);
    world
        .exchange(&application, &forged, &code)
        .await
        .oauth_error(400, "invalid_grant");
    let elsewhere = [
        ("code", code.as_str()),
        ("redirect_uri", "https://app.example/other"),
        ("code_verifier", &asking.verifier),
    ];
    exchange_with(&world, &application, &elsewhere)
        .await
        .oauth_error(400, "invalid_grant");
    assert!(world.works(&first.access).await && world.works(&second.access).await);
    world
        .exchange(&application, &asking, &code)
        .await
        .oauth_error(400, "invalid_grant");
    for pair in [&first, &second] {
        world.has_ended(&application, pair).await;
    }
}

#[tokio::test]
async fn a_code_ends_after_ten_minutes_and_its_handle_too() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let clock = world.stop_clock("2040-01-01T12:00:00Z").await;
    // The browser's session began before the clock was stopped.
    member.browser = world.browser_of(&member.seller).await;
    let application = world.partner(&world.seller().await, &["offers:read"]).await;
    let asking = world.asking(&application, "offers:read");
    let late = world.code(&mut member.browser, &asking).await;
    clock.freeze(instant("2040-01-01T12:10:00Z")).await;
    world
        .exchange(&application, &asking, &late)
        .await
        .oauth_error(400, "invalid_grant");
    let code = world.code(&mut member.browser, &asking).await;
    clock.freeze(instant("2040-01-01T12:19:59.999Z")).await;
    Pair::of(world.exchange(&application, &asking, &code).await);
}

#[tokio::test]
async fn public_clients_need_no_secret_and_a_wrong_one_is_refused() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let application = world
        .public_partner(&world.seller().await, &["offers:read"])
        .await;
    assert_eq!(application.client_secret, "");
    let asking = world.asking(&application, "offers:read");
    let code = world.code(&mut member.browser, &asking).await;
    let mut with_secret = application.clone();
    with_secret.client_secret = "pss_invented".to_owned();
    world
        .exchange(&with_secret, &asking, &code)
        .await
        .oauth_error(401, "invalid_client");
    let pair = Pair::of(world.exchange(&application, &asking, &code).await);
    world
        .refresh(&with_secret, &pair.refresh)
        .await
        .oauth_error(401, "invalid_client");
    let pair = Pair::of(world.refresh(&application, &pair.refresh).await);
    // Basic with an empty password is no secret either.
    let body = format!("grant_type=refresh_token&refresh_token={}", pair.refresh);
    let basic_alone = form_with_basic(&world, &format!("{}:", application.client_id), &body).await;
    Pair::of(basic_alone);
}

#[tokio::test]
async fn json_and_basic_work_for_codes_as_well() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let application = world.partner(&world.seller().await, &["offers:read"]).await;
    let asking = world.asking(&application, "offers:read");
    let code = world.code(&mut member.browser, &asking).await;
    let body: Value = json!({
        "grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK,
        "code_verifier": asking.verifier, "scope": "ignored:here", "unknown": "ignored",
    });
    let request = world
        .client
        .post(&world.url("/oauth/token"))
        .header("authorization", &basic(&credentials(&application)));
    let pair = Pair::of(request.json(&body).send().await);
    assert_eq!(pair.scope, "offers:read");
}

#[tokio::test]
async fn scopes_narrowed_between_consent_and_exchange_are_not_given() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let application = world
        .partner(&world.seller().await, &["offers:read", "orders:read"])
        .await;
    let asking = world.asking(&application, "offers:read orders:read");
    let (code, second) = (
        world.code(&mut member.browser, &asking).await,
        world.code(&mut member.browser, &asking).await,
    );
    let id = &application.client_id;
    world
        .adjust(id, &json!({"scopes": ["messaging"]}))
        .await
        .expect(200);
    world
        .exchange(&application, &asking, &code)
        .await
        .oauth_error(400, "invalid_grant");
    world
        .adjust(id, &json!({"scopes": ["orders:read", "messaging"]}))
        .await
        .expect(200);
    assert_eq!(
        Pair::of(world.exchange(&application, &asking, &second).await).scope,
        "orders:read"
    );
}
