//! Concurrent uses of codes and refresh tokens: one request succeeds, and a replay is detected however close it comes.

use blackbox::{Application, Expect, Pair, World, at_once, refreshing};
use testkit::{Answer, TestServer};

use crate::with_partner;

/// Sends the same grant many times concurrently to both processes. Exactly one request gets a pair; the others get `invalid_grant`.
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

/// Asserts that everything issued in the race is invalid.
async fn nothing_lives(world: &World, app: &Application, answer: Answer) {
    match answer.status {
        200 => world.has_ended(app, &Pair::of(answer)).await,
        _ => answer.oauth_error(400, "invalid_grant"),
    }
}

#[tokio::test]
async fn of_many_refreshes_or_exchanges_exactly_one_succeeds_and_what_it_gave_ends() {
    let (world, mut member, app) = with_partner(&["offers:read"]).await;
    let second = world.another().await;
    for _ in 0..3 {
        let first = world.pair(&mut member.browser, &app, "offers:read").await;
        let refresh = refreshing(&first.refresh);
        let won = the_only_pair(&world, &second, &app, 50, &refresh).await;
        world.has_ended(&app, &first).await;
        world.has_ended(&app, &won).await;
        let asking = world.asking(&app, "offers:read");
        let code = world.code(&mut member.browser, &asking).await;
        let exchange = asking.exchanging(&code);
        let won = the_only_pair(&world, &second, &app, 30, &exchange).await;
        world.has_ended(&app, &won).await;
    }
}

#[tokio::test]
async fn rotation_against_a_replay_of_its_code_leaves_nothing_alive() {
    let (world, mut member, app) = with_partner(&["offers:read"]).await;
    let second = world.another().await;
    for _ in 0..10 {
        let asking = world.asking(&app, "offers:read");
        let code = world.code(&mut member.browser, &asking).await;
        let first = Pair::of(world.exchange(&app, &asking, &code).await);
        let fields = refreshing(&first.refresh);
        let rotation = world.oauth_request_at(&second.base_url, &app, "token", &fields);
        let (replayed, rotated) = tokio::join!(world.exchange(&app, &asking, &code), rotation.send());
        replayed.oauth_error(400, "invalid_grant");
        assert!(!world.works(&first.access).await);
        nothing_lives(&world, &app, rotated).await;
    }
}

#[tokio::test]
async fn an_exchange_against_a_disconnection_leaves_nothing_alive() {
    let (world, mut member, app) = with_partner(&["offers:read"]).await;
    let action = format!("/panel/connections/{}/disconnect", app.client_id);
    for _ in 0..10 {
        let asking = world.asking(&app, "offers:read");
        let code = world.code(&mut member.browser, &asking).await;
        let page = member.browser.page("/panel/connections").await;
        let disconnection = member.browser.posting(&page.form(&action));
        let (exchanged, disconnected) =
            tokio::join!(world.exchange(&app, &asking, &code), disconnection.send());
        disconnected.expect(303);
        nothing_lives(&world, &app, exchanged).await;
    }
}
