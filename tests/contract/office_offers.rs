//! Feeding one offer: created, replaced, rejected.

use blackbox::{
    Expect, all_invalid_changes, assert_members, at_once, count_of, line, merged, offer_body, offer_id, text,
    whole,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::world;

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
async fn a_feed_replaces_only_the_state_that_it_names() {
    let world = world().await;
    let seller = world.seller().await;
    let id = offer_id(1);
    let path = format!("/sellers/{}/offers/{}", seller.id, offer_id(1));
    let put = async |tag: &str, stock: i64| {
        let request = world.office(Method::PUT, &path).header("if-match", tag);
        request.json(&offer_body(1, json!({"stock": stock}))).send().await
    };
    let other_state = || [whole("precondition_failed")];
    put("*", 1).await.is_problem(412, &other_state());
    world.office_get(&path).await.refused(404, "not_found");
    world
        .put(&seller, &id, &offer_body(1, json!({"stock": 10})))
        .await
        .expect(201);
    let tag = text(&world.fed_offer(&seller, &id).await, "etag");
    world.unpaid(&[line(&seller, &id, 8)], json!({})).await;
    put(&tag, 10).await.is_problem(412, &other_state());
    let fed = world.fed_offer(&seller, &id).await;
    assert_eq!(fed["stock"], 2);
    let fed = put(&text(&fed, "etag"), 12).await.expect(200).json();
    put("*", 13).await.expect(200);
    put(&text(&fed, "etag"), 14)
        .await
        .refused(412, "precondition_failed");
    put("13", 15).await.invalid("If-Match");
    assert_eq!(world.fed_offer(&seller, &id).await["stock"], 13);
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
