//! JSON in the back office is parsed strictly: every kind of error has its answer.

use blackbox::{Expect, Wire, World, request_with_body, whole};
use reqwest::Method;
use serde_json::json;
use testkit::Answer;

use crate::world;

/// Posts these bytes as a seller.
async fn post(world: &World, kind: &str, body: impl Into<Vec<u8>>) -> Answer {
    let request = world.office(Method::POST, "/sellers");
    request.header("content-type", kind).body(body).send().await
}

#[tokio::test]
async fn a_body_is_json_and_needs_its_content_type() {
    let world = world().await;
    let seller = |n: usize| format!(r#"{{"name":"Kettles","email":"kind-{n}@shop.example"}}"#);
    let fine = "application/json|Application/JSON|application/json;charset=utf-8|application/json; charset=\"UTF-8\"";
    for (n, kind) in fine.split('|').enumerate() {
        post(&world, kind, seller(n)).await.expect(201);
    }
    let bad = "|text/plain|application/x-www-form-urlencoded|application/json; charset=latin1|json";
    for kind in bad.split('|') {
        post(&world, kind, seller(90)).await.invalid("Content-Type");
    }
    let none = world.office(Method::POST, "/sellers").body(seller(91));
    none.send().await.invalid("Content-Type");
    // The tests of `PATCH /v1/offers/{id}` cover the parser, which is the same.
    let twice = r#"{"name":"K","na\u006de":"K","email":"a@shop.example"}"#;
    let answer = post(&world, "application/json", twice).await;
    assert_eq!(answer.expect(400).code(), "validation_error");
    let escaped = r#"{"na\u006de":"K","email":"escaped@shop.example"}"#;
    post(&world, "application/json", escaped).await.expect(201);
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
