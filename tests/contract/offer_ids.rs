//! `GET /v1/offers/{id}`: whose offer it is, and what is no id.

use blackbox::{Expect, Wire, offer_id, request};
use serde_json::json;

use crate::world;

#[tokio::test]
async fn another_sellers_offer_is_not_told_from_one_that_does_not_exist() {
    let world = world().await;
    let (owner, token) = world.reader().await;
    let (_, stranger) = world.reader().await;
    let id = world.offer(&owner, 1, json!({})).await;
    world.get(&token, &format!("/v1/offers/{id}")).await.expect(200);
    let mut bodies = Vec::new();
    for id in [&id, &offer_id(2)] {
        let request = world
            .client
            .get(&world.url(&format!("/v1/offers/{id}")))
            .bearer(&stranger);
        let answer = request.header("x-request-id", "same-for-both").send().await;
        answer.refused(404, "not_found");
        bodies.push(answer.json());
    }
    assert_eq!(bodies[0], bodies[1]);
    let list = world.get(&stranger, "/v1/offers").await.expect(200).json();
    assert_eq!(list, json!({"items": [], "next": null}));
}

#[tokio::test]
async fn what_is_no_id_is_404() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let id = world.offer(&seller, 1, json!({})).await;
    let bearer = format!("Bearer {token}");
    let headers = [("user-agent", "App/1.0"), ("authorization", bearer.as_str())];
    let forms = [
        "0".to_owned(),
        "nothing".to_owned(),
        id.replace('-', ""),
        format!("%7B{id}%7D"),
        format!("urn:uuid:{id}"),
        format!("{id}%20"),
        format!("{id}0"),
        id[1..].to_owned(),
        format!("{id}%00"),
        format!("{id}%"),
        format!("{id}%zz"),
        format!("{id};x=1"),
        "ż%C5%BC".to_owned(),
        "x".repeat(4000),
    ];
    for form in forms {
        let answer = Wire::exchange(
            &world.server.base_url,
            request("GET", &format!("/v1/offers/{form}"), &headers),
        )
        .await;
        assert!(
            answer.status == 404 || (!form.is_ascii() && answer.status == 400),
            "{form}: {answer:?}"
        );
    }
}

#[tokio::test]
async fn fields_is_the_only_parameter_of_one_offer() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let id = world.offer(&seller, 1, json!({})).await;
    for parameter in ["limit", "after", "status", "updated_after", "Fields", "x"] {
        world
            .get(&token, &format!("/v1/offers/{id}?{parameter}=1"))
            .await
            .invalid(&[parameter]);
    }
    world
        .get(&token, &format!("/v1/offers/{id}?x=1&fields=&limit=1"))
        .await
        .invalid(&["fields", "x", "limit"]);
}
