//! `POST /oauth/revoke` (RFC 7009).

use base64::{Engine as _, engine::general_purpose::STANDARD};
use blackbox::{Expect, Pair, encoded};

use crate::{world, world_of_consent};

#[tokio::test]
async fn a_refresh_token_ends_its_family_and_an_access_token_itself_alone() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let application = world.partner(&world.seller().await, &["offers:read"]).await;
    let first = world.pair(&mut member.browser, &application, "offers:read").await;
    let second = Pair::of(world.refresh(&application, &first.refresh).await);
    let answer = world.revoke(&application, &first.access).await.expect(200);
    assert!(answer.bytes.is_empty(), "{answer:?}");
    assert_eq!(answer.must("cache-control"), "no-store");
    answer.must("x-trace-id");
    assert!(!world.works(&first.access).await && world.works(&second.access).await);
    // A used refresh token names its family as well as a living one.
    world.revoke(&application, &first.refresh).await.expect(200);
    world.has_ended(&application, &second).await;
    // Saying it again is fine.
    for token in [&first.access, &first.refresh, &second.refresh] {
        world.revoke(&application, token).await.expect(200);
    }
}

#[tokio::test]
async fn what_is_not_the_clients_is_left_alone_and_answered_200() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let owner = world.seller().await;
    let (application, other) = (
        world.partner(&owner, &["offers:read"]).await,
        world.partner(&owner, &["offers:read"]).await,
    );
    let pair = world.pair(&mut member.browser, &application, "offers:read").await;
    let personal = world.personal_token(&member.seller, &["offers:read"]).await.token;
    for token in [
        &pair.access,
        &pair.refresh,
        &personal,
        "nonsense",
        "ps_at_",
        "ps_rt_x",
    ] {
        world.revoke(&other, token).await.expect(200);
    }
    assert!(world.works(&pair.access).await && world.works(&personal).await);
    world.refresh(&application, &pair.refresh).await.expect(200);
}

#[tokio::test]
async fn it_has_its_rules_too() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let application = world.partner(&world.seller().await, &["offers:read"]).await;
    let pair = world.pair(&mut member.browser, &application, "offers:read").await;
    world
        .revoke(&application, "")
        .await
        .oauth_error(400, "invalid_request");
    world
        .oauth(&application, "revoke", &[])
        .await
        .oauth_error(400, "invalid_request");
    let twice = [("token", pair.access.as_str()), ("token", &pair.access)];
    world
        .oauth(&application, "revoke", &twice)
        .await
        .oauth_error(400, "invalid_request");
    let mut wrong = application.clone();
    wrong.client_secret.push('x');
    world
        .revoke(&wrong, &pair.access)
        .await
        .oauth_error(401, "invalid_client");
    let nobody = encoded(&[("token", &pair.access)]);
    let unsigned = world.client.post(&world.url("/oauth/revoke")).form(&nobody);
    unsigned.send().await.oauth_error(401, "invalid_client");
    let basic = [wrong.client_id.as_str(), &wrong.client_secret].join(":");
    let challenged = world
        .client
        .post(&world.url("/oauth/revoke"))
        .header("authorization", &format!("Basic {}", STANDARD.encode(basic)))
        .form(&nobody);
    let challenged = challenged.send().await;
    challenged.oauth_error(401, "invalid_client");
    assert!(
        challenged.must("www-authenticate").starts_with("Basic "),
        "{challenged:?}"
    );
    assert!(world.works(&pair.access).await);
    let wrong_hint = [
        ("token", pair.access.as_str()),
        ("token_type_hint", "refresh_token"),
    ];
    world.oauth(&application, "revoke", &wrong_hint).await.expect(200);
    assert!(!world.works(&pair.access).await);
}

#[tokio::test]
async fn public_clients_revoke_without_a_secret() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let application = world
        .public_partner(&world.seller().await, &["offers:read"])
        .await;
    let pair = world.pair(&mut member.browser, &application, "offers:read").await;
    world.revoke(&application, &pair.refresh).await.expect(200);
    assert!(!world.works(&pair.access).await);
}

#[tokio::test]
async fn own_tokens_of_client_credentials_can_be_revoked() {
    let world = world().await;
    let application = world.application(&world.seller().await, &["offers:read"]).await;
    let (one, other) = (world.token(&application).await, world.token(&application).await);
    world.revoke(&application, &one).await.expect(200);
    assert!(!world.works(&one).await && world.works(&other).await);
}

#[tokio::test]
async fn its_calls_count_with_those_of_the_token_endpoint() {
    let world = world().await;
    world.stop_clock("2040-01-01T12:00:30Z").await;
    let application = world.application(&world.seller().await, &["offers:read"]).await;
    for n in 0..30 {
        if n % 2 == 0 {
            world.revoke(&application, "nonsense").await.expect(200);
        } else {
            world.token_answer(&application).await.expect(200);
        }
    }
    let limited = world.revoke(&application, "nonsense").await;
    limited.oauth_error(429, "rate_limited");
    assert_eq!(limited.must("retry-after"), "30");
    world
        .token_answer(&application)
        .await
        .oauth_error(429, "rate_limited");
}
