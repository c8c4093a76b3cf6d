//! `PATCH /v1/offers/{id}`: what a body may say, and how everything wrong with it is told at once.

use blackbox::{Expect, World, entry, merged, offer_body, offer_id};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::Answer;

use crate::{world, world_of_trade};

async fn send(world: &World, token: &str, offer: &str, body: &str) -> Answer {
    let url = world.url(&format!("/v1/offers/{offer}"));
    let request = world.client.request(Method::PATCH, &url).bearer(token);
    let request = request.header("content-type", "application/json");
    request.body(body).send().await
}

async fn read(world: &World, token: &str, offer: &str) -> Value {
    let answer = world.get(token, &format!("/v1/offers/{offer}")).await;
    answer.expect(200).json()
}

#[tokio::test]
async fn each_property_alone_and_all_together() {
    let (world, trader, offer) = world_of_trade().await;
    let price = json!({"amount": 11_900, "currency": "PLN"});
    for change in [
        json!({"price": price}),
        json!({"stock": 0}),
        json!({"status": "draft"}),
        json!({"price": {"amount": 0, "currency": "PLN"}, "stock": 2_147_483_647_u32, "status": "published"}),
        json!({"price": {"amount": 9_007_199_254_740_991_u64, "currency": "PLN"}}),
    ] {
        let before = read(&world, &trader.token, &offer).await;
        let answer = world.patch(&trader.token, &offer, &change).await.expect(200);
        assert_eq!(answer.must("content-type"), "application/json");
        let after = answer.json();
        let expected = merged(before, merged(change, json!({"updated_at": after["updated_at"]})));
        assert_eq!(after, expected);
        assert_eq!(read(&world, &trader.token, &offer).await, after);
    }
}

