//! Subscriptions with an idempotency key: one is created, and only the requester gets its secret.

use blackbox::{Expect, Integration, World, items, local_receivers, text};
use serde_json::{Value, json};
use testkit::Answer;

use crate::PROGRAM;

async fn keyed(world: &World, own: &Integration, key: &str, body: &Value) -> Answer {
    let request = world.subscribing(&own.token, body);
    request.header("idempotency-key", key).send().await
}

#[tokio::test]
async fn a_repeat_gets_the_same_secret_and_another_application_none() {
    let world = World::with(PROGRAM, local_receivers).await;
    let own = world.integration().await;
    let body = json!({"url": "http://127.0.0.1:9/", "events": ["order.paid"]});
    let first = keyed(&world, &own, "k", &body).await.expect(201);
    assert!(first.header("idempotent-replayed").is_none());
    let again = keyed(&world, &own, "k", &body).await.expect(201);
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(first.bytes, again.bytes, "secret and all");
    assert_eq!(items(&world.read(&own.token, "/v1/webhooks").await).len(), 1);
    let kept = "select count(*) from idempotency where position(convert_to($1, 'UTF8') in body) > 0";
    let secret = text(&first.json(), "secret");
    assert_eq!(
        world.count(kept, &secret).await,
        0,
        "what is remembered is sealed"
    );
    let other_body = json!({"url": "http://127.0.0.1:9/", "events": ["order.created"]});
    let sister = world.integration_of(own.seller.clone()).await;
    for (whose, body) in [(&own, &other_body), (&sister, &body)] {
        let reused = keyed(&world, whose, "k", body).await;
        reused.refused(422, "idempotency_key_reused");
    }
    // Another seller's keys are separate.
    let stranger = world.integration().await;
    let theirs = keyed(&world, &stranger, "k", &body).await.expect(201);
    assert!(theirs.header("idempotent-replayed").is_none());
    let long = keyed(&world, &own, &"k".repeat(129), &body).await;
    long.invalid(&["Idempotency-Key"]);
    // Rejections are not stored: the same key works for the corrected request.
    let wrong = json!({"url": "x", "events": []});
    keyed(&world, &own, "l", &wrong).await.invalid(&["url", "events"]);
    let made = keyed(&world, &own, "l", &body).await.expect(201);
    // A deletion with a key happens once, and its answer is repeated.
    let id = text(&made.json(), "id");
    let end = async || {
        let request = world.unsubscribing(&own.token, &id);
        request.header("idempotency-key", "end").send().await.expect(204)
    };
    for replayed in [None, Some("true")] {
        let answer = end().await;
        assert_eq!(
            (answer.header("idempotent-replayed"), answer.bytes.len()),
            (replayed, 0)
        );
    }
    world.unsubscribe(&own.token, &id).await.refused(404, "not_found");
}
