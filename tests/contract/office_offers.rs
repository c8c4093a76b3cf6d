//! Feeding one offer: created, replaced, unchanged, rejected.

use blackbox::{
    Expect, all_invalid_changes, assert_members, at_once, count_of, merged, offer_body, offer_id, offer_line,
    text,
};
use chrono::TimeDelta;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{instant, world};

#[tokio::test]
async fn the_first_feed_creates_an_offer_and_the_next_replaces_every_field() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let id = offer_id(1);
    let read = async || world.read(&token, &format!("/v1/offers/{id}")).await;
    let body = offer_body(1, json!({}));
    world.put(&seller, &id, &body).await.expect(201);
    // The answer contains the origin of the price, which sellers do not see.
    let fed = world.fed_offer(&seller, &id).await;
    assert_eq!(read().await.get("price_source"), None);
    let first = read().await;
    assert_eq!(fed, merged(first.clone(), json!({"price_source": "automatic"})));
    // Fields that are missing or null are null.
    let least = json!({"title": "New", "handle": "new", "status": "draft", "url": "http://shop.example/new"});
    let none = json!({"price": null, "stock": null, "ean": null, "brand": null, "signature": null, "thumbnail": null});
    let nulls = merged(least.clone(), none);
    for body in [&least, &nulls] {
        world.put(&seller, &id, body).await.expect(200);
        let members = |offer: &Value| offer.as_object().unwrap().len();
        assert_members(&read().await, nulls.clone());
        assert_eq!(members(&read().await), members(&first));
    }
}

#[tokio::test]
async fn feeding_moves_updated_at_if_and_only_if_a_returned_field_changes() {
    let world = world().await;
    let clock = world.stop_clock("2040-01-01T12:00:00Z").await;
    let (seller, token) = world.reader().await;
    let path = format!("/v1/offers/{}", world.offer(&seller, 1, json!({})).await);
    let mut changes = json!({});
    let mut updated_at = "2040-01-01T12:00:00.000000Z".to_owned();
    let mut now = instant(&updated_at);
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
        assert_eq!(moved["created_at"], "2040-01-01T12:00:00.000000Z");
        updated_at = text(&moved, "updated_at");
        now += TimeDelta::seconds(2);
        assert_eq!(instant(&updated_at), now, "fed with {change}");
    }
    // It increases even if a later writer's clock is behind.
    clock.freeze(instant("2040-01-01T11:59:59Z")).await;
    world.offer(&seller, 1, json!({"stock": 1})).await;
    let line = offer_line(1, json!({"stock": 2}));
    world.import(&seller, line).await.expect(200);
    let read = world.read(&token, &path).await;
    let later = now + TimeDelta::microseconds(2);
    assert_eq!(
        (&read["stock"], instant(&text(&read, "updated_at"))),
        (&json!(2), later)
    );
}

#[tokio::test]
async fn every_field_is_validated() {
    let world = world().await;
    let seller = world.seller().await;
    let table = r#"
        {"title": null, "handle": null, "status": null, "url": null}  => title handle status url
        {"title": "LONG", "handle": "a b", "url": "shop.example"}     => title handle url
        {"status": "sold"}                               => status
        {"price": {}}                                    => price.amount price.currency
        {"price": 100}                                   => price
        {"ean": 5901234123457, "brand": true, "signature": [], "thumbnail": {}}  => ean brand signature thumbnail
        {"thumbnail": "picture.png"}                     => thumbnail
        {"id": "01900000-0000-7000-8000-000000000001"}   => id
        {"price_source": "manual"}                       => price_source
        {"external_id": "K-1"}                           => external_id
        {"aaa": 1, "url": 1, "stock": "1", "price": {"amount": "1", "currency": 1}, "title": 1} => title price.amount price.currency stock url aaa"#;
    let put = async |body: &Value| world.put(&seller, &offer_id(1), body).await;
    let table = table.replace("LONG", &"x".repeat(501));
    all_invalid_changes(&table, &offer_body(1, json!({})), put).await;
    put(&json!({})).await.invalid("title handle status url");
    let path = format!("/sellers/{}/offers/{}", seller.id, offer_id(1));
    world.office_get(&path).await.refused(404, "not_found");
    // Of many concurrent feeds, one creates the offer, and the result is one complete offer.
    let feed = |n| {
        let body = offer_body(n, json!({"stock": n}));
        world.office(Method::PUT, &path).json(&body)
    };
    let answers = at_once((1..=20).map(feed)).await;
    assert_eq!((count_of(&answers, 201), count_of(&answers, 200)), (1, 19));
    let read = world.fed_offer(&seller, &offer_id(1)).await;
    assert_eq!(text(&read, "title"), format!("Kettle {}", read["stock"]));
}
