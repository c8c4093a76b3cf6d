//! The headers of every `/v1` response, whatever its status.

use blackbox::Expect;
use reqwest::Method;
use serde_json::json;

use crate::world;

#[tokio::test]
async fn every_kind_of_response_has_the_common_headers() {
    let world = world().await;
    world.stop_clock("2040-01-01T12:00:30Z").await;
    let (seller, token) = world.reader().await;
    let writes = world.personal_token(&seller, &["offers:write"]).await.token;
    let get = |path: &str| world.client.get(&world.url(path));
    let mut answers = vec![
        (get("/v1/me").bearer(&token).send().await, 200),
        (get("/v1/offers").bearer(&token).send().await, 200),
        (get("/v1/offers?limit=x").bearer(&token).send().await, 400),
        (
            get("/v1/me").bearer(&token).without("user-agent").send().await,
            400,
        ),
        (get("/v1/me").send().await, 401),
        (get("/v1/offers").bearer(&writes).send().await, 403),
        (get("/v1/nothing").bearer(&token).send().await, 404),
        (
            world
                .client
                .post(&world.url("/v1/me"))
                .bearer(&token)
                .send()
                .await,
            404,
        ),
        (get("/v1/offers/nothing").bearer(&token).send().await, 404),
    ];
    let me = answers[0].0.json();
    world
        .adjust(
            me["app"]["client_id"].as_str().unwrap(),
            &json!({"rate_limit": 1}),
        )
        .await
        .expect(200);
    answers.push((get("/v1/me").bearer(&token).send().await, 429));
    for (answer, status) in answers {
        assert_eq!(answer.status, status, "{answer:?}");
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
        assert_eq!(
            answer.header("retry-after").is_some(),
            status == 429,
            "{answer:?}"
        );
        assert_eq!(
            answer.header("www-authenticate").is_some(),
            matches!(status, 401 | 403),
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn what_is_not_counted_shows_the_default_limit_untouched() {
    let world = world().await;
    let (_, token) = world.reader().await;
    let me = world.get(&token, "/v1/me").await.json();
    let client_id = me["app"]["client_id"].as_str().unwrap();
    world
        .adjust(client_id, &json!({"rate_limit": 7}))
        .await
        .expect(200);
    let get = world.client.get(&world.url("/v1/me")).bearer(&token);
    for uncounted in [
        get.without("user-agent").send().await,
        world.get("ps_at_x", "/v1/me").await,
    ] {
        assert_eq!(uncounted.number("x-ratelimit-limit"), 600);
        assert_eq!(uncounted.number("x-ratelimit-remaining"), 600);
        let ahead = uncounted.number("x-ratelimit-reset") - now().timestamp();
        assert!((0..=60).contains(&ahead), "the window ends {ahead} s from now");
    }
    let counted = world.get(&token, "/v1/me").await;
    assert_eq!(counted.number("x-ratelimit-limit"), 7);
    assert!(counted.number("x-ratelimit-remaining") < 7);
}

#[tokio::test]
async fn accept_is_ignored_and_no_cors_header_is_ever_sent() {
    let world = world().await;
    let (_, token) = world.reader().await;
    let preflight = [
        ("origin", "https://shop.example"),
        ("access-control-request-method", "GET"),
    ];
    for method in [Method::GET, Method::OPTIONS, Method::POST] {
        let mut request = world
            .client
            .request(method.clone(), &world.url("/v1/me"))
            .bearer(&token);
        for (name, value) in preflight {
            request = request.header(name, value);
        }
        let answer = request.header("accept", "text/html, image/*;q=0").send().await;
        assert_eq!(answer.must("content-type"), "application/json");
        let cors = answer
            .headers
            .keys()
            .filter(|name| name.as_str().starts_with("access-control"));
        assert_eq!(cors.count(), 0, "{method}: {:?}", answer.headers);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "compared with a window of the real clock"
)]
fn now() -> chrono::DateTime<chrono::Utc> {
    chrono::Utc::now()
}
