//! JSON on the back office is read as strictly as anywhere: every way of being wrong has its answer.

use blackbox::{Expect, Wire, request_with_body, whole};
use reqwest::Method;
use serde_json::json;

use crate::world;

#[tokio::test]
async fn a_body_needs_its_content_type() {
    let world = world().await;
    let send = |kind: &str, n: usize| {
        let body = json!({"name": "Kettles", "email": format!("kind-{n}@shop.example")}).to_string();
        world
            .office(Method::POST, "/sellers")
            .header("content-type", kind)
            .body(body)
            .send()
    };
    let fine = [
        "application/json",
        "Application/JSON",
        "application/json;charset=utf-8",
        "application/json; charset=\"UTF-8\"",
    ];
    for (n, kind) in fine.into_iter().enumerate() {
        send(kind, n).await.expect(201);
    }
    for kind in [
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/json; charset=latin1",
        "json",
    ] {
        send(kind, 90).await.invalid(&["Content-Type"]);
    }
    let none = world
        .office(Method::POST, "/sellers")
        .body(r#"{"name":"K","email":"none@shop.example"}"#)
        .send()
        .await;
    none.invalid(&["Content-Type"]);
}

#[tokio::test]
async fn malformed_json_is_one_entry_without_path() {
    let world = world().await;
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
        let request = world
            .office(Method::POST, "/sellers")
            .header("content-type", "application/json");
        let answer = request.body(body).send().await;
        assert_eq!(answer.status, 400, "{}", String::from_utf8_lossy(body));
        assert_eq!(
            answer.errors(),
            [whole("validation_error")],
            "{}",
            String::from_utf8_lossy(body)
        );
    }
}

#[tokio::test]
async fn duplicate_keys_and_nul_are_refused_however_they_are_written() {
    let world = world().await;
    let bodies = [
        r#"{"name":"K","name":"K","email":"a@shop.example"}"#,
        r#"{"name":"K","na\u006de":"K","email":"a@shop.example"}"#,
        r#"{"name":"K\u0000","email":"a@shop.example"}"#,
        r#"{"name":"K","email":"a@shop.example","x\u0000":1}"#,
        r#"{"name":"K","email":"a@shop.example","x":{"y":1,"y":1}}"#,
        r#"{"name":"\ud800","email":"a@shop.example"}"#,
    ];
    for body in bodies {
        let request = world
            .office(Method::POST, "/sellers")
            .header("content-type", "application/json");
        let answer = request.body(body).send().await;
        assert_eq!(answer.status, 400, "{body}");
        assert!(
            answer.errors().iter().all(|(code, _)| code == "validation_error"),
            "{body}: {answer:?}"
        );
    }
    let escaped = r#"{"na\u006de":"K","email":"escaped@shop.example"}"#;
    let request = world
        .office(Method::POST, "/sellers")
        .header("content-type", "application/json");
    request.body(escaped).send().await.expect(201);
}

#[tokio::test]
async fn integers_are_json_integers() {
    let world = world().await;
    let seller = world.seller().await;
    let path = format!("/sellers/{}/offers/{}", seller.id, blackbox::offer_id(1));
    let put = |price: &str, stock: &str| {
        let body = format!(
            r#"{{"title":"t","handle":"h","status":"draft","url":"https://x.example",
                "price":{{"amount":{price},"currency":"PLN"}},"stock":{stock}}}"#
        );
        world
            .office(Method::PUT, &path)
            .header("content-type", "application/json")
            .body(body)
            .send()
    };
    for bad in [
        "1999.0",
        "1e3",
        "\"5\"",
        "true",
        "null",
        "-1",
        "9007199254740992",
        "99999999999999999999",
        "[1]",
        "{}",
    ] {
        put(bad, "1").await.invalid(&["price.amount"]);
    }
    for bad in [
        "1.0",
        "1e0",
        "\"5\"",
        "false",
        "-1",
        "2147483648",
        "99999999999999999999",
        "[]",
    ] {
        put("1", bad).await.invalid(&["stock"]);
    }
    put("1.5", "-1").await.invalid(&["price.amount", "stock"]);
    put("-0", "0").await;
    put("9007199254740991", "2147483647").await;
    let kept = world.office_get(&path).await.expect(200).json();
    assert_eq!(
        (&kept["price"]["amount"], &kept["stock"]),
        (&json!(9_007_199_254_740_991_i64), &json!(2_147_483_647))
    );
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
        let body = r#"{"name":"K","email":"large@shop.example"}"#;
        request_with_body(
            "POST",
            "/sellers",
            &headers,
            &(body.to_owned() + &" ".repeat(size - body.len())),
        )
    };
    let mut wire = Wire::connect(&world.server.backoffice_url).await;
    wire.send(filled(1024 * 1024 + 1)).await;
    wire.answer()
        .await
        .unwrap()
        .is_problem(400, &[whole("validation_error")]);
    assert!(wire.is_closed().await);
    Wire::exchange(&world.server.backoffice_url, filled(1024 * 1024))
        .await
        .expect(201);
}

#[tokio::test]
async fn unknown_fields_are_named_and_come_last() {
    let world = world().await;
    let body = json!({"aaa": 1, "name": 5, "zzz": 1});
    let answer = world.office_post("/sellers", &body).await.expect(400);
    let paths: Vec<_> = answer
        .errors()
        .into_iter()
        .map(|(_, path)| path.unwrap())
        .collect();
    assert_eq!(paths[..2], ["name", "email"]);
    let mut unknown = paths[2..].to_vec();
    unknown.sort();
    assert_eq!(unknown, ["aaa", "zzz"]);
    let many: serde_json::Map<_, _> = (0..40).map(|n| (format!("x{n}"), json!(1))).collect();
    assert_eq!(
        world
            .office_post("/sellers", &many.into())
            .await
            .expect(400)
            .errors()
            .len(),
        20
    );
}
