//! Subscriptions with an idempotency key: one is created, and only the requester gets its secret.

use blackbox::{Expect, Integration, World, items, keyed, local_receivers, text};
use serde_json::{Value, json};
use testkit::Answer;

use crate::{PROGRAM, idempotency_keys::replays};

async fn subscribe(world: &World, own: &Integration, key: &str, body: &Value) -> Answer {
    keyed(world.subscribing(&own.token, body), key).send().await
}

#[tokio::test]
async fn a_repeat_gets_the_same_secret_and_another_application_none() {
    let world = World::with(PROGRAM, local_receivers).await;
    let own = world.integration().await;
    let body = json!({"url": "http://127.0.0.1:9/", "events": ["order.paid"]});
    let first = subscribe(&world, &own, "k", &body).await.expect(201);
    replays(&first, &subscribe(&world, &own, "k", &body).await);
    assert_eq!(items(&world.read(&own.token, "/v1/webhooks").await).len(), 1);
    let sister = world.integration_of(own.seller.clone()).await;
    let reused = subscribe(&world, &sister, "k", &body).await;
    reused.refused(422, "idempotency_key_reused");
    // Rejections are not stored: the same key works for the corrected request.
    let wrong = json!({"url": "x", "events": []});
    subscribe(&world, &own, "l", &wrong).await.invalid("url events");
    let made = subscribe(&world, &own, "l", &body).await.expect(201);
    // A deletion with a key happens once, and its answer is repeated.
    let id = text(&made.json(), "id");
    for replayed in [false, true] {
        let answer = keyed(world.unsubscribing(&own.token, &id), "end").send().await;
        assert_eq!(
            (answer.is_replayed(), answer.expect(204).bytes.len()),
            (replayed, 0)
        );
    }
    world.unsubscribe(&own.token, &id).await.refused(404, "not_found");
}
