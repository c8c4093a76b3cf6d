//! The rate limit of one application: how it counts, what is counted, when a window ends.

use blackbox::{Expect, World};
use chrono::TimeDelta;
use serde_json::json;
use testkit::{Answer, TestClock};

use crate::{instant, world};

/// A stopped clock, and a token whose application may make `limit` requests in a window.
async fn limited(limit: i64, at: &str) -> (World, TestClock, String) {
    let world = world().await;
    let clock = world.database.control_clock().await;
    clock.freeze(instant(at)).await;
    let seller = world.seller().await;
    let application = world.application(&seller, &["offers:read"]).await;
    world
        .adjust(&application.client_id, &json!({"rate_limit": limit}))
        .await
        .expect(200);
    let token = world.token(&application).await;
    (world, clock, token)
}

async fn set_limit(world: &World, token: &str, limit: i64) {
    let me = world.get(token, "/v1/me").await.json();
    // Over its limit an application cannot ask who it is, so callers do that before.
    world
        .adjust(
            me["app"]["client_id"].as_str().unwrap(),
            &json!({"rate_limit": limit}),
        )
        .await
        .expect(200);
}

fn figures(answer: &Answer) -> (i64, i64) {
    let figures = (
        answer.number("x-ratelimit-limit"),
        answer.number("x-ratelimit-remaining"),
    );
    says_it_twice(answer);
    figures
}

/// What the draft's structured fields say is what the contract's headers say.
fn says_it_twice(answer: &Answer) {
    let (limit, remaining) = (
        answer.must("x-ratelimit-limit"),
        answer.must("x-ratelimit-remaining"),
    );
    assert_eq!(
        answer.must("ratelimit-policy"),
        format!("\"default\";q={limit};w=60")
    );
    let left = answer
        .must("ratelimit")
        .strip_prefix(&format!("\"default\";r={remaining};t="))
        .unwrap_or_else(|| panic!("{answer:?}"));
    let left: i64 = left.parse().unwrap();
    assert!((1..=60).contains(&left), "{answer:?}");
    if answer.status == 429 {
        assert_eq!(answer.number("retry-after"), left);
    }
}

#[tokio::test]
async fn structured_fields_agree_whatever_the_answer_and_the_method() {
    let (world, clock, token) = limited(10, "2040-01-01T12:00:30Z").await;
    for (at, left) in [
        ("2040-01-01T12:00:30Z", 30),
        ("2040-01-01T12:00:30.000001Z", 30),
        ("2040-01-01T12:00:59.999999Z", 1),
        ("2040-01-01T12:01:00Z", 60),
    ] {
        clock.freeze(instant(at)).await;
        for method in [
            reqwest::Method::GET,
            reqwest::Method::HEAD,
            reqwest::Method::OPTIONS,
        ] {
            let request = world.client.request(method.clone(), &world.url("/v1/me"));
            let answer = request.bearer(&token).send().await;
            says_it_twice(&answer);
            let told = answer.must("ratelimit").rsplit_once("t=").unwrap().1;
            assert_eq!(told, left.to_string(), "{method} at {at}");
        }
    }
    let own = world.get(&token, "/v1/offers/nothing").await;
    assert_eq!(own.must("ratelimit-policy"), "\"default\";q=10;w=60");
    let me = world.get(&token, "/v1/me").await.json();
    let client_id = me["app"]["client_id"].as_str().unwrap();
    let without_its_own = json!({"rate_limit": null});
    world.adjust(client_id, &without_its_own).await.expect(200);
    let default = world.get(&token, "/v1/offers/nothing").await;
    assert_eq!(default.must("ratelimit-policy"), "\"default\";q=600;w=60");
    says_it_twice(&default);
    for uncounted in [
        world.client.get(&world.url("/v1/me")).send().await.expect(401),
        world
            .client
            .get(&world.url("/v1"))
            .bearer(&token)
            .without("user-agent")
            .send()
            .await
            .expect(400),
    ] {
        says_it_twice(&uncounted);
        assert_eq!(figures(&uncounted), (600, 600));
    }
}

#[tokio::test]
async fn the_first_of_600_leaves_599_the_last_none_and_the_next_is_429() {
    let world = world().await;
    world.stop_clock("2040-01-01T12:00:30Z").await;
    let (_, token) = world.reader().await;
    for n in 1..=600 {
        let answer = world.get(&token, "/v1/me").await.expect(200);
        assert_eq!(figures(&answer), (600, 600 - n));
    }
    let end = instant("2040-01-01T12:01:00Z").timestamp();
    for path in ["/v1/me", "/v1/offers", "/v1/nothing"] {
        let answer = world.get(&token, path).await;
        answer.refused(429, "rate_limited");
        assert_eq!(figures(&answer), (600, 0));
        assert_eq!(answer.number("x-ratelimit-reset"), end);
        assert_eq!(answer.must("retry-after"), "30");
    }
}

