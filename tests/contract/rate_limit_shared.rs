//! All tokens, sellers and processes of an application share one limit; each application has a separate one.

use std::collections::BTreeSet;

use blackbox::Expect;
use testkit::Client;

use crate::{instant, with_partner, world, world_with};

#[tokio::test]
async fn all_tokens_of_an_application_share_one_limit() {
    let world = world().await;
    world.stop_clock("2040-01-01T12:00:30Z").await;
    let seller = world.seller().await;
    let one = world.application(&seller, &["offers:read"]).await;
    let other = world.application(&seller, &["offers:read"]).await;
    let remaining = async |token: &str, path: &str| {
        let answer = world.get(token, path).await;
        answer.number("x-ratelimit-remaining")
    };
    for n in 0..3 {
        let token = world.token(&one).await;
        assert_eq!(remaining(&token, "/v1/me").await, 599 - 2 * n);
        assert_eq!(remaining(&token, "/v1/offers").await, 598 - 2 * n);
    }
    assert_eq!(remaining(&world.token(&other).await, "/v1/me").await, 599);
    for n in 1..=3 {
        let personal = world.personal_token(&seller, &["offers:read"]).await.token;
        assert_eq!(remaining(&personal, "/v1/me").await, 600 - n);
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

#[tokio::test]
async fn the_default_limit_is_a_setting() {
    let world = world_with(&[("RATE_LIMIT__DEFAULT", "2")]).await;
    world.stop_clock("2040-01-01T12:00:30Z").await;
    let (_, token) = world.reader().await;
    for (token, status) in [
        ("ps_at_unknown", 401),
        (&token, 200),
        (&token, 200),
        (&token, 429),
    ] {
        let answer = world.get(token, "/v1/me").await.expect(status);
        assert_eq!(answer.must("x-ratelimit-limit"), "2");
    }
}
