//! JSON on the back office is read as strictly as anywhere: every way of being wrong has its answer.

use blackbox::{Expect, Wire, World, offer_id, request_with_body, whole};
use reqwest::Method;
use serde_json::json;
use testkit::Answer;

use crate::world;

/// Posts a seller in these bytes.
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
        post(&world, kind, seller(90)).await.invalid(&["Content-Type"]);
    }
    let none = world
        .office(Method::POST, "/sellers")
        .body(seller(91))
        .send()
        .await;
    none.invalid(&["Content-Type"]);
    // What is malformed is one entry without a path.
    let deep = format!(r#"{{"name":{}1{}}}"#, "[".repeat(40), "]".repeat(40));
    let bodies: [&[u8]; 12] = [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\"text\"",
        b"17",
        b"{\"name\":\"K\",}",
        b"{\"name\":\"K\"} x",
        b"\xef\xbb\xbf{\"name\":\"K\",\"email\":\"a@b\"}",
        b"{\"name\":\"\xff\",\"email\":\"a@b\"}",
        b"{name:\"K\"}",
        deep.as_bytes(),
    ];
    for body in bodies {
        let answer = post(&world, "application/json", body).await;
        let found = (answer.status, answer.errors());
        assert_eq!(
            found,
            (400, vec![whole("validation_error")]),
            "{}",
            String::from_utf8_lossy(body)
        );
    }
    // Duplicate keys and NUL are refused however they are written.
    for body in [
        r#"{"name":"K","name":"K","email":"a@shop.example"}"#,
        r#"{"name":"K","na\u006de":"K","email":"a@shop.example"}"#,
        r#"{"name":"K\u0000","email":"a@shop.example"}"#,
        r#"{"name":"K","email":"a@shop.example","x\u0000":1}"#,
        r#"{"name":"K","email":"a@shop.example","x":{"y":1,"y":1}}"#,
        r#"{"name":"\ud800","email":"a@shop.example"}"#,
    ] {
        let answer = post(&world, "application/json", body).await.expect(400);
        let codes = answer.errors().into_iter().map(|(code, _)| code);
        assert!(
            codes.clone().all(|code| code == "validation_error"),
            "{body}: {answer:?}"
        );
    }
    let escaped = r#"{"na\u006de":"K","email":"escaped@shop.example"}"#;
    post(&world, "application/json", escaped).await.expect(201);
}

#[tokio::test]
async fn integers_are_json_integers() {
    let world = world().await;
    let path = format!("/sellers/{}/offers/{}", world.seller().await.id, offer_id(1));
    let put = async |price: &str, stock: &str| {
        let body = format!(
            r#"{{"title":"t","handle":"h","status":"draft","url":"https://x.example",
                "price":{{"amount":{price},"currency":"PLN"}},"stock":{stock}}}"#
        );
        let request = world.office(Method::PUT, &path);
        request
            .header("content-type", "application/json")
            .body(body)
            .send()
            .await
    };
    let bad = "1999.0 1e3 \"5\" true null -1 9007199254740992 99999999999999999999 [1] {}";
    for bad in bad.split(' ') {
        put(bad, "1").await.invalid(&["price.amount"]);
    }
    for bad in "1.0 1e0 \"5\" false -1 2147483648 99999999999999999999 []".split(' ') {
        put("1", bad).await.invalid(&["stock"]);
    }
    put("1.5", "-1").await.invalid(&["price.amount", "stock"]);
    put("-0", "0").await;
    put("9007199254740991", "2147483647").await;
    let kept = world.office_read(&path).await;
    assert_eq!(kept["price"]["amount"], 9_007_199_254_740_991_i64);
    assert_eq!(kept["stock"], 2_147_483_647);
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
