//! Concurrent uses of codes and refresh tokens: one succeeds, a replay is detected however close it comes,
//! and no token outlives its application.

use blackbox::{Application, Callback, Expect, Pair, World, at_once, refreshing};
use testkit::TestServer;

use crate::{with_partner, world_with};

const LOCK_FAMILY: &str = "select from families where kind = 'authorization_code' for update";
const DELETE: &str = "update applications set deleted_at = api_now() where not built_in";

#[tokio::test]
async fn a_client_that_breaks_off_before_the_commit_keeps_its_code_or_refresh_token() {
    let world = world_with(&[("SERVER__THREADS", "1")]).await;
    let mut browser = world.member().await.browser;
    let app = world.partner(&world.seller().await, &["offers:read"]).await;
    let asking = world.asking(&app, "offers:read");
    let code = world.code(&mut browser, &asking).await;
    let second_attempt = async |grant: &[(&str, &str)]| {
        let held = world.open_transaction(LOCK_FAMILY).await;
        let first = world.grant_on_wire(&app, grant).await;
        world.waiters(1).await;
        world.reset(first).await;
        held.end("rollback").await;
        Pair::of(world.oauth(&app, "token", grant).await)
    };
    let pair = second_attempt(&asking.exchanging(&code)).await;
    second_attempt(&refreshing(&pair.refresh)).await;
}

#[tokio::test]
async fn an_approval_waits_for_a_deletion_and_sees_it() {
    let (world, mut member, app) = with_partner(&["offers:read"]).await;
    let asking = world.asking(&app, "offers:read");
    let page = world.screen(&mut member.browser, &asking).await;
    let form = page.form("/panel/consent").press("decision", "approve");
    let held = world.open_transaction(DELETE).await;
    let approving = tokio::spawn(at_once([member.browser.posting(&form)]));
    world.waiters(1).await;
    held.end("commit").await;
    let back = Callback::of(&approving.await.unwrap()[0]);
    assert_eq!(back.get("error"), Some("access_denied"));
    assert_eq!(back.get("code"), None);
}

/// Sends the same grant many times concurrently to both processes. Exactly one request gets a pair; the
/// others get `invalid_grant`.
async fn the_only_pair(
    world: &World,
    second: &TestServer,
    app: &Application,
    times: usize,
    grant: &[(&str, &str)],
) -> Pair {
    let bases = [&world.server.base_url, &second.base_url];
    let sent = (0..times).map(|n| world.oauth_request_at(bases[n % 2], app, "token", grant));
    let mut won = Vec::new();
    for answer in at_once(sent).await {
        match answer.status {
            200 => won.push(Pair::of(answer)),
            _ => answer.oauth_error(400, "invalid_grant"),
        }
    }
    assert_eq!(won.len(), 1, "{won:?}");
    won.remove(0)
}

#[tokio::test]
async fn of_concurrent_refreshes_or_exchanges_one_succeeds_and_its_pair_is_revoked() {
    let (world, mut member, app) = with_partner(&["offers:read"]).await;
    let second = world.another().await;
    for _ in 0..3 {
        let first = world.pair(&mut member.browser, &app, "offers:read").await;
        let refresh = refreshing(&first.refresh);
        let won = the_only_pair(&world, &second, &app, 20, &refresh).await;
        world.has_ended(&app, &first).await;
        world.has_ended(&app, &won).await;
        let asking = world.asking(&app, "offers:read");
        let code = world.code(&mut member.browser, &asking).await;
        let exchange = asking.exchanging(&code);
        let won = the_only_pair(&world, &second, &app, 15, &exchange).await;
        world.has_ended(&app, &won).await;
    }
}
