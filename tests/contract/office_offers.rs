//! Feeding one offer: what is created, replaced, left alone, refused.

use blackbox::{Expect, merged, offer_body, offer_id};
use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::{instant, world};

#[tokio::test]
async fn the_first_feed_creates_and_the_next_replaces_everything() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    world
        .put(&seller, &offer_id(1), &offer_body(1, json!({})))
        .await
        .expect(201);
    let least = json!({"title": "New", "handle": "new", "status": "draft", "url": "http://shop.example/new"});
    world.put(&seller, &offer_id(1), &least).await.expect(200);
    let read = world
        .get(&token, &format!("/v1/offers/{}", offer_id(1)))
        .await
        .expect(200)
        .json();
    let none = json!({"price": null, "stock": null, "ean": null, "brand": null, "signature": null, "thumbnail": null});
    for (field, value) in merged(least, none).as_object().unwrap() {
        assert_eq!(read.get(field), Some(value), "{read}");
    }
}

#[tokio::test]
async fn an_offer_is_read_back_with_the_origin_of_its_price() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let id = world.offer(&seller, 1, json!({})).await;
    let path = format!("/sellers/{}/offers/{id}", seller.id);
    let mut office = world.office_get(&path).await.expect(200).json();
    assert_eq!(office["price_source"], "automatic");
    let public = world
        .get(&token, &format!("/v1/offers/{id}"))
        .await
        .expect(200)
        .json();
    assert_eq!(public.get("price_source"), None);
    office.as_object_mut().unwrap().remove("price_source");
    for (field, value) in public.as_object().unwrap() {
        assert_eq!(office.get(field), Some(value), "{office}");
    }
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
        let same = world.get(&token, &path).await.expect(200).json();
        assert_eq!(same["updated_at"], updated_at, "fed again without {change}");
        clock.advance(TimeDelta::seconds(1)).await;
        changes = merged(changes, change.clone());
        world.offer(&seller, 1, changes.clone()).await;
        let moved = world.get(&token, &path).await.expect(200).json();
        assert_ne!(moved["updated_at"], updated_at, "fed with {change}");
        assert_eq!(moved["created_at"], "2040-01-01T12:00:00.000000Z");
        moved["updated_at"].as_str().unwrap().clone_into(&mut updated_at);
    }
    assert_eq!(updated_at, "2040-01-01T12:00:24.000000Z");
}

#[tokio::test]
async fn every_field_has_its_rule() {
    let world = world().await;
    let seller = world.seller().await;
    let money = |currency: Value| json!({"price": {"amount": 1, "currency": currency}});
    let wrong: Vec<(Value, Vec<&str>)> = vec![
        (
            json!({"title": null, "handle": null, "status": null, "url": null}),
            vec!["title", "handle", "status", "url"],
        ),
        (
            json!({"title": "", "handle": "", "status": "", "url": ""}),
            vec!["title", "handle", "status", "url"],
        ),
        (
            json!({"title": "x".repeat(501), "handle": "a b", "url": "shop.example"}),
            vec!["title", "handle", "url"],
        ),
        (json!({"status": "sold"}), vec!["status"]),
        (json!({"status": "Published"}), vec!["status"]),
        (money(json!("EUR")), vec!["price.currency"]),
        (money(json!("pln")), vec!["price.currency"]),
        (money(json!("")), vec!["price.currency"]),
        (money(json!(null)), vec!["price.currency"]),
        (json!({"price": {"amount": 1}}), vec!["price.currency"]),
        (json!({"price": {"currency": "PLN"}}), vec!["price.amount"]),
        (json!({"price": {}}), vec!["price.amount", "price.currency"]),
        (
            json!({"price": {"amount": -1, "currency": "PLN", "vat": 23}}),
            vec!["price.amount", "price.vat"],
        ),
        (json!({"price": 100}), vec!["price"]),
        (json!({"price": [1]}), vec!["price"]),
        (json!({"stock": -1}), vec!["stock"]),
        (
            json!({"ean": 5_901_234_123_457_i64, "brand": true, "signature": [], "thumbnail": {}}),
            vec!["ean", "brand", "signature", "thumbnail"],
        ),
        (json!({"thumbnail": "picture.png"}), vec!["thumbnail"]),
        (json!({"id": offer_id(1)}), vec!["id"]),
        (json!({"price_source": "manual"}), vec!["price_source"]),
        (json!({"created_at": "2040-01-01T12:00:00Z"}), vec!["created_at"]),
        (
            json!({"aaa": 1, "url": 1, "stock": "1", "price": {"amount": "1", "currency": 1}, "title": 1}),
            vec!["title", "price.amount", "price.currency", "stock", "url", "aaa"],
        ),
    ];
    for (changes, paths) in wrong {
        let answer = world
            .put(&seller, &offer_id(1), &offer_body(1, changes.clone()))
            .await;
        assert_eq!(answer.status, 400, "{changes}");
        answer.invalid(&paths);
    }
    let nothing = world.put(&seller, &offer_id(1), &json!({})).await;
    nothing.invalid(&["title", "handle", "status", "url"]);
    world
        .office_get(&format!("/sellers/{}/offers/{}", seller.id, offer_id(1)))
        .await
        .refused(404, "not_found");
}

#[tokio::test]
async fn many_feeds_of_one_offer_at_once_leave_one_whole_offer() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let feeds = (1..=20).map(|n| {
        let path = format!("/sellers/{}/offers/{}", seller.id, offer_id(1));
        tokio::spawn(
            world
                .office(reqwest::Method::PUT, &path)
                .json(&offer_body(n, json!({"stock": n})))
                .send(),
        )
    });
    let mut created = 0;
    for feed in feeds.collect::<Vec<_>>() {
        let answer = feed.await.unwrap();
        assert!(matches!(answer.status, 200 | 201), "{answer:?}");
        created += usize::from(answer.status == 201);
    }
    assert_eq!(created, 1);
    let read = world
        .get(&token, &format!("/v1/offers/{}", offer_id(1)))
        .await
        .expect(200)
        .json();
    let n = usize::try_from(read["stock"].as_u64().unwrap()).unwrap();
    assert_eq!(read["title"], offer_body(n, json!({}))["title"]);
}

#[tokio::test]
async fn updated_at_moves_on_though_the_clock_of_a_later_writer_is_behind() {
    let world = world().await;
    let clock = world.database.control_clock().await;
    let (seller, token) = world.reader().await;
    clock.freeze(instant("2040-01-01T12:00:00Z")).await;
    let path = format!("/v1/offers/{}", world.offer(&seller, 1, json!({})).await);
    clock.freeze(instant("2040-01-01T11:59:59Z")).await;
    world.offer(&seller, 1, json!({"stock": 1})).await;
    world
        .import(&seller, blackbox::offer_line(1, json!({"stock": 2})))
        .await
        .expect(200);
    let read = world.get(&token, &path).await.expect(200).json();
    assert_eq!(
        (&read["stock"], &read["updated_at"]),
        (&json!(2), &json!("2040-01-01T12:00:00.000002Z"))
    );
}
