//! `POST /oauth/token` with `refresh_token`: rotation, reuse, and the scopes of what comes of it.

use blackbox::{Expect, Pair};
use chrono::TimeDelta;
use serde_json::json;

use crate::{instant, world_of_consent};

#[tokio::test]
async fn each_refresh_gives_a_new_pair_and_leaves_earlier_access_tokens() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let application = world.partner(&world.seller().await, &["offers:read"]).await;
    let mut pairs = vec![world.pair(&mut member.browser, &application, "offers:read").await];
    for _ in 0..3 {
        let last = pairs.last().unwrap();
        pairs.push(Pair::of(world.refresh(&application, &last.refresh).await));
    }
    for pair in &pairs {
        assert!(world.works(&pair.access).await);
        assert_eq!(pair.scope, "offers:read");
    }
    let distinct: std::collections::HashSet<_> = pairs
        .iter()
        .flat_map(|pair| [&pair.access, &pair.refresh])
        .collect();
    assert_eq!(distinct.len(), 8);
}

#[tokio::test]
async fn reuse_ends_the_whole_family_and_no_other() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let application = world.partner(&world.seller().await, &["offers:read"]).await;
    let first = world.pair(&mut member.browser, &application, "offers:read").await;
    let other = world.pair(&mut member.browser, &application, "offers:read").await;
    let second = Pair::of(world.refresh(&application, &first.refresh).await);
    let third = Pair::of(world.refresh(&application, &second.refresh).await);
    world
        .refresh(&application, &first.refresh)
        .await
        .oauth_error(400, "invalid_grant");
    for pair in [&first, &second, &third] {
        world.has_ended(&application, pair).await;
    }
    assert!(world.works(&other.access).await);
    world.refresh(&application, &other.refresh).await.expect(200);
}

#[tokio::test]
async fn what_is_no_refresh_token_of_the_client_is_refused_without_harm() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let owner = world.seller().await;
    let (application, other) = (
        world.partner(&owner, &["offers:read"]).await,
        world.partner(&owner, &["offers:read"]).await,
    );
    let used = world.pair(&mut member.browser, &application, "offers:read").await;
    let pair = Pair::of(world.refresh(&application, &used.refresh).await);
    for token in [
        &pair.access,
        "ps_rt_",
        "nonsense",
        &pair.refresh[..pair.refresh.len() - 1],
        &pair.refresh.to_uppercase(),
    ] {
        world
            .refresh(&application, token)
            .await
            .oauth_error(400, "invalid_grant");
    }
    world
        .refresh(&application, "")
        .await
        .oauth_error(400, "invalid_request");
    // Neither a living nor a used token tells another client anything, and nothing happens to it.
    world
        .refresh(&other, &pair.refresh)
        .await
        .oauth_error(400, "invalid_grant");
    world
        .refresh(&other, &used.refresh)
        .await
        .oauth_error(400, "invalid_grant");
    let mut stranger = application.clone();
    stranger.client_secret = other.client_secret.clone();
    world
        .refresh(&stranger, &used.refresh)
        .await
        .oauth_error(401, "invalid_client");
    assert!(world.works(&pair.access).await);
    world.refresh(&application, &pair.refresh).await.expect(200);
}

#[tokio::test]
async fn a_refresh_token_lives_90_days_from_its_own_issue() {
    let world = world_of_consent().await;
    let member = world.member().await;
    let application = world.partner(&world.seller().await, &["offers:read"]).await;
    let clock = world.stop_clock("2040-01-01T12:00:00Z").await;
    let mut browser = world.browser_of(&member.seller).await;
    let first = world.pair(&mut browser, &application, "offers:read").await;
    let late = world.pair(&mut browser, &application, "offers:read").await;
    let day = TimeDelta::days(1);
    clock
        .freeze(instant("2040-01-01T12:00:00Z") + day * 90 - TimeDelta::milliseconds(1))
        .await;
    assert!(!world.works(&first.access).await);
    let second = Pair::of(world.refresh(&application, &first.refresh).await);
    assert!(world.works(&second.access).await);
    clock.freeze(instant("2040-01-01T12:00:00Z") + day * 90).await;
    // Expired, not reused: the family of a token that nobody used has not been harmed, but it is of no use any more.
    world
        .refresh(&application, &late.refresh)
        .await
        .oauth_error(400, "invalid_grant");
    clock.advance(day * 20).await;
    clock.advance(day * 20).await;
    clock.advance(day * 20).await;
    world.refresh(&application, &second.refresh).await.expect(200);
}

#[tokio::test]
async fn scopes_never_grow_and_a_pair_refreshed_while_narrow_stays_narrow() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let all = ["offers:read", "orders:read"];
    let application = world.partner(&world.seller().await, &all).await;
    let id = &application.client_id;
    let wide = world
        .pair(&mut member.browser, &application, "offers:read orders:read")
        .await;
    let scopes = async |token: &str| world.get(token, "/v1/me").await.expect(200).json()["scopes"].clone();

    world
        .adjust(id, &json!({"scopes": ["orders:read", "messaging"]}))
        .await
        .expect(200);
    assert_eq!(scopes(&wide.access).await, json!(["orders:read"]));
    let narrow = Pair::of(world.refresh(&application, &wide.refresh).await);
    assert_eq!(narrow.scope, "orders:read");

    world.adjust(id, &json!({"scopes": all})).await.expect(200);
    assert_eq!(scopes(&wide.access).await, json!(all));
    assert_eq!(scopes(&narrow.access).await, json!(["orders:read"]));

    world
        .adjust(id, &json!({"scopes": ["messaging"]}))
        .await
        .expect(200);
    assert_eq!(scopes(&narrow.access).await, json!([]));
    world
        .refresh(&application, &narrow.refresh)
        .await
        .oauth_error(400, "invalid_grant");
    world
        .adjust(
            id,
            &json!({"scopes": ["offers:read", "orders:read", "messaging"]}),
        )
        .await
        .expect(200);
    // The token was not touched by the refusal.
    assert_eq!(
        Pair::of(world.refresh(&application, &narrow.refresh).await).scope,
        "orders:read"
    );
}

#[tokio::test]
async fn rotating_the_secret_revokes_nothing() {
    let world = world_of_consent().await;
    let mut owner = world.member().await;
    let mut application = world.partner(&owner.seller, &["offers:read"]).await;
    let pair = world.pair(&mut owner.browser, &application, "offers:read").await;
    let page = owner
        .browser
        .open(&format!("/panel/applications/{}", application.client_id))
        .await;
    let form = page.form(&format!("/panel/applications/{}/secret", application.client_id));
    let secret = owner.browser.submit(&form).await.expect(200).text_of("secret");
    assert!(world.works(&pair.access).await);
    world
        .refresh(&application, &pair.refresh)
        .await
        .oauth_error(401, "invalid_client");
    application.client_secret = secret;
    world.refresh(&application, &pair.refresh).await.expect(200);
}
