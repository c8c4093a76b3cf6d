//! `GET /v1/offers/{id}`: every field, nulls, numbers, texts, timestamps, `fields`, and access.

use blackbox::{Expect, World, merged, offer_body, offer_id, text};
use serde_json::{Value, json};

use crate::{instant, world};

/// The offer with this query. Asserts that it is the same alone and in a list.
async fn select(world: &World, token: &str, id: &str, query: &str) -> Value {
    let alone = world.read(token, &format!("/v1/offers/{id}?{query}")).await;
    let list = world.read(token, &format!("/v1/offers?{query}")).await;
    assert_eq!(list, json!({"items": [alone], "next": null}), "{query}");
    alone
}

#[tokio::test]
async fn every_field_is_returned_as_it_was_fed_alone_and_with_others() {
    let world = world().await;
    let clock = world.database.control_clock().await;
    let (seller, token) = world.reader().await;
    clock.freeze(instant("2040-01-01T12:00:00Z")).await;
    let nulls = json!({"price": null, "ean": null, "thumbnail": null});
    let id = world.offer(&seller, 1, nulls.clone()).await;
    clock.freeze(instant("2040-01-01T12:00:01.000200Z")).await;
    let select = async |query: &str| select(&world, &token, &id, query).await;
    for changes in [nulls, json!({"stock": 8})] {
        world.offer(&seller, 1, changes.clone()).await;
        let whole = select("").await;
        let written = json!({"id": id, "created_at": "2040-01-01T12:00:00.000000Z", "updated_at": whole["updated_at"],
            "etag": whole["etag"], "external_id": null});
        assert_eq!(whole, merged(offer_body(1, changes), written));
        let names: Vec<_> = whole.as_object().unwrap().keys().cloned().collect();
        for field in &names {
            let one = select(&format!("fields={field}")).await;
            assert_eq!(one, json!({"id": id, field: whole[field]}));
        }
        for all in [names.join(","), names.join("%2C")] {
            assert_eq!(select(&format!("fields={all}")).await, whole);
        }
    }
    // Names may repeat and come in any order.
    let some = select("fields=stock,title,stock,price,title").await;
    let price = offer_body(1, json!({}))["price"].take();
    let expected = json!({"id": id, "title": "Kettle 1", "price": price, "stock": 8});
    assert_eq!(some, expected);
    assert_eq!(select("").await["updated_at"], "2040-01-01T12:00:01.000200Z");
}

#[tokio::test]
async fn unknown_field_names_are_refused() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let id = world.offer(&seller, 1, json!({})).await;
    let bad = " |,|title,|,title|title,,stock|nothing|title,nothing|price.amount|Title|price_source|title%20|%20title|\
        title;stock|*|items|next|title&fields=stock";
    for fields in bad.split('|').map(str::trim) {
        for path in ["/v1/offers", &format!("/v1/offers/{id}")] {
            let path = format!("{path}?fields={fields}");
            world.invalid(&token, &path, "fields").await;
        }
    }
    world.invalid(&token, "/v1/offers?fields", "fields").await;
    let spaced = world.get(&token, "/v1/offers?fields=title,%20stock").await;
    let message = text(&spaced.expect(400).json()["errors"][0], "message");
    assert!(message.starts_with("Unknown field ` stock`. Send "), "{message}");
}

#[tokio::test]
async fn the_limits_of_each_range_are_stored_exactly() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let longest = json!({
        "title": "ż".repeat(500),
        "handle": "h".repeat(200),
        "price": {"amount": 9_007_199_254_740_991_i64, "currency": "PLN"},
        "stock": 2_147_483_647,
        "url": format!("https://shop.example/{}", "u".repeat(2048 - 21)),
    });
    let zero = json!({"price": {"amount": 0, "currency": "PLN"}, "stock": 0});
    let texts = json!({
        "title": "\"quoted\" \\ back/slash \u{1}\u{1f} \u{2028} \u{7f} 🫖 </script> \t\n",
        "brand": "",
        "url": "https://shop.example/p/%C5%BC%C3%B3%C5%82w?x=1&y=%20#part",
    });
    for (n, changes) in (1..).zip([longest, zero, texts]) {
        let id = world.offer(&seller, n, changes.clone()).await;
        let answer = world.get(&token, &format!("/v1/offers/{id}")).await.expect(200);
        let listed = world.read(&token, "/v1/offers?limit=1").await;
        assert_eq!(answer.json(), listed["items"][0]);
        assert_eq!(merged(answer.json(), changes), answer.json());
        if n == 1 {
            let text = String::from_utf8(answer.bytes).unwrap();
            assert!(text.contains("\"amount\":9007199254740991"), "{text}");
        }
    }
}

#[tokio::test]
async fn another_sellers_offer_is_404_like_an_unknown_one() {
    let world = world().await;
    let ((owner, token), (_, stranger)) = (world.reader().await, world.reader().await);
    let id = world.offer(&owner, 1, json!({})).await;
    world.read(&token, &format!("/v1/offers/{id}")).await;
    let mut bodies = Vec::new();
    for id in [&id, &offer_id(2)] {
        let request = world.at("GET", &format!("/v1/offers/{id}")).bearer(&stranger);
        let answer = request.header("x-request-id", "same-for-both").send().await;
        answer.refused(404, "not_found");
        bodies.push(answer.json());
    }
    assert_eq!(bodies[0], bodies[1]);
    let list = world.read(&stranger, "/v1/offers").await;
    assert_eq!(list, json!({"items": [], "next": null}));
}
