//! Lists of subscriptions, their deletion, and their ownership (contract: GET and DELETE /v1/webhooks).

use blackbox::{EVENTS, Expect, World, at_once, count_of, ids, local_receivers, text};
use serde_json::json;

use crate::PROGRAM;

async fn listed(world: &World, token: &str) -> Vec<String> {
    ids(&world.read(token, "/v1/webhooks").await)
}

#[tokio::test]
async fn all_subscriptions_are_listed_and_a_deleted_one_is_404() {
    let world = World::with(PROGRAM, local_receivers).await;
    let own = world.integration().await;
    let empty = world.read(&own.token, "/v1/webhooks").await;
    assert_eq!(empty, json!({"items": [], "available_events": EVENTS}));
    let mut made = Vec::new();
    let url = "http://127.0.0.1:9/";
    for _ in 0..3 {
        let hook = world.subscription(&own.token, url, &EVENTS).await;
        made.push(text(&hook, "id"));
    }
    assert_eq!(listed(&world, &own.token).await, made, "oldest first");
    let some = world.read(&own.token, "/v1/webhooks?fields=url,url").await;
    assert_eq!(some["items"][0], json!({"id": made[0], "url": url}));
    assert_eq!(some["available_events"], json!(EVENTS));
    let one = format!("/v1/webhooks/{}", made[0]);
    let all = world.read(&own.token, "/v1/webhooks").await;
    assert_eq!(world.read(&own.token, &one).await, all["items"][0]);
    let some = world.read(&own.token, &format!("{one}?fields=url")).await;
    assert_eq!(some, json!({"id": made[0], "url": url}));
    let deliveries = format!("{one}/deliveries");
    for query in ["limit=1", "after=x", "fields=secret", "fields="] {
        let parameter = query.split('=').next().unwrap();
        for path in ["/v1/webhooks", &one, &deliveries] {
            let path = format!("{path}?{query}");
            world.invalid(&own.token, &path, parameter).await;
        }
    }
    world.unsubscribe(&own.token, &made[0]).await.expect(204);
    for id in [&made[0], "", "x", "00000000-0000-0000-0000-000000000000", "%00"] {
        world.unsubscribe(&own.token, id).await.refused(404, "not_found");
    }
    for path in [&one, &deliveries] {
        world.refuses(&own.token, path, 404, "not_found").await;
    }
    assert_eq!(listed(&world, &own.token).await, made[1..]);
}

#[tokio::test]
async fn another_applications_subscription_is_neither_listed_nor_deleted() {
    let world = World::with(PROGRAM, local_receivers).await;
    let (own, receiver, hook) = world.subscribed().await;
    world.any_order(&own.seller).await;
    let delivery = text(&world.delivery(&own.token, &hook.id).await, "id");
    let one = format!("/v1/webhooks/{}", hook.id);
    let one_delivery = format!("{one}/deliveries/{delivery}");
    world.read(&own.token, &one_delivery).await;
    // Another application of the same seller, and another seller's.
    for other in [
        world.integration_of(own.seller.clone()).await,
        world.integration().await,
    ] {
        assert!(listed(&world, &other.token).await.is_empty());
        let end = world.unsubscribe(&other.token, &hook.id).await;
        end.refused(404, "not_found");
        let theirs = world.hook(&other.token, &receiver).await.id;
        let of_theirs = format!("/v1/webhooks/{theirs}/deliveries/{delivery}");
        for path in [&one, &format!("{one}/deliveries"), &one_delivery, &of_theirs] {
            world.refuses(&other.token, path, 404, "not_found").await;
        }
    }
    assert_eq!(listed(&world, &own.token).await, [hook.id]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_may_have_twenty_subscriptions_of_a_seller() {
    let world = World::with(PROGRAM, local_receivers).await;
    let own = world.integration().await;
    let body = json!({"url": "http://127.0.0.1:9/", "events": ["order.paid"]});
    let answers = at_once((0..30).map(|_| world.subscribing(&own.token, &body))).await;
    assert_eq!(count_of(&answers, 201), 20);
    for answer in answers.iter().filter(|answer| answer.status != 201) {
        answer.refused(422, "webhook_limit_reached");
    }
    let made = listed(&world, &own.token).await;
    assert_eq!(made.len(), 20);
    // The limit is per application and seller: another application of the seller, or another seller, has a
    // separate one.
    let other = world.integration_of(own.seller.clone()).await;
    world.subscribing(&other.token, &body).send().await.expect(201);
    // A deletion frees one place, also if the same subscription is deleted several times concurrently.
    let ends = at_once((0..4).map(|_| world.unsubscribing(&own.token, &made[0]))).await;
    assert_eq!(count_of(&ends, 204), 1, "{ends:?}");
    let again = at_once((0..3).map(|_| world.subscribing(&own.token, &body))).await;
    assert_eq!(count_of(&again, 201), 1);
}
