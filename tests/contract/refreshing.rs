//! `POST /oauth/token` with `refresh_token`: rotation, reuse, and the scopes of the new tokens.

use std::collections::HashSet;

use blackbox::{Application, Expect as _, Pair, World, at_once, count_of, refreshing};
use chrono::TimeDelta;
use serde_json::json;
use testkit::Request;

use crate::{instant, with_partner};

#[tokio::test]
async fn each_refresh_gives_a_new_pair_and_reuse_ends_the_whole_family_and_no_other() {
    let (world, mut member, app) = with_partner(&["offers:read"]).await;
    let mut pairs = vec![world.pair(&mut member.browser, &app, "offers:read").await];
    let other = world.pair(&mut member.browser, &app, "offers:read").await;
    for n in 0..3 {
        let next = world.refreshed(&app, &pairs[n].refresh).await;
        pairs.push(next);
    }
    // Earlier access tokens stay valid.
    for pair in &pairs {
        assert!(world.works(&pair.access).await);
        assert_eq!(pair.scope, "offers:read");
    }
    let tokens = pairs.iter().flat_map(|pair| [&pair.access, &pair.refresh]);
    assert_eq!(tokens.collect::<HashSet<_>>().len(), 8);
    for error in ["invalid_grant used", "invalid_grant revoked"] {
        world.no_refresh(&app, &pairs[0].refresh, error).await;
    }
    for pair in &pairs {
        world.has_ended(&app, pair).await;
    }
    assert!(world.works(&other.access).await);
    world.refreshed(&app, &other.refresh).await;
}

#[tokio::test]
async fn an_invalid_or_foreign_refresh_token_is_refused_and_revokes_nothing() {
    let (world, mut member, app) = with_partner(&["offers:read"]).await;
    let other = world.partner(&world.seller().await, &["offers:read"]).await;
    let used = world.pair(&mut member.browser, &app, "offers:read").await;
    let pair = world.refreshed(&app, &used.refresh).await;
    let shorter = &pair.refresh[..pair.refresh.len() - 1];
    let upper = pair.refresh.to_uppercase();
    for token in [&pair.access, "ps_rt_", "nonsense", shorter, &upper] {
        world.no_refresh(&app, token, "invalid_grant unknown").await;
    }
    world.no_refresh(&app, "", "invalid_request").await;
    // Another client's valid or used token gives the same error, and stays unaffected.
    for token in [&pair.refresh, &used.refresh] {
        world.no_refresh(&other, token, "invalid_grant unknown").await;
    }
    let mut stranger = app.clone();
    stranger.client_secret = other.client_secret;
    world
        .no_refresh(&stranger, &used.refresh, "invalid_client none")
        .await;
    assert!(world.works(&pair.access).await);
    world.refreshed(&app, &pair.refresh).await;
}

#[tokio::test]
async fn a_refresh_token_lives_90_days_from_its_own_issue() {
    let (world, member, app) = with_partner(&["offers:read"]).await;
    let clock = world.stop_clock("2040-01-01T12:00:00Z").await;
    let mut browser = world.browser_of(&member.seller).await;
    let first = world.pair(&mut browser, &app, "offers:read").await;
    let late = world.pair(&mut browser, &app, "offers:read").await;
    let end = instant("2040-01-01T12:00:00Z") + TimeDelta::days(90);
    clock.freeze(end - TimeDelta::milliseconds(1)).await;
    assert!(!world.works(&first.access).await);
    let second = world.refreshed(&app, &first.refresh).await;
    assert!(world.works(&second.access).await);
    clock.freeze(end).await;
    // Expired is not reused: the family of an unused token is not revoked, but cannot be refreshed any more.
    world
        .no_refresh(&app, &late.refresh, "invalid_grant expired")
        .await;
    clock.freeze(end + TimeDelta::days(60)).await;
    world.refreshed(&app, &second.refresh).await;
}