#[tokio::test]
async fn every_answer_after_authentication_counts_and_no_other() {
    let (world, _clock, token) = limited(50, "2040-01-01T12:00:30Z").await;
    let get = |path: &str| world.client.get(&world.url(path));
    let remaining = async || world.get(&token, "/v1/me").await.number("x-ratelimit-remaining");
    assert_eq!(remaining().await, 49);
    get("/v1/me")
        .bearer(&token)
        .without("user-agent")
        .send()
        .await
        .expect(400);
    get("/v1/me").send().await.expect(401);
    get("/v1/me").bearer("ps_at_unknown").send().await.expect(401);
    get("/v1/me")
        .bearer(&token)
        .bearer(&token)
        .send()
        .await
        .expect(401);
    get("/oauth/nothing").bearer(&token).send().await.expect(404);
    world
        .client
        .post(&world.url("/oauth/token"))
        .bearer(&token)
        .send()
        .await
        .expect(400);
    assert_eq!(remaining().await, 48);
    for (path, status) in [
        ("/v1/nothing", 404),
        ("/v1/offers?limit=x", 400),
        ("/v1/offers/01900000-0000-7000-8000-000000000001", 404),
        ("/v1/offers", 200),
    ] {
        world.get(&token, path).await.expect(status);
    }
    world
        .client
        .post(&world.url("/v1/me"))
        .bearer(&token)
        .send()
        .await
        .expect(404);
    assert_eq!(remaining().await, 42);
}

#[tokio::test]
async fn a_window_ends_with_the_clock_minute_and_retry_after_is_rounded_up() {
    let (world, clock, token) = limited(1, "2040-01-01T12:00:00Z").await;
    world.get(&token, "/v1/me").await.expect(200);
    let cases = [
        ("2040-01-01T12:00:00Z", "60"),
        ("2040-01-01T12:00:00.000001Z", "60"),
        ("2040-01-01T12:00:01Z", "59"),
        ("2040-01-01T12:00:30.5Z", "30"),
        ("2040-01-01T12:00:58.999999Z", "2"),
        ("2040-01-01T12:00:59Z", "1"),
        ("2040-01-01T12:00:59.999999Z", "1"),
    ];
    for (at, retry_after) in cases {
        clock.freeze(instant(at)).await;
        let answer = world.get(&token, "/v1/me").await.expect(429);
        assert_eq!(answer.must("retry-after"), retry_after, "{at}");
        assert_eq!(
            answer.number("x-ratelimit-reset"),
            instant("2040-01-01T12:01:00Z").timestamp()
        );
    }
    clock.freeze(instant("2040-01-01T12:01:00Z")).await;
    let answer = world.get(&token, "/v1/me").await.expect(200);
    assert_eq!(figures(&answer), (1, 0));
    assert_eq!(
        answer.number("x-ratelimit-reset"),
        instant("2040-01-01T12:02:00Z").timestamp()
    );
}

#[tokio::test]
async fn waiting_as_long_as_retry_after_says_suffices() {
    let (world, clock, token) = limited(1, "2040-01-01T12:00:17.25Z").await;
    for _ in 0..3 {
        world.get(&token, "/v1/me").await.expect(200);
        let refused = world.get(&token, "/v1/me").await.expect(429);
        clock
            .advance(TimeDelta::seconds(refused.number("retry-after")))
            .await;
    }
}

#[tokio::test]
async fn refused_requests_count_too() {
    let (world, _clock, token) = limited(20, "2040-01-01T12:00:30Z").await;
    let me = world.get(&token, "/v1/me").await.expect(200).json();
    let client_id = me["app"]["client_id"].as_str().unwrap();
    world
        .adjust(client_id, &json!({"rate_limit": 1}))
        .await
        .expect(200);
    for _ in 0..9 {
        world.get(&token, "/v1/me").await.expect(429);
    }
    world
        .adjust(client_id, &json!({"rate_limit": 20}))
        .await
        .expect(200);
    assert_eq!(figures(&world.get(&token, "/v1/me").await.expect(200)), (20, 9));
}

#[tokio::test]
async fn a_changed_limit_holds_within_the_window() {
    let (world, _clock, token) = limited(10, "2040-01-01T12:00:30Z").await;
    for n in 1..=4 {
        assert_eq!(figures(&world.get(&token, "/v1/me").await), (10, 10 - n));
    }
    set_limit(&world, &token, 7).await;
    assert_eq!(figures(&world.get(&token, "/v1/me").await.expect(200)), (7, 1));
    set_limit(&world, &token, 3).await;
    assert_eq!(figures(&world.get(&token, "/v1/me").await.expect(429)), (3, 0));
}

#[tokio::test]
async fn the_largest_limit_is_kept_exactly() {
    let (world, _clock, token) = limited(10_000_000, "2040-01-01T12:00:30Z").await;
    assert_eq!(
        figures(&world.get(&token, "/v1/me").await.expect(200)),
        (10_000_000, 9_999_999)
    );
}
