//! The back office's listener: access, common rules, paths, and strict JSON.

use blackbox::{Expect, Wire, World, offer_body, offer_id, request, request_with_body, whole};
use reqwest::Method;
use serde_json::json;
use testkit::Answer;

use crate::world;

const UNKNOWN: &str = "01900000-0000-7000-8000-000000000099";

#[tokio::test]
async fn only_an_operator_token_gives_access() {
    let world = world().await;
    let url = format!("{}/sellers", world.server.backoffice_url);
    let good = &world.server.operator_token;
    assert!(good.starts_with("ps_op_"));
    let with = |header: &str| world.client.get(&url).header("authorization", header);
    let bearer = format!("bearer {good}");
    with(&bearer).without("user-agent").send().await.expect(200);
    // Other invalid tokens and all other routes are in the matrix of routes and credentials.
    for changed in [format!("{good}A"), good[..good.len() - 1].to_owned()] {
        let answer = with(&format!("Bearer {changed}")).send().await;
        answer.refused(401, "unauthorized");
        let message = "Send one valid operator token: Authorization: Bearer <OPERATOR_TOKEN>.";
        assert_eq!(answer.json()["errors"][0]["message"], message);
    }
}

#[tokio::test]
async fn each_listener_serves_its_own_paths_alone() {
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
            assert!(answer.must("content-type").starts_with("text/plain"));
            let text = String::from_utf8(answer.bytes).unwrap();
            let is_figure = |line: &str| !line.starts_with('#') && line.contains(' ');
            assert!(text.lines().any(is_figure), "{text}");
        }
    }
    // There is no User-Agent rule and no rate limit.
    let bearer = format!("Bearer {}", world.server.operator_token);
    let bytes = request("GET", "/sellers", &[("authorization", &bearer)]);
    let answer = Wire::exchange(&world.server.backoffice_url, bytes).await;
    let answer = answer.expect(200);
    assert_eq!(answer.header("x-ratelimit-limit"), None);
    assert_eq!(answer.must("content-type"), "application/json");
    assert_eq!(answer.must("cache-control"), "no-store");
}

#[tokio::test]
async fn an_unknown_or_malformed_id_in_a_path_is_404() {
    let world = world().await;
    let bearer = format!("Bearer {}", world.server.operator_token);
    for id in ["nothing", "0", "%00", "%zz", UNKNOWN] {
        for path in [String::new(), format!("/offers/{}", offer_id(1))] {
            let target = format!("/sellers/{id}{path}");
            let bytes = request("GET", &target, &[("authorization", &bearer)]);
            let answer = Wire::exchange(&world.server.backoffice_url, bytes).await;
            answer.refused(404, "not_found");
        }
    }
    let unknown = format!("/sellers/{UNKNOWN}");
    let own = format!("/sellers/{}", world.seller().await.id);
    let (registration, offer) = (world.registration(json!({})), offer_body(1, json!({})));
    let token = json!({"name": "x", "scopes": ["offers:read"]});
    for (method, path, body) in [
        (Method::POST, format!("{unknown}/applications"), &registration),
        (Method::POST, format!("{unknown}/personal-tokens"), &token),
        (Method::PUT, format!("{unknown}/offers/{UNKNOWN}"), &offer),
        (Method::PUT, format!("{own}/offers/nothing"), &offer),
    ] {
        let request = world.office(method, &path).json(body);
        request.send().await.refused(404, "not_found");
    }
    for id in ["nothing", UNKNOWN] {
        for (method, path) in [
            (Method::DELETE, format!("{own}/personal-tokens/{id}")),
            (Method::GET, format!("{own}/offers/{id}")),
            (Method::POST, format!("/applications/{id}/suspension")),
            (Method::POST, format!("/sellers/{id}/closure")),
            (Method::GET, format!("/{id}")),
        ] {
            world.office(method, &path).send().await.refused(404, "not_found");
        }
    }
    for path in ["/sellers/", "/Sellers"] {
        world.office_get(path).await.refused(404, "not_found");
    }
    let import = world.office(Method::POST, &format!("{unknown}/offers:import"));
    let import = import.header("content-type", "application/x-ndjson").body("{}");
    import.send().await.refused(404, "not_found");
}

/// Posts these bytes as a seller.
async fn post(world: &World, kind: &str, body: impl Into<Vec<u8>>) -> Answer {
    let request = world.office(Method::POST, "/sellers");
    request.header("content-type", kind).body(body).send().await
}

#[tokio::test]
async fn a_body_is_json_and_needs_its_content_type() {
    let world = world().await;
    let seller = |n: usize| format!(r#"{{"name":"Kettles","email":"kind-{n}@shop.example"}}"#);
    let fine = "Application/JSON; charset=\"UTF-8\"";
    post(&world, fine, seller(1)).await.expect(201);
    for kind in ["", "text/plain"] {
        post(&world, kind, seller(90)).await.invalid("Content-Type");
    }
    let none = world.office(Method::POST, "/sellers").body(seller(91));
    none.send().await.invalid("Content-Type");
    // The tests of `PATCH /v1/offers/{id}` cover the parser, which is the same.
}

#[tokio::test]
async fn a_body_may_have_1_mib() {
    let world = world().await;
    let bearer = format!("Bearer {}", world.server.operator_token);
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    let filled = |size: usize| {
        let body = r#"{"name":"K","email":"large@shop.example"}"#.to_owned();
        let filler = " ".repeat(size - body.len());
        request_with_body("POST", "/sellers", &headers, &(body + &filler))
    };
    let base = &world.server.backoffice_url;
    let answer = Wire::last(base, filled(1024 * 1024 + 1)).await;
    answer.is_problem(400, &[whole("validation_error")]);
    Wire::exchange(base, filled(1024 * 1024)).await.expect(201);
}

#[tokio::test]
async fn unknown_fields_are_named_and_come_last() {
    let world = world().await;
    let body = json!({"aaa": 1, "name": 5, "zzz": 1});
    let answer = world.office_post("/sellers", &body).await.expect(400);
    let mut paths: Vec<_> = answer.errors().into_iter().filter_map(|(_, path)| path).collect();
    paths[2..].sort();
    assert_eq!(paths, ["name", "email", "aaa", "zzz"]);
    let many: serde_json::Map<_, _> = (0..40).map(|n| (format!("x{n}"), json!(1))).collect();
    let answer = world.office_post("/sellers", &many.into()).await.expect(400);
    assert_eq!(answer.errors().len(), 20);
}
