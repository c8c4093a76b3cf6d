//! `GET /v1/offers/{id}`: ownership, and invalid ids.

use blackbox::{Expect, Wire, offer_id, request};
use serde_json::json;

use crate::world;

#[tokio::test]
async fn another_sellers_offer_is_not_told_from_one_that_does_not_exist() {
    let world = world().await;
    let ((owner, token), (_, stranger)) = (world.reader().await, world.reader().await);
    let id = world.offer(&owner, 1, json!({})).await;
    world.read(&token, &format!("/v1/offers/{id}")).await;
    let mut bodies = Vec::new();
    for id in [&id, &offer_id(2)] {
        let request = world.at("GET", &format!("/v1/offers/{id}")).bearer(&stranger);
        let answer = request.header("x-request-id", "same-for-both").send().await;
        answer.refused(404, "not_found");
        bodies.push(answer.json());
    }
    assert_eq!(bodies[0], bodies[1]);
    let list = world.read(&stranger, "/v1/offers").await;
    assert_eq!(list, json!({"items": [], "next": null}));
}

#[tokio::test]
async fn what_is_no_id_is_404() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let id = world.offer(&seller, 1, json!({})).await;
    let bearer = format!("Bearer {token}");
    let headers = [("user-agent", "App/1.0"), ("authorization", bearer.as_str())];
    let forms = "0 nothing %7BID%7D urn:uuid:ID ID%20 ID0 ID%00 ID% ID%zz ID;x=1 ż%C5%BC".replace("ID", &id);
    let (bare, less, long) = (id.replace('-', ""), &id[1..], "x".repeat(4000));
    for form in forms.split(' ').chain([bare.as_str(), less, &long]) {
        let request = request("GET", &format!("/v1/offers/{form}"), &headers);
        let answer = Wire::exchange(&world.server.base_url, request).await;
        let fine = answer.status == 404 || (!form.is_ascii() && answer.status == 400);
        assert!(fine, "{form}: {answer:?}");
    }
}
