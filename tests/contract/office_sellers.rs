//! Sellers: registering, reading back, closing.

use blackbox::Expect;
use reqwest::Method;
use serde_json::{Value, json};

use crate::world;

#[tokio::test]
async fn a_seller_gets_an_id_and_the_next_number_and_is_read_back() {
    let world = world().await;
    let first = world.seller().await;
    let body =
        json!({"name": "Żółw & Syn", "email": "Second@Shop.Example", "password": "correct horse battery"});
    let made = world.office_post("/sellers", &body).await.expect(201);
    let json = made.json();
    assert_eq!(json.as_object().unwrap().len(), 2, "{json}");
    assert_eq!(json["seller_no"], first.seller_no + 1);
    let read = world
        .office_get(&format!("/sellers/{}", json["id"].as_str().unwrap()))
        .await
        .expect(200)
        .json();
    for (field, value) in [
        ("id", &json["id"]),
        ("seller_no", &json["seller_no"]),
        ("name", &body["name"]),
        ("email", &body["email"]),
    ] {
        assert_eq!(&read[field], value, "{read}");
    }
    assert!(
        !read.to_string().contains("password") && !read.to_string().contains("argon2"),
        "{read}"
    );
}

#[tokio::test]
async fn every_field_has_its_rule() {
    let world = world().await;
    for (body, paths) in [
        (json!({}), vec!["name", "email"]),
        (json!({"name": "", "email": ""}), vec!["name", "email"]),
        (json!({"name": "  ", "email": "nobody"}), vec!["name", "email"]),
        (json!({"name": null, "email": null}), vec!["name", "email"]),
        (
            json!({"name": 1, "email": ["a@b.example"]}),
            vec!["name", "email"],
        ),
        (
            json!({"name": "x".repeat(201), "email": "a@b@c"}),
            vec!["name", "email"],
        ),
        (json!({"name": "K", "email": "a b@shop.example"}), vec!["email"]),
        (
            json!({"name": "K", "email": "k@shop.example", "password": 5}),
            vec!["password"],
        ),
        (
            json!({"name": "K", "email": "k@shop.example", "password": "nine char"}),
            vec!["password"],
        ),
        (
            json!({"name": "K", "email": "kettles.and.co@shop.example", "password": "Kettles.And.Co"}),
            vec!["password"],
        ),
        (
            json!({"name": "K", "email": "k@shop.example", "seller_no": 5}),
            vec!["seller_no"],
        ),
    ] {
        world.office_post("/sellers", &body).await.invalid(&paths);
    }
    assert_eq!(
        world.office_get("/sellers").await.expect(200).json()["items"],
        json!([])
    );
}

#[tokio::test]
async fn an_email_belongs_to_one_seller_without_regard_to_case() {
    let world = world().await;
    let seller = world.seller().await;
    for email in [seller.email.clone(), seller.email.to_uppercase()] {
        let answer = world
            .office_post("/sellers", &json!({"name": "K", "email": email}))
            .await;
        answer.is_problem(409, &[blackbox::entry("conflict", "email")]);
    }
}

#[tokio::test]
async fn sellers_are_listed_in_pages() {
    let world = world().await;
    let mut made = Vec::new();
    for _ in 0..7 {
        made.push(world.seller().await.id);
    }
    let mut listed = Vec::new();
    let mut path = "/sellers?limit=3".to_owned();
    loop {
        let page = world.office_get(&path).await.expect(200).json();
        let items = page["items"].as_array().unwrap();
        assert!(!items.is_empty() && items.len() <= 3);
        listed.extend(
            items
                .iter()
                .map(|seller| seller["id"].as_str().unwrap().to_owned()),
        );
        let Value::String(next) = &page["next"] else { break };
        path = format!("/sellers?limit=3&after={next}");
    }
    made.sort();
    listed.sort();
    assert_eq!(listed, made);
    world.office_get("/sellers?limit=x").await.invalid(&["limit"]);
    world.office_get("/sellers?after=x").await.invalid(&["after"]);
    world.office_get("/sellers?x=1").await.invalid(&["x"]);
    assert_eq!(
        world.office_get("/sellers?limit=0").await.expect(200).json()["items"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn closing_is_harmless_to_repeat_and_opens_nothing_new() {
    let world = world().await;
    let (seller, other) = (world.seller().await, world.seller().await);
    let path = format!("/sellers/{}", seller.id);
    for _ in 0..2 {
        world
            .office(Method::POST, &format!("{path}/closure"))
            .send()
            .await
            .expect(200);
    }
    let read = world.office_get(&path).await.expect(200).json();
    assert!(read["closed_at"].is_string(), "{read}");
    let open = world
        .office_get(&format!("/sellers/{}", other.id))
        .await
        .expect(200)
        .json();
    assert!(open["closed_at"].is_null(), "{open}");
    let registered = world
        .office_post(&format!("{path}/applications"), &world.registration(json!({})))
        .await;
    registered.refused(409, "conflict");
    let token = json!({"name": "x", "scopes": ["offers:read"]});
    world
        .office_post(&format!("{path}/personal-tokens"), &token)
        .await
        .refused(409, "conflict");
}

#[tokio::test]
async fn of_many_who_ask_for_one_email_at_once_one_gets_it() {
    let world = world().await;
    let asking = (0..10).map(|_| {
        let body = json!({"name": "K", "email": "wanted@shop.example"});
        tokio::spawn(world.office(Method::POST, "/sellers").json(&body).send())
    });
    let mut made = 0;
    for asked in asking.collect::<Vec<_>>() {
        let answer = asked.await.unwrap();
        assert!(matches!(answer.status, 201 | 409), "{answer:?}");
        made += usize::from(answer.status == 201);
    }
    assert_eq!(made, 1);
}
