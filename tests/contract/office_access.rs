//! The back office's listener: access, common rules, paths.

use blackbox::{Expect, Wire, offer_body, offer_id, request};
use reqwest::Method;
use serde_json::json;

use crate::world;

const UNKNOWN: &str = "01900000-0000-7000-8000-000000000099";

#[tokio::test]
async fn only_an_operator_token_opens_it() {
    let world = world().await;
    let (url, good) = (
        format!("{}/sellers", world.server.backoffice_url),
        &world.server.operator_token,
    );
    assert!(good.starts_with("ps_op_"));
    let with = |header: &str| world.client.get(&url).header("authorization", header);
    for header in [format!("Bearer {good}"), format!("bearer {good}")] {
        with(&header).without("user-agent").send().await.expect(200);
    }
    // Other invalid tokens and all other routes are in the matrix of routes and credentials.
    let shorter = &good[..good.len() - 1];
    for header in [
        format!("Basic {good}"),
        format!("Bearer {good}A"),
        format!("Bearer {shorter}"),
    ] {
        with(&header).send().await.refused(401, "unauthorized");
    }
}

#[tokio::test]
async fn the_two_listeners_do_not_serve_each_others_paths() {
    let world = world().await;
    let (_, token) = world.reader().await;
    for path in ["/v1/me", "/oauth/token"] {
        world.office_get(path).await.refused(404, "not_found");
    }
    for path in ["/sellers", "/healthz", "/readyz", "/metrics", "/applications"] {
        world.get(&token, path).await.expect(404);
    }
    // Health, readiness and metrics need no token.
    for path in ["/healthz", "/readyz", "/metrics"] {
        let url = format!("{}{path}", world.server.backoffice_url);
        let answer = world.client.get(&url).send().await.expect(200);
        assert!(answer.must("x-trace-id").len() >= 8, "{path}");
        if path == "/metrics" {
            assert!(
                answer.must("content-type").starts_with("text/plain"),
                "{answer:?}"
            );
            let text = String::from_utf8(answer.bytes).unwrap();
            let is_figure = |line: &str| !line.starts_with('#') && line.contains(' ');
            assert!(text.lines().any(is_figure), "{text}");
        }
    }
    // There is no User-Agent rule and no rate limit.
    let bearer = format!("Bearer {}", world.server.operator_token);
    let bytes = request("GET", "/sellers", &[("authorization", &bearer)]);
    let answer = Wire::exchange(&world.server.backoffice_url, bytes)
        .await
        .expect(200);
    let limits = answer
        .headers
        .keys()
        .filter(|name| name.as_str().starts_with("x-ratelimit"));
    assert_eq!(limits.count(), 0, "{answer:?}");
    assert_eq!(answer.must("content-type"), "application/json");
    assert_eq!(answer.must("cache-control"), "no-store");
}

#[tokio::test]
async fn an_id_in_a_path_that_is_none_or_unknown_is_404() {
    let world = world().await;
    let seller = world.seller().await;
    let bearer = format!("Bearer {}", world.server.operator_token);
    for id in ["nothing", "0", "%00", "%zz", UNKNOWN] {
        for path in [String::new(), format!("/offers/{}", offer_id(1))] {
            let target = format!("/sellers/{id}{path}");
            let bytes = request("GET", &target, &[("authorization", &bearer)]);
            let answer = Wire::exchange(&world.server.backoffice_url, bytes).await;
            answer.refused(404, "not_found");
        }
    }
    let unknown = |path: &str| format!("/sellers/{UNKNOWN}/{path}");
    let own = |path: &str| format!("/sellers/{}/{path}", seller.id);
    let offer = offer_body(1, json!({}));
    let token = json!({"name": "x", "scopes": ["offers:read"]});
    let import = world.office(Method::POST, &unknown("offers:import"));
    let mut requests = vec![
        world
            .office(Method::PUT, &unknown(&format!("offers/{}", offer_id(1))))
            .json(&offer),
        world
            .office(Method::POST, &unknown("applications"))
            .json(&world.registration(json!({}))),
        world
            .office(Method::POST, &unknown("personal-tokens"))
            .json(&token),
        world.office(Method::POST, &unknown("closure")),
        import.header("content-type", "application/x-ndjson").body("{}"),
        world.office(Method::PUT, &own("offers/nothing")).json(&offer),
        world.office(Method::DELETE, "/sellers"),
    ];
    for id in ["nothing", UNKNOWN] {
        requests.push(world.office(Method::DELETE, &own(&format!("personal-tokens/{id}"))));
        requests.push(world.office(Method::GET, &own(&format!("offers/{id}"))));
        requests.push(world.office(Method::POST, &format!("/applications/{id}/suspension")));
    }
    let paths = ["/nothing", "/sellers/", "/Sellers"];
    requests.extend(paths.map(|path| world.office(Method::GET, path)));
    for request in requests {
        request.send().await.refused(404, "not_found");
    }
}
