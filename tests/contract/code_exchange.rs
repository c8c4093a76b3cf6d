//! `POST /oauth/token` with `authorization_code`: valid uses of a code, and what uses it up.

use blackbox::{Expect, Pair, assert_members};
use serde_json::json;

use crate::token_endpoint::form_with_basic;
use crate::{instant, is_opaque, with_partner, world_of_consent};

#[tokio::test]
async fn a_code_is_exchanged_for_a_pair_of_the_consenting_seller() {
    let (world, mut member, app) = with_partner(&["offers:read", "orders:read", "messaging"]).await;
    let asking = world.asking(&app, "orders:read offers:read");
    let code = world.code(&mut member.browser, &asking).await;
    assert!(code.starts_with("ps_ac_"), "{code}");
    let answer = world.exchange(&app, &asking, &code).await.expect(200);
    let expected = json!({"token_type": "Bearer", "expires_in": 43200, "scope": "offers:read orders:read"});
    assert_members(&answer.json(), expected);
    let pair = Pair::of(answer);
    assert!(pair.access.starts_with("ps_at_") && pair.refresh.starts_with("ps_rt_"));
    let me = world.read(&pair.access, "/v1/me").await;
    assert_eq!(me["seller"]["id"], json!(member.seller.id));
    assert_eq!(me["app"]["client_id"], json!(app.client_id));
    assert_eq!(me["scopes"], json!(["offers:read", "orders:read"]));
    assert_eq!(me["token"]["kind"], "access");
    // Each consent gives an independent pair.
    let other = world.pair(&mut member.browser, &app, "orders:read").await;
    for (one, other) in [(&pair.access, &other.access), (&pair.refresh, &other.refresh)] {
        is_opaque(one, other);
    }
    world.revoke(&app, &pair.refresh).await.expect(200);
    assert!(!world.works(&pair.access).await && world.works(&other.access).await);
    let next = world.refreshed(&app, &other.refresh).await;
    assert_eq!(next.scope, "orders:read");
}

#[tokio::test]
async fn a_failed_exchange_does_not_use_up_the_code() {
    let (world, mut member, app) = with_partner(&["offers:read"]).await;
    let asking = world.asking(&app, "offers:read");
    let code = world.code(&mut member.browser, &asking).await;
    for (name, value, error) in [
        ("code", "", "invalid_request"),
        ("code_verifier", "short", "invalid_request"),
        (
            "code_verifier",
            &"v".repeat(43),
            "invalid_grant verifier_mismatch",
        ),
        (
            "redirect_uri",
            "https://app.example/callback/",
            "invalid_grant redirect_mismatch",
        ),
        ("code", "nonsense", "invalid_grant"),
        ("code", &code[..code.len() - 1], "invalid_grant unknown"),
    ] {
        let mut fields = asking.exchanging(&code);
        fields.iter_mut().find(|(other, _)| *other == name).unwrap().1 = value;
        let answer = world.oauth(&app, "token", &fields).await;
        answer.oauth_error(400, error);
    }
    for missing in ["code", "redirect_uri", "code_verifier"] {
        let mut fields = asking.exchanging(&code).to_vec();
        fields.retain(|(name, _)| *name != missing);
        let answer = world.oauth(&app, "token", &fields).await;
        answer.oauth_error(400, "invalid_request");
    }
    let mut wrong = app.clone();
    wrong.client_secret.push('x');
    world
        .no_exchange(&wrong, &asking, &code, "invalid_client none")
        .await;
    wrong.client_secret.clear();
    world.no_exchange(&wrong, &asking, &code, "invalid_client").await;
    Pair::of(world.exchange(&app, &asking, &code).await);
}

#[tokio::test]
async fn a_replay_revokes_the_codes_tokens_and_an_incomplete_one_does_not() {
    let (world, mut member, app) = with_partner(&["offers:read"]).await;
    let asking = world.asking(&app, "offers:read");
    let code = world.code(&mut member.browser, &asking).await;
    // A code from another client is neither used nor a replay.
    let other = world.partner(&world.seller().await, &["offers:read"]).await;
    let by_other = async || {
        world
            .no_exchange(&other, &asking, &code, "invalid_grant unknown")
            .await;
    };
    by_other().await;
    let first = Pair::of(world.exchange(&app, &asking, &code).await);
    by_other().await;
    let second = world.refreshed(&app, &first.refresh).await;
    let (mut forged, mut elsewhere) = (asking.clone(), asking.exchanging(&code));
    forged.verifier = "v".repeat(43);
    world.no_exchange(&app, &forged, &code, "invalid_grant").await;
    elsewhere[2].1 = "https://app.example/other";
    let answer = world.oauth(&app, "token", &elsewhere).await;
    answer.oauth_error(400, "invalid_grant");
    assert!(world.works(&first.access).await && world.works(&second.access).await);
    for error in ["invalid_grant used", "invalid_grant revoked"] {
        world.no_exchange(&app, &asking, &code, error).await;
    }
    world.has_ended(&app, &first).await;
    world.has_ended(&app, &second).await;
}

#[tokio::test]
async fn a_code_expires_after_ten_minutes() {
    let (world, mut member, app) = with_partner(&["offers:read"]).await;
    let clock = world.stop_clock("2040-01-01T12:00:00Z").await;
    // The browser's session started before the clock was frozen.
    member.browser = world.browser_of(&member.seller).await;
    let asking = world.asking(&app, "offers:read");
    let late = world.code(&mut member.browser, &asking).await;
    clock.freeze(instant("2040-01-01T12:10:00Z")).await;
    world
        .no_exchange(&app, &asking, &late, "invalid_grant expired")
        .await;
    let code = world.code(&mut member.browser, &asking).await;
    clock.freeze(instant("2040-01-01T12:19:59.999Z")).await;
    Pair::of(world.exchange(&app, &asking, &code).await);
}

#[tokio::test]
async fn public_clients_need_no_secret_and_a_wrong_one_is_refused() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let owner = world.seller().await;
    let app = world.public_partner(&owner, &["offers:read"]).await;
    assert_eq!(app.client_secret, "");
    let asking = world.asking(&app, "offers:read");
    let code = world.code(&mut member.browser, &asking).await;
    let mut with_secret = app.clone();
    with_secret.client_secret = "pss_invented".to_owned();
    let error = "invalid_client";
    world.no_exchange(&with_secret, &asking, &code, error).await;
    let pair = Pair::of(world.exchange(&app, &asking, &code).await);
    world.no_refresh(&with_secret, &pair.refresh, error).await;
    // A public client learns why it is refused from a token of its own alone.
    world.moved(&app, "suspension").await;
    for (token, error) in [
        (pair.refresh.as_str(), "invalid_client suspended"),
        ("ps_rt_invented", "invalid_client none"),
    ] {
        world.no_refresh(&app, token, error).await;
    }
    world.moved(&app, "reinstatement").await;
    let used = pair.refresh;
    let pair = world.refreshed(&app, &used).await;
    // HTTP Basic with an empty password is not a secret either.
    let body = format!("grant_type=refresh_token&refresh_token={}", pair.refresh);
    let basic_alone = form_with_basic(&world, &format!("{}:", app.client_id), &body).await;
    let pair = Pair::of(basic_alone);
    world.revoke(&app, &pair.refresh).await.expect(200);
    assert!(!world.works(&pair.access).await);
    for token in [&pair.refresh, &used] {
        world.no_refresh(&app, token, "invalid_grant revoked").await;
    }
}
