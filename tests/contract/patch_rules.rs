//! `PATCH /v1/offers/{id}`: valid bodies, and answers that list all errors at once.

use blackbox::{Expect, World, all_invalid, entry, merged, whole};
use serde_json::{Value, json};
use testkit::Answer;

use crate::world_of_trade;

async fn send(world: &World, token: &str, path: &str, body: impl Into<Vec<u8>>) -> Answer {
    let request = world.at("PATCH", &format!("/v1/offers/{path}")).bearer(token);
    request
        .header("content-type", "application/json")
        .body(body)
        .send()
        .await
}

async fn read(world: &World, token: &str, offer: &str) -> Value {
    world.read(token, &format!("/v1/offers/{offer}")).await
}

#[tokio::test]
async fn each_property_can_be_changed_alone_and_with_others() {
    let (world, trader, offer) = world_of_trade().await;
    let price = |amount: u64| json!({"amount": amount, "currency": "PLN"});
    for change in [
        json!({"price": price(11_900)}),
        json!({"stock": 0}),
        json!({"status": "draft"}),
        json!({"status": "published"}),
        json!({"status": "published"}),
        json!({"status": "draft"}),
        json!({"price": price(0), "stock": 2_147_483_647_u32, "status": "published"}),
        json!({"price": price(9_007_199_254_740_991)}),
        json!({"external_id": "SKU 7/ż+\u{2028}"}),
        json!({"external_id": "ż".repeat(100), "stock": 1}),
        json!({"external_id": null}),
    ] {
        let before = read(&world, &trader.token, &offer).await;
        let after = world.patched(&trader.token, &offer, &change).await;
        let expected = merged(
            before,
            merged(
                change,
                json!({"updated_at": after["updated_at"], "etag": after["etag"]}),
            ),
        );
        assert_eq!(after, expected);
        assert_eq!(read(&world, &trader.token, &offer).await, after);
    }
    // `fields` selects fields of the answer.
    let patch = async |query: &str, stock: u32| {
        let body = json!({"stock": stock}).to_string();
        send(&world, &trader.token, &format!("{offer}?{query}"), body).await
    };
    let answer = patch("fields=stock,title,stock", 3).await.expect(200).json();
    assert_eq!(answer, json!({"id": offer, "stock": 3, "title": answer["title"]}));
    let table = "
        fields=price_source => fields
        fields=             => fields";
    all_invalid(table, async |query| patch(query, 4).await).await;
    assert_eq!(world.stock(&trader.seller, &offer).await, 3);
}

