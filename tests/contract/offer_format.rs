//! An offer as it is written: every field, nulls, numbers, texts, timestamps.

use blackbox::{merged, offer_body, offer_id};
use serde_json::{Value, json};

use crate::{instant, world};

#[tokio::test]
async fn every_field_comes_back_as_it_was_fed() {
    let world = world().await;
    let clock = world.database.control_clock().await;
    let (seller, token) = world.reader().await;
    clock.freeze(instant("2040-01-01T12:00:00Z")).await;
    let id = world.offer(&seller, 1, json!({})).await;
    clock.freeze(instant("2040-01-01T12:00:01.000200Z")).await;
    world.offer(&seller, 1, json!({"stock": 8})).await;
    let written = json!({
        "id": id,
        "created_at": "2040-01-01T12:00:00.000000Z",
        "updated_at": "2040-01-01T12:00:01.000200Z",
    });
    let expected = merged(offer_body(1, json!({"stock": 8})), written);
    assert_eq!(
        world
            .get(&token, &format!("/v1/offers/{id}"))
            .await
            .expect(200)
            .json(),
        expected
    );
    assert_eq!(
        world.get(&token, "/v1/offers").await.expect(200).json(),
        json!({"items": [expected], "next": null})
    );
}

#[tokio::test]
async fn what_an_offer_does_not_have_is_null() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let none = json!({"price": null, "stock": null, "ean": null, "brand": null, "signature": null, "thumbnail": null});
    world.offer(&seller, 1, none.clone()).await;
    let required = json!({"title": "t", "handle": "h", "status": "draft", "url": "https://shop.example/h"});
    world.put(&seller, &offer_id(2), &required).await.expect(201);
    for n in [1, 2] {
        let offer = world
            .get(&token, &format!("/v1/offers/{}", offer_id(n)))
            .await
            .expect(200)
            .json();
        for (field, value) in none.as_object().unwrap() {
            assert_eq!(offer.get(field), Some(value), "{offer}");
        }
        assert_eq!(offer.as_object().unwrap().len(), 13, "{offer}");
    }
}

#[tokio::test]
async fn the_ends_of_every_range_are_kept_exactly() {
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
        let listed = world.get(&token, "/v1/offers?limit=1").await.expect(200).json();
        assert_eq!(answer.json(), listed["items"][0]);
        for (field, value) in changes.as_object().unwrap() {
            assert_eq!(answer.json().get(field), Some(value));
        }
        if n == 1 {
            let text = String::from_utf8(answer.bytes).unwrap();
            assert!(text.contains("\"amount\":9007199254740991"), "{text}");
        }
    }
}

#[tokio::test]
async fn every_status_is_listed_and_read() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let statuses = ["published", "draft", "proposed", "rejected"];
    for (n, status) in (1..).zip(statuses) {
        let id = world.offer(&seller, n, json!({"status": status})).await;
        assert_eq!(
            world
                .get(&token, &format!("/v1/offers/{id}"))
                .await
                .expect(200)
                .json()["status"],
            status
        );
        let listed = world
            .get(&token, &format!("/v1/offers?status={status}"))
            .await
            .expect(200)
            .json();
        let ids: Vec<&Value> = listed["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|offer| &offer["id"])
            .collect();
        assert_eq!(ids, [&json!(id)]);
    }
    assert_eq!(
        world.get(&token, "/v1/offers").await.json()["items"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
}
