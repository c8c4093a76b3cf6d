//! Sellers: registering, reading back, closing.

use blackbox::{
    Expect, all_invalid, assert_members, at_once, count_of, entry, ids, merged, pages, text, whole,
};
use reqwest::Method;
use serde_json::json;

use crate::world;

#[tokio::test]
async fn a_registered_seller_gets_an_id_and_the_next_number_and_can_be_read() {
    let world = world().await;
    let first = world.seller().await;
    let body =
        json!({"name": "Żółw & Syn", "email": "Second@Shop.Example", "password": "correct horse battery"});
    let made = world.office_made("/sellers", &body).await;
    assert_eq!(made.as_object().unwrap().len(), 2, "{made}");
    assert_eq!(made["seller_no"], first.seller_no + 1);
    let path = format!("/sellers/{}", text(&made, "id"));
    let read = world.office_read(&path).await;
    let expected = merged(made, json!({"name": body["name"], "email": body["email"]}));
    assert_members(&read, expected);
    let shown = read.to_string();
    assert!(
        !shown.contains("password") && !shown.contains("argon2"),
        "{shown}"
    );
    // An address belongs to one seller, ignoring case, also with concurrent registrations.
    let post = |email: &str| {
        let body = json!({"name": "K", "email": email});
        world.office(Method::POST, "/sellers").json(&body)
    };
    for email in [&first.email, &first.email.to_uppercase()] {
        let answer = post(email).send().await;
        answer.is_problem(409, &[entry("conflict", "email")]);
    }
    let answers = at_once((0..10).map(|_| post("new@shop.example"))).await;
    assert_eq!((count_of(&answers, 201), count_of(&answers, 409)), (1, 9));
}

#[tokio::test]
async fn every_field_is_validated() {
    let world = world().await;
    let table = r#"
        {}                             => name email
        {"name": "  ", "email": "nobody"}  => name email
        {"name": null, "email": null}  => name email
        {"name": "\u200b", "email": "k@shop.example"}         => name
        {"name": "Kettles\u0007", "email": "k@shop.example"}  => name
        {"name": 1, "email": ["a@b.example"]}    => name email
        {"x": 1, "email": 5, "name": ""}         => name email x
        {"name": "LONG", "email": "a@b@c"}       => name email
        {"name": "K", "email": "a b@shop.example"}                            => email
        {"name": "K", "email": "k@Erased.invalid"}                            => email
        {"name": "K", "email": "k@shop.example", "password": 5}               => password
        {"name": "K", "email": "k@shop.example", "password": "nine char"}     => password
        {"name": "K", "email": "kettles.and.co@shop.example", "password": "Kettles.And.Co"} => password
        {"name": "K", "email": "k@shop.example", "seller_no": 5}              => seller_no"#;
    let post = async |body: &str| world.office_post("/sellers", &body.parse().unwrap()).await;
    all_invalid(&table.replace("LONG", &"x".repeat(201)), post).await;
    assert_eq!(world.office_read("/sellers").await["items"], json!([]));
}

#[tokio::test]
async fn sellers_are_listed_in_pages() {
    let world = world().await;
    let mut made = Vec::new();
    for _ in 0..7 {
        made.push(world.seller().await.id);
    }
    let pages = pages("/sellers?limit=3", async |path| world.office_read(path).await).await;
    assert!(pages.iter().all(|page| (1..=3).contains(&ids(page).len())));
    let mut listed = pages.iter().flat_map(ids).collect::<Vec<_>>();
    made.sort();
    listed.sort();
    assert_eq!(listed, made);
    for (query, path) in [("limit=x", "limit"), ("after=x", "after"), ("x=1", "x")] {
        let answer = world.office_get(&format!("/sellers?{query}")).await;
        answer.invalid(path);
    }
    assert_eq!(ids(&world.office_read("/sellers?limit=0").await).len(), 1);
}

#[tokio::test]
async fn closing_a_seller_twice_is_200_and_a_closed_one_gets_no_credentials() {
    let world = world().await;
    let (seller, other) = (world.seller().await, world.seller().await);
    let path = format!("/sellers/{}", seller.id);
    let application = world.application(&seller, &["offers:read"]).await.client_id;
    for _ in 0..2 {
        world.close(&seller.id).await;
    }
    assert!(world.office_read(&path).await["closed_at"].is_string());
    let kept = world.office_read(&format!("/applications/{application}")).await;
    assert_eq!(kept["client_id"], application, "{kept}");
    let open = world.office_read(&format!("/sellers/{}", other.id)).await;
    assert!(open["closed_at"].is_null(), "{open}");
    let token = json!({"name": "x", "scopes": ["offers:read"]});
    for (call, body) in [
        ("applications", world.registration(json!({}))),
        ("personal-tokens", token),
    ] {
        let answer = world.office_post(&format!("{path}/{call}"), &body).await;
        answer.is_problem(409, &[whole("conflict")]);
    }
}