#[tokio::test]
async fn every_bad_value_is_told_by_its_path_and_changes_nothing() {
    let (world, trader, offer) = world_of_trade().await;
    let before = read(&world, &trader.token, &offer).await;
    for (body, path) in [
        (r#"{"price":null}"#, "price"),
        (r#"{"price":1999}"#, "price"),
        (r#"{"price":[]}"#, "price"),
        (r#"{"price":{"currency":"PLN"}}"#, "price.amount"),
        (r#"{"price":{"amount":1999}}"#, "price.currency"),
        (r#"{"price":{"amount":1999.0,"currency":"PLN"}}"#, "price.amount"),
        (r#"{"price":{"amount":1e3,"currency":"PLN"}}"#, "price.amount"),
        (r#"{"price":{"amount":"5","currency":"PLN"}}"#, "price.amount"),
        (r#"{"price":{"amount":null,"currency":"PLN"}}"#, "price.amount"),
        (r#"{"price":{"amount":true,"currency":"PLN"}}"#, "price.amount"),
        (r#"{"price":{"amount":-1,"currency":"PLN"}}"#, "price.amount"),
        (
            r#"{"price":{"amount":9007199254740992,"currency":"PLN"}}"#,
            "price.amount",
        ),
        (
            r#"{"price":{"amount":99999999999999999999999,"currency":"PLN"}}"#,
            "price.amount",
        ),
        (r#"{"price":{"amount":1,"currency":"EUR"}}"#, "price.currency"),
        (r#"{"price":{"amount":1,"currency":"pln"}}"#, "price.currency"),
        (r#"{"price":{"amount":1,"currency":985}}"#, "price.currency"),
        (r#"{"price":{"amount":1,"currency":"PLN","net":2}}"#, "price.net"),
        (r#"{"stock":null}"#, "stock"),
        (r#"{"stock":-1}"#, "stock"),
        (r#"{"stock":2147483648}"#, "stock"),
        (r#"{"stock":"7"}"#, "stock"),
        (r#"{"stock":7.0}"#, "stock"),
        (r#"{"stock":1e1}"#, "stock"),
        (r#"{"status":"proposed"}"#, "status"),
        (r#"{"status":"rejected"}"#, "status"),
        (r#"{"status":"Published"}"#, "status"),
        (r#"{"status":null}"#, "status"),
        (r#"{"status":1}"#, "status"),
        (r#"{"stock":8,"title":"Other"}"#, "title"),
        (r#"{"stock":8,"price_source":"automatic"}"#, "price_source"),
        (r#"{"id":"x"}"#, "id"),
    ] {
        let answer = send(&world, &trader.token, &offer, body).await;
        assert_eq!(answer.status, 400, "{body}");
        answer.invalid(&[path]);
    }
    assert_eq!(read(&world, &trader.token, &offer).await, before);
}

#[tokio::test]
async fn a_body_that_is_no_proper_object_is_one_entry_without_a_path() {
    let (world, trader, offer) = world_of_trade().await;
    let deep = format!(r#"{{"stock":{}1{}}}"#, "[".repeat(40), "]".repeat(40));
    for body in [
        "",
        "{",
        "{}",
        "[]",
        "null",
        "7",
        r#""stock""#,
        r#"{"stock":8}{}"#,
        r#"{"stock":8,}"#,
        "{stock:8}",
        r#"{"stock":08}"#,
        r#"{"stock":+8}"#,
        r#"{"stock":NaN}"#,
        r#"{"stock":8} x"#,
        "\u{feff}{\"stock\":8}",
        r#"{"stock":8,"stock":9}"#,
        r#"{"stock":8,"\u0073tock":9}"#,
        "{\"status\":\"dra\\u0000ft\"}",
        &deep,
    ] {
        let answer = send(&world, &trader.token, &offer, body).await;
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        let errors = answer.errors();
        assert_eq!(errors.len(), 1, "{body}: {errors:?}");
        assert_eq!(errors[0].0, "validation_error", "{body}");
    }
    for body in ["{", "{}", "[]", ""] {
        let answer = send(&world, &trader.token, &offer, body).await;
        assert_eq!(answer.errors(), [blackbox::whole("validation_error")], "{body}");
    }
    let url = world.url(&format!("/v1/offers/{offer}"));
    let broken = world.client.request(Method::PATCH, &url).bearer(&trader.token);
    let broken = broken
        .header("content-type", "application/json")
        .body(b"{\"status\":\"\xff\"}".to_vec());
    assert_eq!(broken.send().await.code(), "validation_error");
    assert_eq!(read(&world, &trader.token, &offer).await["stock"], 7);
}

#[tokio::test]
async fn all_entries_come_together_headers_then_query_then_body_in_the_contracts_order() {
    let (world, trader, offer) = world_of_trade().await;
    let url = world.url(&format!("/v1/offers/{offer}?fields=nothing&colour=red"));
    let request = world.client.request(Method::PATCH, &url).bearer(&trader.token);
    let body = r#"{"zebra":1,"status":"gone","stock":-1,"price":{"currency":"EUR","amount":-1},"apple":2}"#;
    let request = request
        .header("content-type", "application/json")
        .header("idempotency-key", "");
    let answer = request.body(body).send().await;
    assert_eq!(answer.status, 400, "{answer:?}");
    let paths: Vec<_> = answer.errors().into_iter().filter_map(|(_, path)| path).collect();
    assert_eq!(paths[0], "Idempotency-Key");
    let query: std::collections::BTreeSet<_> = paths[1..3].iter().map(String::as_str).collect();
    assert_eq!(query, ["colour", "fields"].into());
    assert_eq!(paths[3..7], ["price.amount", "price.currency", "stock", "status"]);
    let unknown: std::collections::BTreeSet<_> = paths[7..].iter().map(String::as_str).collect();
    assert_eq!(unknown, ["apple", "zebra"].into());
    let many: serde_json::Map<_, _> = (0..50).map(|n| (format!("field{n}"), json!(n))).collect();
    let answer = world.patch(&trader.token, &offer, &Value::Object(many)).await;
    assert_eq!((answer.status, answer.errors().len()), (400, 20));
}

#[tokio::test]
async fn a_body_needs_its_content_type() {
    let (world, trader, offer) = world_of_trade().await;
    let url = world.url(&format!("/v1/offers/{offer}"));
    let send = |kind: Option<&'static str>| {
        let request = world.client.request(Method::PATCH, &url).bearer(&trader.token);
        let request = request.body(r#"{"stock":5}"#);
        match kind {
            Some(kind) => request.header("content-type", kind).send(),
            None => request.send(),
        }
    };
    for bad in [
        None,
        Some("text/plain"),
        Some("application/merge-patch+json"),
        Some("application/json; charset=latin1"),
    ] {
        send(bad).await.invalid(&["Content-Type"]);
    }
    for good in ["application/json", "Application/JSON; Charset=UTF-8"] {
        send(Some(good)).await.expect(200);
    }
}

#[tokio::test]
async fn scope_then_body_then_the_offer_itself() {
    let (world, trader, offer) = world_of_trade().await;
    let reader = world.personal_token(&trader.seller, &["offers:read"]).await.token;
    let refused = send(&world, &reader, &offer, "{").await;
    refused.refused(403, "insufficient_scope");
    assert!(
        refused.json()["errors"][0]["message"]
            .as_str()
            .unwrap()
            .contains("offers:write")
    );
    assert!(refused.must("www-authenticate").contains("offers:write"));
    let stranger = world.trader().await;
    let nobodys = offer_id(999_999);
    for (token, id) in [
        (&stranger.token, offer.as_str()),
        (&trader.token, nobodys.as_str()),
        (&trader.token, "kettle"),
        (&trader.token, "%00"),
    ] {
        let answer = send(&world, token, id, r#"{"stock":1}"#).await;
        answer.is_problem(404, &[blackbox::whole("not_found")]);
        if id != "%00" {
            send(&world, token, id, r#"{"stock":-1}"#)
                .await
                .invalid(&["stock"]);
        }
    }
    assert_eq!(read(&world, &trader.token, &offer).await["stock"], 7);
    world
        .get(&trader.token, &format!("/v1/offers/{nobodys}"))
        .await
        .refused(404, "not_found");
}

#[tokio::test]
async fn what_the_offer_does_not_allow_is_told_together_and_nothing_is_applied() {
    let world = world().await;
    let trader = world.trader().await;
    let bare = json!({"price": null, "stock": null, "status": "rejected"});
    let offer = world.any_offer(&trader.seller, bare).await;
    let whole = json!({"price": {"amount": 1, "currency": "PLN"}, "stock": 1, "status": "draft"});
    let answer = world.patch(&trader.token, &offer, &whole).await;
    let three = [
        entry("no_price_row", "price"),
        entry("no_inventory_row", "stock"),
        entry("status_locked_by_moderation", "status"),
    ];
    answer.is_problem(422, &three);
    // A value outside the enumeration is wrong whatever the offer is.
    let answer = world
        .patch(
            &trader.token,
            &offer,
            &json!({"price": whole["price"], "status": "rejected"}),
        )
        .await;
    answer.invalid(&["status"]);
    let priced = world.any_offer(&trader.seller, json!({"stock": null})).await;
    let answer = world.patch(&trader.token, &priced, &whole).await;
    answer.is_problem(422, &[entry("no_inventory_row", "stock")]);
    let untouched = read(&world, &trader.token, &priced).await;
    assert_eq!(untouched["price"], offer_body(0, json!({}))["price"]);
    assert_eq!(untouched["status"], "published");
    let stocked = world.any_offer(&trader.seller, json!({"price": null})).await;
    let answer = world.patch(&trader.token, &stocked, &whole).await;
    answer.is_problem(422, &[entry("no_price_row", "price")]);
    assert_eq!(read(&world, &trader.token, &stocked).await["stock"], 7);
}
