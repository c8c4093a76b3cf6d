//! Codes and refresh tokens under concurrency: one call wins, and a replay is a replay however close it comes.

use blackbox::{Application, Asking, Callback, Expect, Pair, World, encoded};
use testkit::{Answer, TestServer};

use crate::world_of_consent;

/// Sends the same form many times at once, to both processes, and gives the answers.
async fn at_once(world: &World, second: &TestServer, times: usize, form: &str) -> Vec<Answer> {
    let sent = (0..times).map(|n| {
        let base = if n % 2 == 0 {
            &world.server.base_url
        } else {
            &second.base_url
        };
        tokio::spawn(
            world
                .client
                .post(&format!("{base}/oauth/token"))
                .form(form)
                .send(),
        )
    });
    let mut answers = Vec::new();
    for answer in sent.collect::<Vec<_>>() {
        answers.push(answer.await.unwrap());
    }
    answers
}

fn refresh_form(application: &Application, token: &str) -> String {
    encoded(&[
        ("grant_type", "refresh_token"),
        ("refresh_token", token),
        ("client_id", &application.client_id),
        ("client_secret", &application.client_secret),
    ])
}

fn exchange_form(application: &Application, asking: &Asking, code: &str) -> String {
    encoded(&[
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", blackbox::CALLBACK),
        ("code_verifier", &asking.verifier),
        ("client_id", &application.client_id),
        ("client_secret", &application.client_secret),
    ])
}

/// Exactly one of them got a pair; the others were told of an invalid grant.
#[track_caller]
fn the_only_pair(answers: Vec<Answer>) -> Pair {
    let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 200);
    for answer in lost {
        answer.oauth_error(400, "invalid_grant");
    }
    let [won] = <[Answer; 1]>::try_from(won).unwrap_or_else(|won| panic!("{} have won", won.len()));
    Pair::of(won)
}

#[tokio::test]
async fn of_50_refreshes_with_one_token_exactly_one_succeeds_and_the_family_ends() {
    let world = world_of_consent().await;
    let second = world.another().await;
    let mut member = world.member().await;
    let application = world.partner(&world.seller().await, &["offers:read"]).await;
    for _ in 0..3 {
        let first = world.pair(&mut member.browser, &application, "offers:read").await;
        let answers = at_once(&world, &second, 50, &refresh_form(&application, &first.refresh)).await;
        let won = the_only_pair(answers);
        for pair in [&first, &won] {
            world.has_ended(&application, pair).await;
        }
    }
}

#[tokio::test]
async fn of_30_exchanges_of_one_code_exactly_one_succeeds_and_what_it_gave_ends() {
    let world = world_of_consent().await;
    let second = world.another().await;
    let mut member = world.member().await;
    let application = world.partner(&world.seller().await, &["offers:read"]).await;
    for _ in 0..3 {
        let asking = world.asking(&application, "offers:read");
        let code = world.code(&mut member.browser, &asking).await;
        let answers = at_once(&world, &second, 30, &exchange_form(&application, &asking, &code)).await;
        let won = the_only_pair(answers);
        world.has_ended(&application, &won).await;
    }
}

#[tokio::test]
async fn rotation_against_a_replay_of_its_code_leaves_nothing_alive() {
    let world = world_of_consent().await;
    let second = world.another().await;
    let mut member = world.member().await;
    let application = world.partner(&world.seller().await, &["offers:read"]).await;
    for _ in 0..10 {
        let asking = world.asking(&application, "offers:read");
        let code = world.code(&mut member.browser, &asking).await;
        let first = Pair::of(world.exchange(&application, &asking, &code).await);
        let replay = exchange_form(&application, &asking, &code);
        let rotation = refresh_form(&application, &first.refresh);
        let (replayed, rotated) = tokio::join!(
            world.client.post(&world.url("/oauth/token")).form(&replay).send(),
            world
                .client
                .post(&format!("{}/oauth/token", second.base_url))
                .form(&rotation)
                .send(),
        );
        replayed.oauth_error(400, "invalid_grant");
        assert!(!world.works(&first.access).await);
        if rotated.status == 200 {
            let pair = Pair::of(rotated);
            assert!(
                !world.works(&pair.access).await,
                "a pair has slipped past the revocation"
            );
            world
                .refresh(&application, &pair.refresh)
                .await
                .oauth_error(400, "invalid_grant");
        } else {
            rotated.oauth_error(400, "invalid_grant");
        }
    }
}

#[tokio::test]
async fn an_exchange_against_a_disconnection_leaves_nothing_alive() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let application = world.partner(&world.seller().await, &["offers:read"]).await;
    let action = format!("/panel/connections/{}/disconnect", application.client_id);
    for _ in 0..10 {
        let asking = world.asking(&application, "offers:read");
        let page = world.screen(&mut member.browser, &asking).await;
        let approval = page.form("/panel/consent").press("decision", "approve");
        let code = Callback::of(&member.browser.post(&approval).await).code();
        let page = member.browser.open("/panel/connections").await.expect(200);
        let (mut browser, form) = (member.browser.clone(), page.form(&action));
        let (exchanged, disconnected) =
            tokio::join!(world.exchange(&application, &asking, &code), browser.post(&form));
        assert_eq!(disconnected.status, 303, "{disconnected:?}");
        if exchanged.status == 200 {
            let pair = Pair::of(exchanged);
            assert!(
                !world.works(&pair.access).await,
                "a pair has slipped past the disconnection"
            );
            world
                .refresh(&application, &pair.refresh)
                .await
                .oauth_error(400, "invalid_grant");
        } else {
            exchanged.oauth_error(400, "invalid_grant");
        }
    }
}
