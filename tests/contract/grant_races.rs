//! Issuing tokens while another transaction is open: issuing waits for it and sees its changes.

use blackbox::{Callback, Expect, Pair, refreshing, text};

use crate::with_partner;

const REVOKE_FAMILY: &str = "update families set revoked_at = api_now() where kind = 'authorization_code'";
const DISCONNECT: &str = "update connections set generation = generation + 1, disconnected_at = api_now()";
const DELETE: &str = "update applications set deleted_at = api_now() where not built_in";

#[tokio::test]
async fn a_rotation_sees_what_it_waited_for() {
    let (world, mut member, app) = with_partner(&["offers:read"]).await;
    for (change, how) in [
        (REVOKE_FAMILY, "rollback"),
        (REVOKE_FAMILY, "commit"),
        (DISCONNECT, "commit"),
    ] {
        let pair = world.pair(&mut member.browser, &app, "offers:read").await;
        let held = world.hold(change).await;
        let refresh = world.oauth_request(&app, "token", &refreshing(&pair.refresh));
        let asked = tokio::spawn(refresh.send());
        world.waiters(1).await;
        held.end(how).await;
        let answer = asked.await.unwrap();
        assert_eq!(world.works(&pair.access).await, how == "rollback", "{change}");
        if how == "rollback" {
            assert!(world.works(&Pair::of(answer).access).await);
        } else {
            answer.oauth_error(400, "invalid_grant");
        }
    }
}

/// The look-up of a token checks its application, so issuing need not wait for a deletion.
#[tokio::test]
async fn what_is_issued_while_the_application_is_deleted_is_dead_with_it() {
    let (world, mut member, app) = with_partner(&["offers:read"]).await;
    let pair = world.pair(&mut member.browser, &app, "offers:read").await;
    let held = world.hold(DELETE).await;
    let refresh = world.oauth_request(&app, "token", &refreshing(&pair.refresh));
    let refreshed = tokio::spawn(refresh.send());
    let own = world.token_answer(&app).await;
    held.end("commit").await;
    for answer in [refreshed.await.unwrap(), own] {
        if answer.status == 200 {
            let access = text(&answer.json(), "access_token");
            assert!(!world.works(&access).await, "it outlives its application");
        }
    }
    assert!(!world.works(&pair.access).await);
    let after = world.token_answer(&app).await;
    after.oauth_error(401, "invalid_client");
}

#[tokio::test]
async fn an_approval_sees_the_deletion_that_it_waited_for() {
    let (world, mut member, app) = with_partner(&["offers:read"]).await;
    let asking = world.asking(&app, "offers:read");
    let page = world.screen(&mut member.browser, &asking).await;
    let form = page.form("/panel/consent").press("decision", "approve");
    let held = world.hold(DELETE).await;
    let approving = tokio::spawn(member.browser.posting(&form).send());
    world.waiters(1).await;
    held.end("commit").await;
    let back = Callback::of(&approving.await.unwrap());
    assert_eq!(
        (back.get("error"), back.get("code")),
        (Some("access_denied"), None)
    );
}
