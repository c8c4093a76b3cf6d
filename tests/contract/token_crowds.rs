//! Crowds at `POST /oauth/token`: what is answered together is answered to each as if it were alone.

use blackbox::{Application, Expect, World};
use reqwest::Method;
use serde_json::json;
use testkit::{Answer, TestServer};

use crate::{PROGRAM, token_endpoint::proper};

async fn without_limits() -> World {
    World::with(PROGRAM, |options| {
        options
            .set("SELLER_API__OAUTH__TOKEN_LIMIT_PER_IP", 100_000)
            .set("SELLER_API__OAUTH__TOKEN_LIMIT_PER_CLIENT", 100_000)
    })
    .await
}

/// Sends the forms all at once, to two processes in turn.
async fn at_once(world: &World, second: &TestServer, forms: Vec<String>) -> Vec<Answer> {
    let bases = [&world.server.base_url, &second.base_url].into_iter().cycle();
    let asked = forms.iter().zip(bases).map(|(form, base)| {
        let request = world.client.post(&format!("{base}/oauth/token")).form(form);
        tokio::spawn(request.send())
    });
    let mut answers = Vec::new();
    for asked in asked.collect::<Vec<_>>() {
        answers.push(asked.await.unwrap());
    }
    answers
}

/// The token is the application's own.
async fn is_of(world: &World, answer: Answer, application: &Application) {
    let token = answer.expect(200).json()["access_token"]
        .as_str()
        .unwrap()
        .to_owned();
    let me = world.get(&token, "/v1/me").await.expect(200).json();
    assert_eq!(me["app"]["client_id"], json!(application.client_id));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_clients_at_once_each_gets_its_own_answer() {
    let world = without_limits().await;
    let second = world.another().await;
    let mut known = Vec::new();
    for _ in 0..5 {
        let seller = world.seller().await;
        known.push(world.application(&seller, &["offers:read"]).await);
    }
    let gone = world.application(&world.seller().await, &["offers:read"]).await;
    let path = format!("/applications/{}", gone.client_id);
    world.office(Method::DELETE, &path).send().await.expect(204);
    let suspended = world.application(&world.seller().await, &["offers:read"]).await;
    world
        .move_application(&suspended.client_id, "suspension")
        .await
        .expect(200);
    let nobody =
        "grant_type=client_credentials&client_id=psa_00000000000070008000000000000000&client_secret=x";
    let forms = (0..40).map(|n| match n % 8 {
        5 => nobody.to_owned(),
        6 => proper(&gone),
        7 => proper(&suspended),
        n => proper(&known[n]),
    });
    let answers = at_once(&world, &second, forms.collect()).await;
    for (n, answer) in answers.into_iter().enumerate() {
        match n % 8 {
            n @ 0..5 => is_of(&world, answer, &known[n]).await,
            _ => answer.oauth_error(401, "invalid_client"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_that_is_deleted_amid_a_crowd_ends_alone() {
    let world = without_limits().await;
    let second = world.another().await;
    let [lasting, ending] = [
        world.application(&world.seller().await, &["offers:read"]).await,
        world.application(&world.seller().await, &["offers:read"]).await,
    ];
    let forms = (0..60).map(|n| proper([&lasting, &ending][n % 3 / 2]));
    let path = format!("/applications/{}", ending.client_id);
    let (answers, deleted) = tokio::join!(
        at_once(&world, &second, forms.collect()),
        world.office(Method::DELETE, &path).send()
    );
    deleted.expect(204);
    for (n, answer) in answers.into_iter().enumerate() {
        if n % 3 < 2 {
            is_of(&world, answer, &lasting).await;
        } else if answer.status == 200 {
            let token = answer.json()["access_token"].as_str().unwrap().to_owned();
            assert!(!world.works(&token).await, "it outlives its application");
        } else {
            answer.oauth_error(401, "invalid_client");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_100_calls_of_each_of_two_clients_at_once_exactly_60_pass() {
    let world = World::with(PROGRAM, |options| {
        options.set("SELLER_API__OAUTH__TOKEN_LIMIT_PER_IP", 100_000)
    })
    .await;
    world.stop_clock("2040-01-01T12:00:30.25Z").await;
    let second = world.another().await;
    let clients = [
        world.application(&world.seller().await, &["offers:read"]).await,
        world.application(&world.seller().await, &["offers:read"]).await,
    ];
    // Pairs, so that both processes see both clients.
    let forms = (0..200).map(|n| proper(&clients[n / 2 % 2]));
    let mut passed = [0, 0];
    for (n, answer) in at_once(&world, &second, forms.collect())
        .await
        .into_iter()
        .enumerate()
    {
        match answer.status {
            200 => passed[n / 2 % 2] += 1,
            _ => answer.oauth_error(429, "rate_limited"),
        }
    }
    assert_eq!(passed, [60, 60]);
}