#[tokio::test]
async fn each_invalid_value_is_named_by_its_path_and_nothing_is_changed() {
    let (world, trader, offer) = world_of_trade().await;
    let before = read(&world, &trader.token, &offer).await;
    let table = r#"
        {"price":null}                                                 => price
        {"price":{"currency":"PLN"}}                                   => price.amount
        {"price":{"amount":1999}}                                      => price.currency
        {"price":{"amount":"5","currency":"PLN"}}                      => price.amount
        {"price":{"amount":9007199254740992,"currency":"PLN"}}         => price.amount
        {"price":{"amount":1,"currency":"EUR"}}                        => price.currency
        {"price":{"amount":1,"currency":"PLN","net":2}}                => price.net
        {"stock":null}                              => stock
        {"stock":-1}                                => stock
        {"stock":2147483648}                        => stock
        {"stock_adjustment":0}                      => stock_adjustment
        {"stock_adjustment":-1000001}               => stock_adjustment
        {"stock":8,"stock_adjustment":1}            => stock_adjustment
        {"status":"proposed"}                       => status
        {"external_id":""}                          => external_id
        {"external_id":"LONG"}                      => external_id
        {"external_id":"a\tb"}                      => external_id
        {"external_id":7}                           => external_id
        {"stock":8,"title":"Other"}                 => title
        {"stock":8,"price_source":"automatic"}      => price_source"#;
    let patch = async |body: &str| send(&world, &trader.token, &offer, body).await;
    all_invalid(&table.replace("LONG", &"x".repeat(101)), patch).await;
    // Malformed JSON, and what is no object with a field, gives one entry without a path.
    for body in [
        "",
        "{",
        "{}",
        "[]",
        r#"{"stock":8}{}"#,
        r#"{"stock":8,"\u0073tock":9}"#,
        "{\"status\":\"dra\\u0000ft\"}",
    ] {
        let answer = send(&world, &trader.token, &offer, body).await;
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        assert_eq!(answer.errors(), [whole("validation_error")], "{body}");
    }
    let broken = send(&world, &trader.token, &offer, b"{\"status\":\"\xff\"}".to_vec()).await;
    broken.is_problem(400, &[whole("validation_error")]);
    // A body needs its content type.
    let url = format!("/v1/offers/{offer}");
    let untyped = || {
        let request = world.at("PATCH", &url).bearer(&trader.token);
        request.body(r#"{"stock":5}"#)
    };
    untyped().send().await.invalid("Content-Type");
    let typed = |kind: &str| untyped().header("content-type", kind).send();
    for bad in "text/plain|application/merge-patch+json|application/json; charset=latin1".split('|') {
        typed(bad).await.invalid("Content-Type");
    }
    assert_eq!(read(&world, &trader.token, &offer).await, before);
    for good in ["application/json", "Application/JSON; Charset=UTF-8"] {
        typed(good).await.expect(200);
    }
}

#[tokio::test]
async fn all_errors_are_listed_headers_before_query_before_body() {
    let (world, trader, offer) = world_of_trade().await;
    let path = format!("/v1/offers/{offer}?fields=nothing&colour=red");
    let request = world
        .at("PATCH", &path)
        .bearer(&trader.token)
        .header("idempotency-key", "");
    let body = r#"{"zebra":1,"status":"gone","stock":-1,"price":{"currency":"EUR","amount":-1},"apple":2}"#;
    let request = request.header("content-type", "application/json").body(body);
    let errors = request.send().await.expect(400).errors();
    let mut paths: Vec<_> = errors.into_iter().filter_map(|(_, path)| path).collect();
    // The order of entries about the query and about unknown names is not defined.
    paths[1..3].sort();
    paths[7..].sort();
    let expected = "Idempotency-Key colour fields price.amount price.currency stock status apple zebra";
    assert_eq!(paths.join(" "), expected);
    let many: serde_json::Map<_, _> = (0..50).map(|n| (format!("field{n}"), json!(n))).collect();
    let answer = world.patch(&trader.token, &offer, &Value::Object(many)).await;
    assert_eq!((answer.status, answer.errors().len()), (400, 20));
}

#[tokio::test]
async fn all_changes_that_the_offer_does_not_allow_are_listed_and_none_is_applied() {
    let (world, trader, _) = world_of_trade().await;
    let change = json!({"price": {"amount": 1, "currency": "PLN"}, "stock": 1, "status": "draft"});
    let [price, stock, status] = [
        entry("no_price_row", "price"),
        entry("no_inventory_row", "stock"),
        entry("status_locked_by_moderation", "status"),
    ];
    let bare = json!({"price": null, "stock": null, "status": "rejected"});
    for (offer, entries) in [
        (bare, vec![price.clone(), stock.clone(), status]),
        (json!({"stock": null}), vec![stock]),
        (json!({"price": null}), vec![price]),
    ] {
        let offer = world.any_offer(&trader.seller, offer).await;
        let before = read(&world, &trader.token, &offer).await;
        let answer = world.patch(&trader.token, &offer, &change).await;
        answer.is_problem(422, &entries);
        assert_eq!(read(&world, &trader.token, &offer).await, before);
        // A value outside the enumeration is invalid in any state of the offer.
        let odd = merged(change.clone(), json!({"status": "rejected"}));
        world.patch(&trader.token, &offer, &odd).await.invalid("status");
    }
}
