//! The rate limit of one application: how and what it counts, and when a window ends.

use blackbox::{Expect, World, text};
use serde_json::json;
use testkit::{Answer, TestClock};

use crate::{instant, world};

/// A frozen clock, and a token whose application may send `limit` requests per window.
async fn limited(limit: i64, at: &str) -> (World, TestClock, String) {
    let world = world().await;
    let clock = world.stop_clock(at).await;
    let app = world.application(&world.seller().await, &["offers:read"]).await;
    let changes = json!({"rate_limit": limit});
    world.adjust(&app.client_id, &changes).await.expect(200);
    let token = world.token(&app).await;
    (world, clock, token)
}

/// Limit and remaining. Asserts that the draft's structured fields agree with the contract's headers.
fn figures(answer: &Answer) -> (i64, i64) {
    let figure = |name: &str| answer.number(&format!("x-ratelimit-{name}"));
    let (limit, remaining, left) = (figure("limit"), figure("remaining"), left(answer));
    let policy = format!("\"default\";q={limit};w=60");
    assert_eq!(answer.must("ratelimit-policy"), policy);
    let state = format!("\"default\";r={remaining};t={left}");
    assert_eq!(answer.must("ratelimit"), state);
    assert!((1..=60).contains(&left), "{answer:?}");
    if answer.status == 429 {
        assert_eq!(answer.number("retry-after"), left);
    }
    (limit, remaining)
}

/// The seconds until the window ends, from the structured fields.
fn left(answer: &Answer) -> i64 {
    let (_, left) = answer.must("ratelimit").rsplit_once(";t=").unwrap();
    left.parse().unwrap()
}

async fn me(world: &World, token: &str) -> Answer {
    world.get(token, "/v1/me").await
}

#[tokio::test]
async fn every_answer_has_both_kinds_of_rate_limit_headers_and_they_agree() {
    let (world, clock, token) = limited(10, "2040-01-01T12:00:30Z").await;
    for (at, seconds) in [
        ("00:30", 30),
        ("00:30.000001", 30),
        ("00:59.999999", 1),
        ("01:00", 60),
    ] {
        clock.freeze(instant(&format!("2040-01-01T12:{at}Z"))).await;
        for method in ["GET", "HEAD", "OPTIONS"] {
            let answer = world.at(method, "/v1/me").bearer(&token).send().await;
            figures(&answer);
            assert_eq!(left(&answer), seconds, "{method} at {at}");
        }
    }
    // Uncounted requests show the default limit unused, whatever the application's limit is.
    world.set_limit(&token, 7).await;
    let without_agent = world.at("GET", "/v1").bearer(&token).without("user-agent");
    for (uncounted, status) in [
        (world.visit("/v1/me").await, 401),
        (world.get("ps_at_x", "/v1/me").await, 401),
        (without_agent.send().await, 400),
    ] {
        assert_eq!(figures(&uncounted.expect(status)), (600, 600));
    }
}

#[tokio::test]
async fn a_window_ends_with_the_clock_minute_and_retry_after_is_rounded_up() {
    let (world, clock, token) = limited(1, "2040-01-01T12:00:00Z").await;
    me(&world, &token).await.expect(200);
    let end = |minute: u32| instant(&format!("2040-01-01T12:{minute:02}:00Z")).timestamp();
    for (at, retry_after) in [("00", "60"), ("58.999999", "2"), ("59", "1")] {
        clock.freeze(instant(&format!("2040-01-01T12:00:{at}Z"))).await;
        for path in ["/v1/me", "/v1/offers", "/v1/nothing"] {
            let answer = world.get(&token, path).await;
            answer.refused(429, "rate_limited");
            assert_eq!(answer.must("retry-after"), retry_after, "{at}");
            assert_eq!(figures(&answer), (1, 0), "{at}");
            assert_eq!(answer.number("x-ratelimit-reset"), end(1));
        }
    }
    clock.freeze(instant("2040-01-01T12:01:00Z")).await;
    let answer = me(&world, &token).await.expect(200);
    assert_eq!(figures(&answer), (1, 0));
    assert_eq!(answer.number("x-ratelimit-reset"), end(2));
}

#[tokio::test]
async fn a_changed_limit_applies_within_the_window_and_rejected_requests_count() {
    let (world, _clock, token) = limited(10, "2040-01-01T12:00:30Z").await;
    // `/oauth` counts no request, whatever its token.
    let request = world.at("POST", "/oauth/token").bearer(&token);
    request.send().await.expect(400);
    for n in 1..=4 {
        assert_eq!(figures(&me(&world, &token).await), (10, 10 - n));
    }
    let client_id = text(&me(&world, &token).await.json()["app"], "client_id");
    let largest = (10_000_000, 200, 9_999_990);
    for (limit, status, remaining) in [(7, 200, 1), (3, 429, 0), (1, 429, 0), (20, 200, 11), largest] {
        let changes = json!({"rate_limit": limit});
        world.adjust(&client_id, &changes).await.expect(200);
        let answer = me(&world, &token).await.expect(status);
        assert_eq!(figures(&answer), (limit, remaining));
    }
}

#[tokio::test]
async fn a_request_that_cannot_be_counted_fails() {
    let world = world().await;
    let (_, token) = world.reader().await;
    world.read(&token, "/v1/me").await;
    let rename = async |from: &str, to: &str| {
        let statement = format!("alter table {from} rename to {to}");
        world.execute(&statement).await;
    };
    rename("rate_windows", "elsewhere").await;
    for path in ["/v1/me", "/v1/offers", "/v1/nothing"] {
        world.refuses(&token, path, 500, "internal_error").await;
    }
    let form = "grant_type=client_credentials&client_id=psa_x&client_secret=pss_x";
    let answer = world.at("POST", "/oauth/token").form(form).send().await;
    answer.oauth_error(500, "server_error");
    rename("elsewhere", "rate_windows").await;
    world.read(&token, "/v1/me").await;
}
