//! `fields`: a selection of an offer's fields, in lists and alone.

use blackbox::{Expect, World};
use serde_json::{Value, json};

use crate::world;

const ALL: [&str; 13] = [
    "id",
    "title",
    "handle",
    "status",
    "price",
    "stock",
    "ean",
    "brand",
    "signature",
    "thumbnail",
    "url",
    "created_at",
    "updated_at",
];

/// One offer of which half the fields are null, with its token.
async fn prepared() -> (World, String, String) {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let id = world
        .offer(&seller, 1, json!({"price": null, "ean": null, "thumbnail": null}))
        .await;
    (world, token, id)
}

/// The offer with a selection, which has to be the same alone and in a list.
async fn select(world: &World, token: &str, id: &str, fields: &str) -> Value {
    let alone = world
        .get(token, &format!("/v1/offers/{id}?fields={fields}"))
        .await
        .expect(200)
        .json();
    let list = world
        .get(token, &format!("/v1/offers?fields={fields}"))
        .await
        .expect(200)
        .json();
    assert_eq!(list, json!({"items": [alone], "next": null}), "{fields}");
    alone
}

#[tokio::test]
async fn each_field_alone_comes_with_the_id() {
    let (world, token, id) = prepared().await;
    let whole = world
        .get(&token, &format!("/v1/offers/{id}"))
        .await
        .expect(200)
        .json();
    for field in ALL {
        let expected = json!({"id": id, field: whole[field]});
        assert_eq!(select(&world, &token, &id, field).await, expected);
    }
    assert_eq!(select(&world, &token, &id, &ALL.join(",")).await, whole);
    assert_eq!(select(&world, &token, &id, &ALL.join("%2C")).await, whole);
}

#[tokio::test]
async fn names_may_repeat_and_come_in_any_order() {
    let (world, token, id) = prepared().await;
    let some = select(&world, &token, &id, "stock,title,stock,price,title").await;
    assert_eq!(
        some,
        json!({"id": id, "title": "Kettle 1", "price": null, "stock": 7})
    );
}

#[tokio::test]
async fn a_name_that_is_none_is_refused() {
    let (world, token, id) = prepared().await;
    let bad = [
        "",
        ",",
        "title,",
        ",title",
        "title,,stock",
        "nothing",
        "title,nothing",
        "price.amount",
        "Title",
    ];
    for fields in bad.into_iter().chain([
        "price_source",
        "title%20",
        "%20title",
        "title;stock",
        "*",
        "items",
        "next",
    ]) {
        world
            .get(&token, &format!("/v1/offers?fields={fields}"))
            .await
            .invalid(&["fields"]);
        world
            .get(&token, &format!("/v1/offers/{id}?fields={fields}"))
            .await
            .invalid(&["fields"]);
    }
    world
        .get(&token, "/v1/offers?fields=title&fields=stock")
        .await
        .invalid(&["fields"]);
    world.get(&token, "/v1/offers?fields").await.invalid(&["fields"]);
}