#[tokio::test]
async fn a_refresh_never_widens_scopes() {
    let all = ["offers:read", "orders:read"];
    let (world, mut member, app) = with_partner(&all).await;
    let wide = world.pair(&mut member.browser, &app, &all.join(" ")).await;
    let scopes = async |token: &str| world.read(token, "/v1/me").await["scopes"].take();
    world.set_scopes(&app, &["orders:read", "messaging"]).await;
    assert_eq!(scopes(&wide.access).await, json!(["orders:read"]));
    let narrow = world.refreshed(&app, &wide.refresh).await;
    assert_eq!(narrow.scope, "orders:read");
    world.set_scopes(&app, &all).await;
    assert_eq!(scopes(&wide.access).await, json!(all));
    assert_eq!(scopes(&narrow.access).await, json!(["orders:read"]));
    world.set_scopes(&app, &["messaging"]).await;
    assert_eq!(scopes(&narrow.access).await, json!([]));
    world
        .no_refresh(&app, &narrow.refresh, "invalid_grant none")
        .await;
    // The rejected request has not used up the token.
    world.set_scopes(&app, &all).await;
    let next = world.refreshed(&app, &narrow.refresh).await;
    assert_eq!(next.scope, "orders:read");
}

const KEY: &str = "6f1c9b1e-52b1-4a1d";

/// A refresh with an `Idempotency-Key`.
fn keyed(world: &World, app: &Application, token: &str, key: &str) -> Request {
    let request = world.oauth_request(app, "token", &refreshing(token));
    blackbox::keyed(request, key)
}

#[tokio::test]
async fn a_refresh_with_a_key_is_repeated_until_its_new_refresh_token_is_used() {
    let (world, member, app) = with_partner(&["offers:read"]).await;
    let clock = world.stop_clock("2040-01-01T12:00:00Z").await;
    let mut browser = world.browser_of(&member.seller).await;
    let used = world.pair(&mut browser, &app, "offers:read").await.refresh;
    let long = "x".repeat(129);
    for (token, malformed) in [(&*used, "15 characters.."), (&*used, &*long), ("ps_rt_x", &*long)] {
        keyed(&world, &app, token, malformed)
            .send()
            .await
            .oauth_error(400, "invalid_request");
    }
    let answers = at_once((0..5).map(|_| keyed(&world, &app, &used, KEY))).await;
    let repeats = answers.iter().filter(|answer| answer.is_replayed());
    assert_eq!((repeats.count(), count_of(&answers, 200)), (4, 5));
    assert!(answers.iter().all(|answer| answer.bytes == answers[0].bytes));
    let again = || keyed(&world, &app, &used, KEY).send();
    let pair = Pair::of(again().await);
    assert!(world.works(&pair.access).await);
    for (minutes, left) in [(11 * 60, 3600), (12 * 60, 0), (24 * 60 - 1, 0)] {
        clock
            .freeze(instant("2040-01-01T12:00:00Z") + TimeDelta::minutes(minutes))
            .await;
        let answer = again().await;
        assert!(answer.is_replayed());
        assert_eq!(answer.json()["expires_in"], left);
        assert_eq!(answer.json()["refresh_token"], pair.refresh);
    }
    let next = world.refreshed(&app, &pair.refresh).await;
    again().await.oauth_error(400, "invalid_grant used");
    assert!(world.works(&next.access).await);
    // A day after the first answer it is a reuse.
    clock.freeze(instant("2040-01-02T12:00:00Z")).await;
    again().await.oauth_error(400, "invalid_grant used");
    world.has_ended(&app, &next).await;
}

#[tokio::test]
async fn a_repeat_shows_a_revoked_access_token_as_expired() {
    let (world, mut member, app) = with_partner(&["offers:read"]).await;
    let used = world.pair(&mut member.browser, &app, "offers:read").await.refresh;
    let pair = Pair::of(keyed(&world, &app, &used, KEY).send().await);
    world.revoke(&app, &pair.access).await.expect(200);
    let again = keyed(&world, &app, &used, KEY).send().await.expect(200).json();
    assert_eq!(again["access_token"], pair.access);
    assert_eq!(again["expires_in"], 0);
}

#[tokio::test]
async fn reuse_without_the_key_or_with_another_one_ends_the_family() {
    let (world, mut member, app) = with_partner(&["offers:read"]).await;
    for other in [None, Some("another key of 24 chars.")] {
        let used = world.pair(&mut member.browser, &app, "offers:read").await.refresh;
        let pair = Pair::of(keyed(&world, &app, &used, KEY).send().await);
        let reused = match other {
            None => world.refresh(&app, &used).await,
            Some(key) => keyed(&world, &app, &used, key).send().await,
        };
        reused.oauth_error(400, "invalid_grant used");
        world.has_ended(&app, &pair).await;
        keyed(&world, &app, &used, KEY)
            .send()
            .await
            .oauth_error(400, "invalid_grant revoked");
    }
}
