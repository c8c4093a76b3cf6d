//! All tokens, sellers and processes of an application share one limit; each application has a separate one.

use std::collections::BTreeSet;

use blackbox::Expect;
use testkit::Client;

use crate::{instant, with_partner, world};

#[tokio::test]
async fn applications_have_separate_limits_and_personal_tokens_share_one() {
    let world = world().await;
    world.stop_clock("2040-01-01T12:00:30Z").await;
    let seller = world.seller().await;
    let remaining = async |token: &str| {
        let answer = world.get(token, "/v1/me").await;
        answer.number("x-ratelimit-remaining")
    };
    for _ in 0..2 {
        let app = world.application(&seller, &["offers:read"]).await;
        assert_eq!(remaining(&world.token(&app).await).await, 599);
    }
    for n in 1..=2 {
        let personal = world.personal_token(&seller, &["offers:read"]).await.token;
        assert_eq!(remaining(&personal).await, 600 - n);
    }
}

#[tokio::test]
async fn the_tokens_of_two_consenting_sellers_share_their_applications_limit() {
    let (world, _, app) = with_partner(&["offers:read"]).await;
    world.stop_clock("2040-01-01T12:00:30Z").await;
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let mut seller = world.member().await;
        tokens.push(world.pair(&mut seller.browser, &app, "offers:read").await.access);
    }
    world.set_limit(&tokens[0], 4).await;
    for (n, remaining) in [(0, 2), (1, 1), (0, 0)] {
        let answer = world.get(&tokens[n], "/v1/offers").await.expect(200);
        assert_eq!(answer.number("x-ratelimit-remaining"), remaining);
    }
    for token in &tokens {
        world.get(token, "/v1/me").await.refused(429, "rate_limited");
    }
}

#[tokio::test]
async fn of_forty_clients_over_two_processes_exactly_600_requests_pass() {
    let world = world().await;
    world.stop_clock("2040-01-01T12:00:30.25Z").await;
    let second = world.another().await;
    let bases = [&world.server.base_url, &second.base_url];
    let app = world.application(&world.seller().await, &["offers:read"]).await;
    let tokens = [world.token(&app).await, world.token(&app).await];
    let clients = (0..40).map(|n| {
        let (url, token) = (format!("{}/v1/me", bases[n % 2]), tokens[n / 2 % 2].clone());
        tokio::spawn(async move {
            let (client, mut answers) = (Client::new(), Vec::new());
            for _ in 0..20 {
                answers.push(client.get(&url).bearer(&token).send().await);
            }
            answers
        })
    });
    let (mut places, mut refused) = (BTreeSet::new(), 0);
    for client in clients.collect::<Vec<_>>() {
        for answer in client.await.unwrap() {
            let end = instant("2040-01-01T12:01:00Z").timestamp();
            let figure = |name: &str| answer.number(&format!("x-ratelimit-{name}"));
            assert_eq!((figure("limit"), figure("reset")), (600, end));
            if answer.status == 200 {
                assert_eq!(answer.header("retry-after"), None);
                assert!(places.insert(figure("remaining")), "a place twice");
            } else {
                answer.refused(429, "rate_limited");
                assert_eq!((answer.must("retry-after"), figure("remaining")), ("30", 0));
                refused += 1;
            }
        }
    }
    assert_eq!((places.len(), refused), (600, 200));
    assert_eq!((places.first(), places.last()), (Some(&0), Some(&599)));
}
