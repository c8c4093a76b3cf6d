//! Headers: the User-Agent rule, request and trace ids, and what responses never have. Every test compares
//! responses with the document besides.

use blackbox::{Expect, Wire, World, request, request_with_body};
use serde_json::json;

use crate::world;

#[tokio::test]
async fn a_user_agent_starts_with_the_pattern_and_is_checked_before_the_token() {
    let world = world().await;
    let (_, token) = world.reader().await;
    let ask = async |agent: &str| {
        let request = world.at("GET", "/v1/me").bearer(&token).without("user-agent");
        request.header("user-agent", agent).send().await
    };
    let (b63, zeros) = ("b".repeat(63), "0".repeat(31));
    let fine = format!(
        "a/1|App/1.0|My-App_2.x/2024.11-rc_1 (+https://docs.example)|Mozilla/5.0 (X11; Linux x86_64)|\
        App/1.0;anything|App/1.0/2|9/9|a{b63}/1|App/1{zeros}|App/1{zeros}{zeros}00 and more"
    );
    for agent in fine.split('|') {
        assert_eq!(ask(agent).await.status, 200, "{agent}");
    }
    let bad = format!(
        "|App|App/|/1.0|App /1.0|App/ 1.0|-App/1.0|.App/1.0|_App/1.0|App/-1|App/.1|App+/1|(App/1.0)|a{b63}b/1"
    );
    for agent in bad.split('|') {
        let answer = ask(agent).await;
        assert_eq!(answer.status, 400, "{agent}");
        answer.refused(400, "missing_user_agent");
    }
    // Missing, repeated, or not ASCII; with any token.
    let bearer = format!("Bearer {token}");
    let good = ("user-agent", "App/1.0");
    let cases: [&[(&str, &str)]; 4] = [
        &[],
        &[("authorization", &bearer)],
        &[("authorization", &bearer), good, good],
        &[("authorization", &bearer), ("user-agent", "Żaba/1.0")],
    ];
    for headers in cases {
        let answer = Wire::exchange(&world.server.base_url, request("GET", "/v1/me", headers)).await;
        answer.refused(400, "missing_user_agent");
    }
}

/// Paths on both listeners with every kind of answer.
fn places(world: &World) -> Vec<String> {
    let public = "/v1/me /v1/nothing /oauth/token /oauth/nothing /nothing / /panel/sign-in /panel/nothing \
        /docs/guide/orders /openapi.json";
    let public = public.split(' ');
    let office = "/healthz /readyz /metrics /sellers /nothing".split(' ');
    let public = public.map(|path| world.url(path));
    let office = office.map(|path| format!("{}{path}", world.server.backoffice_url));
    public.chain(office).collect()
}

#[tokio::test]
async fn a_valid_request_id_is_echoed_everywhere_and_any_other_is_ignored() {
    let world = world().await;
    let (longest, too_long) = ("x".repeat(64), "x".repeat(65));
    for url in places(&world) {
        let ask = |id: &str| world.client.get(&url).header("x-request-id", id);
        for id in ["12345678", "order-17:try.2_A", &longest] {
            assert_eq!(ask(id).send().await.must("x-trace-id"), id, "{url}");
        }
        let no_agent = ask("no-agent-1").without("user-agent").send().await;
        assert_eq!(no_agent.must("x-trace-id"), "no-agent-1", "{url}");
        let mut seen = vec![world.client.get(&url).send().await.must("x-trace-id").to_owned()];
        for id in ["", &too_long, "przecię"] {
            let made = ask(id).send().await.must("x-trace-id").to_owned();
            assert_ne!(made, id, "{url}");
            assert!((8..=64).contains(&made.len()), "{made}");
            assert!(!seen.contains(&made), "{url}: {made} was made twice");
            seen.push(made);
        }
    }
    // Two headers count as none.
    let headers = [
        ("user-agent", "App/1.0"),
        ("x-request-id", "first-one"),
        ("x-request-id", "second-one"),
    ];
    let answer = Wire::exchange(&world.server.base_url, request("GET", "/v1/me", &headers)).await;
    let made = answer.must("x-trace-id");
    assert!(made != "first-one" && made != "second-one", "{made}");
}

#[tokio::test]
async fn accept_is_ignored_and_no_cors_header_is_sent() {
    let world = world().await;
    let (_, token) = world.reader().await;
    for method in ["GET", "OPTIONS", "POST"] {
        let request = world.at(method, "/v1/me").bearer(&token);
        let request = request.header("origin", "https://shop.example");
        let request = request.header("access-control-request-method", "GET");
        let answer = request.header("accept", "text/html, image/*;q=0").send().await;
        assert_eq!(answer.must("content-type"), "application/json");
        assert_eq!(answer.must("x-content-type-options"), "nosniff");
        assert_eq!(answer.number("x-ratelimit-reset") % 60, 0);
        assert_eq!(answer.header("retry-after"), None);
        assert_eq!(answer.header("www-authenticate"), None);
        let mut names = answer.headers.keys();
        let cors = names.find(|name| name.as_str().starts_with("access-control"));
        assert_eq!(cors, None, "{method}");
    }
    // Windows follow the real clock, also for uncounted requests.
    let before = now().timestamp();
    let uncounted = world.get("ps_at_x", "/v1/me").await;
    let end = uncounted.number("x-ratelimit-reset");
    assert!(before < end && end <= now().timestamp() + 60, "{before}, {end}");
}

#[expect(
    clippy::disallowed_methods,
    reason = "compared with a window of the real clock"
)]
fn now() -> chrono::DateTime<chrono::Utc> {
    chrono::Utc::now()
}

/// Some clients and proxies offer one with every request (RFC 9110 §7.8).
#[tokio::test]
async fn an_offered_upgrade_is_ignored_and_the_body_is_not() {
    let world = world().await;
    let trader = world.trader().await;
    let offer = world.any_offer(&trader.seller, json!({"stock": 1})).await;
    let (target, bearer) = (format!("/v1/offers/{offer}"), format!("Bearer {}", trader.token));
    for (stock, offered) in [
        (2, &[("connection", "upgrade")][..]),
        (
            3,
            &[
                ("connection", "upgrade, http2-settings"),
                ("upgrade", "h2c"),
                ("http2-settings", "AAMAAABk"),
            ],
        ),
        (4, &[("upgrade", "something/1")]),
    ] {
        let own = [
            ("user-agent", "App/1.0"),
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
        ];
        let body = json!({"stock": stock}).to_string();
        let patch = request_with_body("PATCH", &target, &[&own, offered].concat(), &body);
        Wire::last(&world.server.base_url, patch).await.expect(200);
        assert_eq!(world.stock(&trader.seller, &offer).await, stock, "{offered:?}");
    }
}
