//! Sellers: registering, reading back, closing.

use blackbox::{Expect, at_once, count_of, entry, ids, items, text};
use reqwest::Method;
use serde_json::{Value, json};

use crate::world;

#[tokio::test]
async fn a_seller_gets_an_id_and_the_next_number_and_is_read_back() {
    let world = world().await;
    let first = world.seller().await;
    let body =
        json!({"name": "Żółw & Syn", "email": "Second@Shop.Example", "password": "correct horse battery"});
    let made = world.office_made("/sellers", &body).await;
    assert_eq!(made.as_object().unwrap().len(), 2, "{made}");
    assert_eq!(made["seller_no"], first.seller_no + 1);
    let read = world
        .office_read(&format!("/sellers/{}", text(&made, "id")))
        .await;
    for (field, of) in [
        ("id", &made),
        ("seller_no", &made),
        ("name", &body),
        ("email", &body),
    ] {
        assert_eq!(read[field], of[field], "{read}");
    }
    let told = read.to_string();
    assert!(!told.contains("password") && !told.contains("argon2"), "{told}");
    // An address belongs to one seller, ignoring case, also with concurrent registrations.
    for email in [first.email.clone(), first.email.to_uppercase()] {
        let answer = world
            .office_post("/sellers", &json!({"name": "K", "email": email}))
            .await;
        answer.is_problem(409, &[entry("conflict", "email")]);
    }
    let body = json!({"name": "K", "email": "wanted@shop.example"});
    let asking = (0..10).map(|_| world.office(Method::POST, "/sellers").json(&body));
    let answers = at_once(asking).await;
    assert_eq!((count_of(&answers, 201), count_of(&answers, 409)), (1, 9));
}

#[tokio::test]
async fn every_field_has_its_rule() {
    let world = world().await;
    let k = |field: &str, value: Value| json!({"name": "K", "email": "k@shop.example", field: value});
    for (body, paths) in [
        (json!({}), "name email"),
        (json!({"name": "", "email": ""}), "name email"),
        (json!({"name": "  ", "email": "nobody"}), "name email"),
        (json!({"name": null, "email": null}), "name email"),
        (json!({"name": 1, "email": ["a@b.example"]}), "name email"),
        (json!({"name": "x".repeat(201), "email": "a@b@c"}), "name email"),
        (json!({"name": "K", "email": "a b@shop.example"}), "email"),
        (k("password", json!(5)), "password"),
        (k("password", json!("nine char")), "password"),
        (
            json!({"name": "K", "email": "kettles.and.co@shop.example", "password": "Kettles.And.Co"}),
            "password",
        ),
        (k("seller_no", json!(5)), "seller_no"),
    ] {
        let answer = world.office_post("/sellers", &body).await;
        answer.invalid(&paths.split(' ').collect::<Vec<_>>());
    }
    assert_eq!(world.office_read("/sellers").await["items"], json!([]));
}

#[tokio::test]
async fn sellers_are_listed_in_pages() {
    let world = world().await;
    let (mut made, mut listed) = (Vec::new(), Vec::new());
    for _ in 0..7 {
        made.push(world.seller().await.id);
    }
    let mut path = "/sellers?limit=3".to_owned();
    loop {
        let page = world.office_read(&path).await;
        assert!((1..=3).contains(&items(&page).len()));
        listed.extend(ids(&page));
        let Value::String(next) = &page["next"] else { break };
        path = format!("/sellers?limit=3&after={next}");
    }
    made.sort();
    listed.sort();
    assert_eq!(listed, made);
    for (query, path) in [("limit=x", "limit"), ("after=x", "after"), ("x=1", "x")] {
        world
            .office_get(&format!("/sellers?{query}"))
            .await
            .invalid(&[path]);
    }
    assert_eq!(ids(&world.office_read("/sellers?limit=0").await).len(), 1);
}

#[tokio::test]
async fn closing_is_harmless_to_repeat_and_opens_nothing_new() {
    let world = world().await;
    let (seller, other) = (world.seller().await, world.seller().await);
    let path = format!("/sellers/{}", seller.id);
    for _ in 0..2 {
        world.close(&seller.id).await;
    }
    assert!(world.office_read(&path).await["closed_at"].is_string());
    let open = world.office_read(&format!("/sellers/{}", other.id)).await;
    assert!(open["closed_at"].is_null(), "{open}");
    let token = json!({"name": "x", "scopes": ["offers:read"]});
    for (call, body) in [
        ("applications", world.registration(json!({}))),
        ("personal-tokens", token),
    ] {
        let answer = world.office_post(&format!("{path}/{call}"), &body).await;
        answer.refused(409, "conflict");
    }
}
