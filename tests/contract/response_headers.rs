//! The headers of all `/v1` responses, beyond the document, against which every answer in the tests is checked.

use blackbox::Expect;

use crate::world;

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
        assert_eq!(answer.must("x-content-type-options"), "nosniff");
        assert_eq!(answer.number("x-ratelimit-reset") % 60, 0);
        assert_eq!(
            (answer.header("retry-after"), answer.header("www-authenticate")),
            (None, None)
        );
        let mut names = answer.headers.keys();
        let cors = names.find(|name| name.as_str().starts_with("access-control"));
        assert_eq!(cors, None, "{method}");
    }
    // Windows follow the real clock, also for uncounted requests.
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
