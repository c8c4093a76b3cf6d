//! What is under way is carried through, and what cannot be checked is not let through.

use blackbox::{Expect, Wire, offer_body, offer_id, request_with_body, until};
use serde_json::json;

use crate::world;

#[tokio::test]
async fn a_client_that_goes_away_does_not_stop_what_it_asked_for() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let held = world.hold("lock table offers in share mode").await;
    let bearer = format!("Bearer {}", world.server.operator_token);
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    let path = format!("/sellers/{}/offers/{}", seller.id, offer_id(1));
    let body = offer_body(1, json!({})).to_string();
    let mut wire = Wire::connect(&world.server.backoffice_url).await;
    wire.send(request_with_body("PUT", &path, &headers, &body)).await;
    world.waiters(1).await;
    drop(wire);
    // The server notices that the connection is gone while the statement still waits.
    world.read(&token, "/v1/me").await;
    held.end("rollback").await;
    let path = format!("/v1/offers/{}", offer_id(1));
    until("the offer", async || world.get(&token, &path).await.status == 200).await;
}

#[tokio::test]
async fn a_request_that_cannot_be_counted_is_not_let_through() {
    let world = world().await;
    let (_, token) = world.reader().await;
    world.read(&token, "/v1/me").await;
    world
        .execute("alter table rate_windows rename to elsewhere")
        .await;
    for path in ["/v1/me", "/v1/offers", "/v1/nothing"] {
        world.refuses(&token, path, 500, "internal_error").await;
    }
    let form = "grant_type=client_credentials&client_id=psa_x&client_secret=pss_x";
    let answer = world.at("POST", "/oauth/token").form(form).send().await;
    answer.oauth_error(500, "server_error");
    world
        .execute("alter table elsewhere rename to rate_windows")
        .await;
    world.read(&token, "/v1/me").await;
}
