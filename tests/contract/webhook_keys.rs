//! Subscriptions made under an idempotency key: one is made, and its secret told to whoever asked, and to nobody else.

use blackbox::{Expect, Integration, Receiver, World, local_receivers};
use serde_json::{Value, json};
use testkit::Answer;

use crate::PROGRAM;

async fn keyed(world: &World, own: &Integration, key: &str, body: &Value) -> Answer {
    let request = world.subscribing(&own.token, body).header("idempotency-key", key);
    request.send().await
}

#[tokio::test]
async fn a_repeat_gets_the_same_secret() {
    let world = World::with(PROGRAM, local_receivers).await;
    let (own, receiver) = (world.integration().await, Receiver::start().await);
    let body = json!({"url": receiver.url, "events": ["order.paid"]});
    let first = keyed(&world, &own, "k", &body).await.expect(201);
    assert!(first.header("idempotent-replayed").is_none());
    let again = keyed(&world, &own, "k", &body).await.expect(201);
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(first.bytes, again.bytes, "secret and all");
    let listed = world.get(&own.token, "/v1/webhooks").await.json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    let secret = first.json()["secret"].as_str().unwrap().to_owned();
    let kept = "select count(*) from idempotency where position(convert_to($1, 'UTF8') in body) > 0";
    assert_eq!(
        world.count(kept, &secret).await,
        0,
        "what is remembered is sealed"
    );

    let other = json!({"url": receiver.url, "events": ["order.created"]});
    keyed(&world, &own, "k", &other)
        .await
        .refused(422, "idempotency_key_reused");
    keyed(&world, &own, &"k".repeat(129), &body)
        .await
        .invalid(&["Idempotency-Key"]);
    // A refusal is not remembered: the same key serves for the corrected request.
    keyed(&world, &own, "l", &json!({"url": "x", "events": []}))
        .await
        .invalid(&["url", "events"]);
    keyed(&world, &own, "l", &body).await.expect(201);
}

#[tokio::test]
async fn another_application_never_gets_a_secret_by_its_key() {
    let world = World::with(PROGRAM, local_receivers).await;
    let (own, receiver) = (world.integration().await, Receiver::start().await);
    let other = world.integration_of(own.seller.clone()).await;
    let body = json!({"url": receiver.url, "events": ["order.paid"]});
    keyed(&world, &own, "k", &body).await.expect(201);
    keyed(&world, &other, "k", &body)
        .await
        .refused(422, "idempotency_key_reused");
    // Another seller's keys are its own.
    let stranger = world.integration().await;
    let theirs = keyed(&world, &stranger, "k", &body).await.expect(201);
    assert!(theirs.header("idempotent-replayed").is_none());
}

#[tokio::test]
async fn an_end_under_a_key_happens_once_and_is_told_again() {
    let world = World::with(PROGRAM, local_receivers).await;
    let (own, receiver) = (world.integration().await, Receiver::start().await);
    let hook = world.hook(&own.token, &receiver).await;
    let url = world.url(&format!("/v1/webhooks/{}", hook.id));
    let end = async || {
        let request = world
            .client
            .request(reqwest::Method::DELETE, &url)
            .bearer(&own.token);
        request.header("idempotency-key", "end").send().await.expect(204)
    };
    assert!(end().await.header("idempotent-replayed").is_none());
    let again = end().await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert!(again.bytes.is_empty());
    world
        .unsubscribe(&own.token, &hook.id)
        .await
        .refused(404, "not_found");
}
