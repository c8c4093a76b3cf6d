//! Personal tokens as the marketplace issues them.

use blackbox::{Expect, Seller, World};
use chrono::TimeDelta;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::Answer;

use crate::world;

async fn issue(world: &World, seller: &Seller, body: Value) -> Answer {
    world
        .office_post(&format!("/sellers/{}/personal-tokens", seller.id), &body)
        .await
}

#[tokio::test]
async fn every_field_has_its_rule() {
    let world = world().await;
    world.stop_clock("2040-01-01T12:00:00Z").await;
    let seller = world.seller().await;
    for (body, paths) in [
        (json!({}), vec!["name", "scopes"]),
        (json!({"name": "", "scopes": []}), vec!["name", "scopes"]),
        (
            json!({"name": "x".repeat(101), "scopes": ["nothing"]}),
            vec!["name", "scopes[0]"],
        ),
        (json!({"name": "x", "scopes": "offers:read"}), vec!["scopes"]),
        (
            json!({"name": "x", "scopes": ["offers:read"], "expires_at": "2040-01-01T12:00:00Z"}),
            vec!["expires_at"],
        ),
        (
            json!({"name": "x", "scopes": ["offers:read"], "expires_at": "2039-12-31T00:00:00Z"}),
            vec!["expires_at"],
        ),
        (
            json!({"name": "x", "scopes": ["offers:read"], "expires_at": "2041-01-01"}),
            vec!["expires_at"],
        ),
        (
            json!({"name": "x", "scopes": ["offers:read"], "expires_at": "2041-01-01T00:00:00"}),
            vec!["expires_at"],
        ),
        (
            json!({"name": "x", "scopes": ["offers:read"], "expires_at": 2_556_144_000_i64}),
            vec!["expires_at"],
        ),
        (
            json!({"name": "x", "scopes": ["offers:read"], "seller": "y"}),
            vec!["seller"],
        ),
    ] {
        issue(&world, &seller, body).await.invalid(&paths);
    }
    let reserved =
        json!({"name": "x", "scopes": ["billing:read", "messaging", "billing:read"], "expires_at": null});
    let made = issue(&world, &seller, reserved).await.expect(201).json();
    assert_eq!(made.as_object().unwrap().len(), 2, "{made}");
    let token = made["token"].as_str().unwrap();
    assert!(token.starts_with("ps_pt_"));
    assert_eq!(
        world.get(token, "/v1/me").await.expect(200).json()["scopes"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let soon = json!({"name": "x", "scopes": ["messaging"], "expires_at": "2040-01-01T12:00:00.000001Z"});
    issue(&world, &seller, soon).await.expect(201);
}

#[tokio::test]
async fn twenty_may_be_alive_at_a_time() {
    let world = world().await;
    let clock = world.stop_clock("2040-01-01T12:00:00Z").await;
    let seller = world.seller().await;
    let lasting = json!({"name": "x", "scopes": ["offers:read"]});
    let ending = json!({"name": "x", "scopes": ["offers:read"], "expires_at": "2040-01-01T12:00:10Z"});
    let mut ids = Vec::new();
    for n in 0..20 {
        let body = if n == 0 { &ending } else { &lasting };
        let made = issue(&world, &seller, body.clone()).await.expect(201).json();
        ids.push(made["id"].as_str().unwrap().to_owned());
    }
    issue(&world, &seller, lasting.clone())
        .await
        .refused(409, "conflict");
    issue(&world, &world.seller().await, lasting.clone())
        .await
        .expect(201);
    // An expired one makes room, and so does a revoked one.
    clock.advance(TimeDelta::seconds(10)).await;
    issue(&world, &seller, lasting.clone()).await.expect(201);
    issue(&world, &seller, lasting.clone())
        .await
        .refused(409, "conflict");
    let path = format!("/sellers/{}/personal-tokens/{}", seller.id, ids[5]);
    let answer = world.office(Method::DELETE, &path).send().await.expect(204);
    assert!(answer.bytes.is_empty());
    issue(&world, &seller, lasting.clone()).await.expect(201);
    issue(&world, &seller, lasting).await.refused(409, "conflict");
}

#[tokio::test]
async fn twenty_hold_though_many_ask_at_once() {
    let world = world().await;
    let seller = world.seller().await;
    let asking = (0..30).map(|n| {
        let path = format!("/sellers/{}/personal-tokens", seller.id);
        let request = world
            .office(Method::POST, &path)
            .json(&json!({"name": format!("t{n}"), "scopes": ["offers:read"]}));
        tokio::spawn(request.send())
    });
    let mut made = 0;
    for asked in asking.collect::<Vec<_>>() {
        let answer = asked.await.unwrap();
        assert!(matches!(answer.status, 201 | 409), "{answer:?}");
        made += usize::from(answer.status == 201);
    }
    assert_eq!(made, 20);
}

#[tokio::test]
async fn a_token_is_its_sellers_to_revoke() {
    let world = world().await;
    let (one, other) = (world.seller().await, world.seller().await);
    let token = world.personal_token(&one, &["offers:read"]).await;
    world
        .office(
            Method::DELETE,
            &format!("/sellers/{}/personal-tokens/{}", other.id, token.id),
        )
        .send()
        .await
        .refused(404, "not_found");
    world.get(&token.token, "/v1/me").await.expect(200);
}
