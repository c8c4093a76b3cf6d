//! The headers of every `/v1` response, whatever its status.

use blackbox::Expect;

use crate::world;

#[tokio::test]
async fn every_kind_of_response_has_the_common_headers() {
    let world = world().await;
    world.stop_clock("2040-01-01T12:00:30Z").await;
    let (seller, token) = world.reader().await;
    let writes = world.personal_token(&seller, &["offers:write"]).await.token;
    let get = |path: &str| world.at("GET", path);
    let requests = [
        (get("/v1/me").bearer(&token), 200),
        (get("/v1/offers").bearer(&token), 200),
        (get("/v1/offers?limit=x").bearer(&token), 400),
        (get("/v1/me").bearer(&token).without("user-agent"), 400),
        (get("/v1/me"), 401),
        (get("/v1/offers").bearer(&writes), 403),
        (get("/v1/nothing").bearer(&token), 404),
        (world.at("POST", "/v1/me").bearer(&token), 404),
        (get("/v1/offers/nothing").bearer(&token), 404),
    ];
    let mut answers = Vec::new();
    for (request, status) in requests {
        answers.push(request.send().await.expect(status));
    }
    world.set_limit(&token, 1).await;
    answers.push(world.get(&token, "/v1/me").await.expect(429));
    for answer in answers {
        assert_eq!(answer.must("content-type"), "application/json");
        assert_eq!(answer.must("cache-control"), "no-store");
        assert_eq!(answer.must("x-content-type-options"), "nosniff");
        assert!(answer.must("x-trace-id").len() >= 8);
        let (limit, remaining) = (
            answer.number("x-ratelimit-limit"),
            answer.number("x-ratelimit-remaining"),
        );
        assert!((0..=limit).contains(&remaining), "{answer:?}");
        assert_eq!(answer.number("x-ratelimit-reset") % 60, 0);
        let limited = answer.header("retry-after").is_some();
        assert_eq!(limited, answer.status == 429, "{answer:?}");
        let challenged = answer.header("www-authenticate").is_some();
        assert_eq!(challenged, matches!(answer.status, 401 | 403), "{answer:?}");
    }
}

#[tokio::test]
async fn accept_is_ignored_and_no_cors_header_is_ever_sent() {
    let world = world().await;
    let (_, token) = world.reader().await;
    for method in ["GET", "OPTIONS", "POST"] {
        let request = world
            .at(method, "/v1/me")
            .bearer(&token)
            .header("origin", "https://shop.example");
        let request = request.header("access-control-request-method", "GET");
        let answer = request.header("accept", "text/html, image/*;q=0").send().await;
        assert_eq!(answer.must("content-type"), "application/json");
        let mut names = answer.headers.keys();
        let cors = names.find(|name| name.as_str().starts_with("access-control"));
        assert_eq!(cors, None, "{method}");
    }
    // Windows are those of the real clock, also for who is not counted.
    let uncounted = world.get("ps_at_x", "/v1/me").await;
    let ahead = uncounted.number("x-ratelimit-reset") - now().timestamp();
    assert!((0..=60).contains(&ahead), "the window ends {ahead} s from now");
}

#[expect(
    clippy::disallowed_methods,
    reason = "compared with a window of the real clock"
)]
fn now() -> chrono::DateTime<chrono::Utc> {
    chrono::Utc::now()
}
