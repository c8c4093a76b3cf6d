//! Personal tokens that the marketplace issues.

use blackbox::{Expect, Seller, World, at_once, count_of, merged, text};
use chrono::TimeDelta;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::Request;

use crate::world;

fn issuing(world: &World, seller: &Seller, body: &Value) -> Request {
    let path = format!("/sellers/{}/personal-tokens", seller.id);
    world.office(Method::POST, &path).json(body)
}

fn token(changes: Value) -> Value {
    merged(json!({"name": "x", "scopes": ["offers:read"]}), changes)
}

#[tokio::test]
async fn every_field_has_its_rule() {
    let world = world().await;
    world.stop_clock("2040-01-01T12:00:00Z").await;
    let seller = world.seller().await;
    for (body, paths) in [
        (json!({}), "name scopes"),
        (json!({"name": "", "scopes": []}), "name scopes"),
        (
            json!({"name": "x".repeat(101), "scopes": ["nothing"]}),
            "name scopes[0]",
        ),
        (token(json!({"scopes": "offers:read"})), "scopes"),
        (token(json!({"expires_at": "2040-01-01T12:00:00Z"})), "expires_at"),
        (token(json!({"expires_at": "2039-12-31T00:00:00Z"})), "expires_at"),
        (token(json!({"expires_at": "2041-01-01"})), "expires_at"),
        (token(json!({"expires_at": "2041-01-01T00:00:00"})), "expires_at"),
        (token(json!({"expires_at": 2_556_144_000_i64})), "expires_at"),
        (token(json!({"seller": "y"})), "seller"),
    ] {
        let answer = issuing(&world, &seller, &body).send().await;
        answer.invalid(&paths.split(' ').collect::<Vec<_>>());
    }
    let reserved = json!({"scopes": ["billing:read", "messaging", "billing:read"], "expires_at": null});
    let made = issuing(&world, &seller, &token(reserved))
        .send()
        .await
        .expect(201)
        .json();
    assert_eq!(made.as_object().unwrap().len(), 2, "{made}");
    assert!(text(&made, "token").starts_with("ps_pt_"));
    let me = world.read(&text(&made, "token"), "/v1/me").await;
    assert_eq!(me["scopes"].as_array().unwrap().len(), 2);
    let soon = token(json!({"expires_at": "2040-01-01T12:00:00.000001Z"}));
    issuing(&world, &seller, &soon).send().await.expect(201);
}

#[tokio::test]
async fn twenty_may_be_alive_at_a_time() {
    let world = world().await;
    let clock = world.stop_clock("2040-01-01T12:00:00Z").await;
    let (seller, other) = (world.seller().await, world.seller().await);
    let ending = token(json!({"expires_at": "2040-01-01T12:00:10Z"}));
    issuing(&world, &seller, &ending).send().await.expect(201);
    let made = world.personal_token(&seller, &["offers:read"]).await;
    // Also with concurrent requests.
    let lasting = token(json!({}));
    let answers = at_once((0..30).map(|_| issuing(&world, &seller, &lasting))).await;
    assert_eq!((count_of(&answers, 201), count_of(&answers, 409)), (18, 12));
    // Expired and revoked tokens free a place, each for its seller only.
    let one_more = async || {
        issuing(&world, &seller, &lasting).send().await.expect(201);
        let refused = issuing(&world, &seller, &lasting).send().await;
        refused.refused(409, "conflict");
    };
    clock.advance(TimeDelta::seconds(10)).await;
    one_more().await;
    let path = |seller: &Seller| format!("/sellers/{}/personal-tokens/{}", seller.id, made.id);
    let anothers = world.office_delete(&path(&other)).await;
    anothers.refused(404, "not_found");
    assert!(world.works(&made.token).await);
    let answer = world.office_delete(&path(&seller)).await.expect(204);
    assert!(answer.bytes.is_empty());
    one_more().await;
    issuing(&world, &other, &lasting).send().await.expect(201);
}
