//! `GET /v1/offers/{id}`: ownership.

use blackbox::{Expect, offer_id};
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
