//! One limit for all tokens, sellers and processes of an application, and another one for every other application.

use std::collections::BTreeSet;

use blackbox::Expect;

use crate::{PROGRAM, instant, world};

#[tokio::test]
async fn all_tokens_of_an_application_share_its_limit_and_no_other_application_does() {
    let world = world().await;
    world.stop_clock("2040-01-01T12:00:30Z").await;
    let seller = world.seller().await;
    let (one, other) = (
        world.application(&seller, &["offers:read"]).await,
        world.application(&seller, &["offers:read"]).await,
    );
    let mut left = 600;
    for _ in 0..3 {
        let token = world.token(&one).await;
        for path in ["/v1/me", "/v1/offers"] {
            left -= 1;
            assert_eq!(
                world.get(&token, path).await.number("x-ratelimit-remaining"),
                left
            );
        }
    }
    let token = world.token(&other).await;
    assert_eq!(
        world.get(&token, "/v1/me").await.number("x-ratelimit-remaining"),
        599
    );
    for n in 1..=3 {
        let personal = world.personal_token(&seller, &["offers:read"]).await.token;
        assert_eq!(
            world
                .get(&personal, "/v1/me")
                .await
                .number("x-ratelimit-remaining"),
            600 - n
        );
    }
}

#[tokio::test]
async fn forty_clients_over_two_processes_get_exactly_600_through() {
    let world = world().await;
    world.stop_clock("2040-01-01T12:00:30.25Z").await;
    let second = world.another().await;
    let seller = world.seller().await;
    let application = world.application(&seller, &["offers:read"]).await;
    let tokens = [world.token(&application).await, world.token(&application).await];
    let clients = (0..40).map(|n| {
        let base = if n % 2 == 0 {
            &world.server.base_url
        } else {
            &second.base_url
        };
        let (url, token, client) = (
            format!("{base}/v1/me"),
            tokens[n / 2 % 2].clone(),
            testkit::Client::new(),
        );
        tokio::spawn(async move {
            let mut answers = Vec::new();
            for _ in 0..20 {
                answers.push(client.get(&url).bearer(&token).send().await);
            }
            answers
        })
    });
    let clients: Vec<_> = clients.collect();
    let (mut places, mut refused) = (BTreeSet::new(), 0);
    for client in clients {
        for answer in client.await.unwrap() {
            assert_eq!(answer.number("x-ratelimit-limit"), 600);
            assert_eq!(
                answer.number("x-ratelimit-reset"),
                instant("2040-01-01T12:01:00Z").timestamp()
            );
            if answer.status == 200 {
                assert_eq!(answer.header("retry-after"), None);
                assert!(
                    places.insert(answer.number("x-ratelimit-remaining")),
                    "each request has a place of its own"
                );
            } else {
                answer.refused(429, "rate_limited");
                assert_eq!(
                    (answer.must("retry-after"), answer.must("x-ratelimit-remaining")),
                    ("30", "0")
                );
                refused += 1;
            }
        }
    }
    assert_eq!((places.len(), refused), (600, 200));
    assert_eq!((places.first(), places.last()), (Some(&0), Some(&599)));
}

#[tokio::test]
async fn the_default_limit_is_a_setting() {
    let settings = |options: testkit::ServerOptions| options.set("SELLER_API__RATE_LIMIT__DEFAULT", 2);
    let world = blackbox::World::with(PROGRAM, settings).await;
    world.stop_clock("2040-01-01T12:00:30Z").await;
    let (_, token) = world.reader().await;
    assert_eq!(
        world
            .get("ps_at_unknown", "/v1/me")
            .await
            .must("x-ratelimit-limit"),
        "2"
    );
    for status in [200, 200, 429] {
        assert_eq!(
            world
                .get(&token, "/v1/me")
                .await
                .expect(status)
                .must("x-ratelimit-limit"),
            "2"
        );
    }
}
