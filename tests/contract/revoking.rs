//! `POST /oauth/revoke` (RFC 7009).

use blackbox::{Expect, encoded};

use crate::token_endpoint::{basic, credentials};
use crate::with_partner;

#[tokio::test]
async fn revoking_a_refresh_token_ends_its_family_and_an_access_token_only_itself() {
    let (world, mut member, app) = with_partner(&["offers:read"]).await;
    let first = world.pair(&mut member.browser, &app, "offers:read").await;
    let second = world.refreshed(&app, &first.refresh).await;
    // Another client's token is not revoked; the answer is 200.
    let other = world.partner(&world.seller().await, &["offers:read"]).await;
    let personal = world.personal_token(&member.seller, &["offers:read"]).await.token;
    for token in [
        &first.access,
        &first.refresh,
        &personal,
        "nonsense",
        "ps_at_",
        "ps_rt_x",
        &format!("ps_rt_{}", "A".repeat(64)),
    ] {
        world.revoke(&other, token).await.expect(200);
    }
    assert!(world.works(&first.access).await && world.works(&personal).await);
    world.revoke(&app, &first.access).await.expect(200);
    assert!(!world.works(&first.access).await && world.works(&second.access).await);
    // A used refresh token identifies its family like an unused one.
    world.revoke(&app, &first.refresh).await.expect(200);
    world.has_ended(&app, &second).await;
    // Repeating a revocation is allowed.
    for token in [&first.access, &first.refresh, &second.refresh] {
        world.revoke(&app, token).await.expect(200);
    }
    // The same applies to the application's own tokens.
    let (one, sister) = (world.token(&app).await, world.token(&app).await);
    world.revoke(&app, &one).await.expect(200);
    assert!(!world.works(&one).await && world.works(&sister).await);
}

#[tokio::test]
async fn a_revocation_needs_one_token_and_the_clients_credentials() {
    let (world, mut member, app) = with_partner(&["offers:read"]).await;
    let pair = world.pair(&mut member.browser, &app, "offers:read").await;
    let token = ("token", pair.access.as_str());
    for fields in [&[("token", "")][..], &[], &[token, token]] {
        let answer = world.oauth(&app, "revoke", fields).await;
        answer.oauth_error(400, "invalid_request");
    }
    let mut wrong = app.clone();
    wrong.client_secret.push('x');
    let nobody = || world.at("POST", "/oauth/revoke").form(&encoded(&[token]));
    for request in [world.oauth_request(&wrong, "revoke", &[token]), nobody()] {
        request.send().await.oauth_error(401, "invalid_client");
    }
    let by_basic = nobody().header("authorization", &basic(&credentials(&wrong)));
    let challenged = by_basic.send().await;
    challenged.oauth_error(401, "invalid_client");
    let challenge = challenged.must("www-authenticate");
    assert!(challenge.starts_with("Basic "), "{challenge}");
    assert!(world.works(&pair.access).await);
    let wrong_hint = [token, ("token_type_hint", "refresh_token")];
    world.oauth(&app, "revoke", &wrong_hint).await.expect(200);
    assert!(!world.works(&pair.access).await);
}
