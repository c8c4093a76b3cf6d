//! Feeding one offer: created, replaced, unchanged, rejected.

use blackbox::{Expect, at_once, count_of, merged, offer_body, offer_id, offer_line, text};
use chrono::TimeDelta;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{instant, world};

#[tokio::test]
async fn the_first_feed_creates_and_the_next_replaces_everything() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let read = async || world.read(&token, &format!("/v1/offers/{}", offer_id(1))).await;
    world
        .put(&seller, &offer_id(1), &offer_body(1, json!({})))
        .await
        .expect(201);
    // The answer contains the origin of the price, which sellers do not see.
    let fed = world.fed_offer(&seller, &offer_id(1)).await;
    assert_eq!(read().await.get("price_source"), None);
    assert_eq!(fed, merged(read().await, json!({"price_source": "automatic"})));
    let least = json!({"title": "New", "handle": "new", "status": "draft", "url": "http://shop.example/new"});
    world.put(&seller, &offer_id(1), &least).await.expect(200);
    let none = json!({"price": null, "stock": null, "ean": null, "brand": null, "signature": null, "thumbnail": null});
    let now = read().await;
    assert_eq!(merged(now.clone(), merged(least, none)), now);
}

#[tokio::test]
async fn updated_at_moves_with_any_returned_field_and_with_nothing_else() {
    let world = world().await;
    let clock = world.stop_clock("2040-01-01T12:00:00Z").await;
    let (seller, token) = world.reader().await;
    let path = format!("/v1/offers/{}", world.offer(&seller, 1, json!({})).await);
    let mut changes = json!({});
    let mut updated_at = "2040-01-01T12:00:00.000000Z".to_owned();
    for change in [
        json!({"title": "Other"}),
        json!({"handle": "other"}),
        json!({"status": "draft"}),
        json!({"price": {"amount": 1, "currency": "PLN"}}),
        json!({"price": null}),
        json!({"stock": 8}),
        json!({"stock": null}),
        json!({"ean": null}),
        json!({"brand": "Other"}),
        json!({"signature": null}),
        json!({"thumbnail": null}),
        json!({"url": "https://shop.example/other"}),
    ] {
        clock.advance(TimeDelta::seconds(1)).await;
        world.offer(&seller, 1, changes.clone()).await;
        let same = world.read(&token, &path).await;
        assert_eq!(same["updated_at"], updated_at, "fed again without {change}");
        clock.advance(TimeDelta::seconds(1)).await;
        changes = merged(changes, change.clone());
        world.offer(&seller, 1, changes.clone()).await;
        let moved = world.read(&token, &path).await;
        assert_ne!(moved["updated_at"], updated_at, "fed with {change}");
        assert_eq!(moved["created_at"], "2040-01-01T12:00:00.000000Z");
        updated_at = text(&moved, "updated_at");
    }
    assert_eq!(updated_at, "2040-01-01T12:00:24.000000Z");
    // It increases even if a later writer's clock is behind.
    clock.freeze(instant("2040-01-01T11:59:59Z")).await;
    world.offer(&seller, 1, json!({"stock": 1})).await;
    let line = offer_line(1, json!({"stock": 2}));
    world.import(&seller, line).await.expect(200);
    let read = world.read(&token, &path).await;
    let expected = (&json!(2), &json!("2040-01-01T12:00:24.000002Z"));
    assert_eq!((&read["stock"], &read["updated_at"]), expected);
}

#[tokio::test]
async fn every_field_has_its_rule() {
    let world = world().await;
    let seller = world.seller().await;
    let money = |currency: Value| json!({"price": {"amount": 1, "currency": currency}});
    let nulls = json!({"title": null, "handle": null, "status": null, "url": null});
    let long = json!({"title": "x".repeat(501), "handle": "a b", "url": "shop.example"});
    let vat = json!({"price": {"amount": -1, "currency": "PLN", "vat": 23}});
    let types = json!({"ean": 5_901_234_123_457_i64, "brand": true, "signature": [], "thumbnail": {}});
    let many = json!({"aaa": 1, "url": 1, "stock": "1", "price": {"amount": "1", "currency": 1}, "title": 1});
    for (changes, paths) in [
        (nulls, "title handle status url"),
        (
            json!({"title": "", "handle": "", "status": "", "url": ""}),
            "title handle status url",
        ),
        (long, "title handle url"),
        (json!({"status": "sold"}), "status"),
        (json!({"status": "Published"}), "status"),
        (money(json!("EUR")), "price.currency"),
        (money(json!("pln")), "price.currency"),
        (money(json!("")), "price.currency"),
        (money(json!(null)), "price.currency"),
        (json!({"price": {"amount": 1}}), "price.currency"),
        (json!({"price": {"currency": "PLN"}}), "price.amount"),
        (json!({"price": {}}), "price.amount price.currency"),
        (vat, "price.amount price.vat"),
        (json!({"price": 100}), "price"),
        (json!({"price": [1]}), "price"),
        (json!({"stock": -1}), "stock"),
        (types, "ean brand signature thumbnail"),
        (json!({"thumbnail": "picture.png"}), "thumbnail"),
        (json!({"id": offer_id(1)}), "id"),
        (json!({"price_source": "manual"}), "price_source"),
        (json!({"created_at": "2040-01-01T12:00:00Z"}), "created_at"),
        (many, "title price.amount price.currency stock url aaa"),
    ] {
        let body = offer_body(1, changes.clone());
        let answer = world.put(&seller, &offer_id(1), &body).await;
        assert_eq!(answer.status, 400, "{changes}");
        answer.invalid(&paths.split(' ').collect::<Vec<_>>());
    }
    let nothing = world.put(&seller, &offer_id(1), &json!({})).await;
    nothing.invalid(&["title", "handle", "status", "url"]);
    let path = format!("/sellers/{}/offers/{}", seller.id, offer_id(1));
    world.office_get(&path).await.refused(404, "not_found");
    // Of many concurrent feeds, one creates the offer, and the result is one complete offer.
    let feed = |n| {
        world
            .office(Method::PUT, &path)
            .json(&offer_body(n, json!({"stock": n})))
    };
    let answers = at_once((1..=20).map(feed)).await;
    assert_eq!((count_of(&answers, 201), count_of(&answers, 200)), (1, 19));
    let read = world.fed_offer(&seller, &offer_id(1)).await;
    assert_eq!(text(&read, "title"), format!("Kettle {}", read["stock"]));
}
