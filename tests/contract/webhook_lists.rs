//! Subscriptions as a list, their end, and whose they are (contract: GET and DELETE /v1/webhooks).

use blackbox::{EVENTS, Expect, Hook, Receiver, World, local_receivers};
use serde_json::{Value, json};

use crate::{PROGRAM, once::all};

async fn listed(world: &World, token: &str) -> Vec<Value> {
    let list = world.get(token, "/v1/webhooks").await.expect(200).json();
    list["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn the_list_is_whole_and_names_the_events() {
    let world = World::with(PROGRAM, local_receivers).await;
    let (own, receiver) = (world.integration().await, Receiver::start().await);
    let empty = world.get(&own.token, "/v1/webhooks").await.expect(200).json();
    assert_eq!(empty, json!({"items": [], "available_events": EVENTS}));
    let mut hooks = Vec::<Hook>::new();
    for _ in 0..3 {
        hooks.push(world.hook(&own.token, &receiver).await);
    }
    let items = listed(&world, &own.token).await;
    let ids = items.iter().map(|item| item["id"].as_str().unwrap());
    assert!(ids.eq(hooks.iter().map(|hook| hook.id.as_str())), "oldest first");
    let some = world
        .get(&own.token, "/v1/webhooks?fields=url,url")
        .await
        .expect(200)
        .json();
    assert_eq!(some["items"][0], json!({"id": hooks[0].id, "url": receiver.url}));
    assert_eq!(some["available_events"], json!(EVENTS));
    for query in ["limit=1", "after=x", "fields=secret", "fields="] {
        let path = query.split_once('=').unwrap().0;
        let list = world.get(&own.token, &format!("/v1/webhooks?{query}")).await;
        let history = world
            .get(
                &own.token,
                &format!("/v1/webhooks/{}/deliveries?{query}", hooks[0].id),
            )
            .await;
        list.invalid(&[path]);
        history.invalid(&[path]);
    }
}

#[tokio::test]
async fn an_end_is_an_end() {
    let world = World::with(PROGRAM, local_receivers).await;
    let (own, receiver) = (world.integration().await, Receiver::start().await);
    let (kept, ended) = (
        world.hook(&own.token, &receiver).await,
        world.hook(&own.token, &receiver).await,
    );
    let answer = world.unsubscribe(&own.token, &ended.id).await.expect(204);
    assert!(
        answer.bytes.is_empty() && answer.header("content-type").is_none(),
        "{answer:?}"
    );
    world
        .unsubscribe(&own.token, &ended.id)
        .await
        .refused(404, "not_found");
    let deliveries = format!("/v1/webhooks/{}/deliveries", ended.id);
    world.get(&own.token, &deliveries).await.refused(404, "not_found");
    let left = listed(&world, &own.token).await;
    assert_eq!((left.len(), &left[0]["id"]), (1, &json!(kept.id)));
    for id in ["", "x", "00000000-0000-0000-0000-000000000000", "%00"] {
        world.unsubscribe(&own.token, id).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn nobody_sees_or_ends_what_is_anothers() {
    let world = World::with(PROGRAM, local_receivers).await;
    let (own, receiver) = (world.integration().await, Receiver::start().await);
    let hook = world.hook(&own.token, &receiver).await;
    // Another application of the same seller, and another seller's.
    let others = [
        world.integration_of(own.seller.clone()).await,
        world.integration().await,
    ];
    for other in others {
        assert!(listed(&world, &other.token).await.is_empty());
        world
            .unsubscribe(&other.token, &hook.id)
            .await
            .refused(404, "not_found");
        let deliveries = format!("/v1/webhooks/{}/deliveries", hook.id);
        world
            .get(&other.token, &deliveries)
            .await
            .refused(404, "not_found");
    }
    assert_eq!(listed(&world, &own.token).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_have_room_however_many_come_at_once() {
    let world = World::with(PROGRAM, local_receivers).await;
    let (own, receiver) = (world.integration().await, Receiver::start().await);
    let body = json!({"url": receiver.url, "events": ["order.paid"]});
    let answers = all((0..30).map(|_| world.subscribing(&own.token, &body))).await;
    let made = answers.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(made, 20);
    for answer in answers.iter().filter(|answer| answer.status != 201) {
        answer.refused(422, "webhook_limit_reached");
    }
    assert_eq!(listed(&world, &own.token).await.len(), 20);
    // The limit is the pair's: another application of the seller, or another seller, has room of its own.
    let other = world.integration_of(own.seller.clone()).await;
    world.subscribing(&other.token, &body).send().await.expect(201);
    // Whoever ends one has room again, and for one only, also when many ends of the same one are asked for at once.
    let id = answers.iter().find(|answer| answer.status == 201).unwrap().json()["id"].clone();
    let id = id.as_str().unwrap();
    let ends = all((0..4).map(|_| world.unsubscribing(&own.token, id))).await;
    let statuses = ends.iter().map(|end| end.status);
    assert_eq!(
        statuses.clone().filter(|status| *status == 204).count(),
        1,
        "{:?}",
        statuses.collect::<Vec<_>>()
    );
    let again = all((0..3).map(|_| world.subscribing(&own.token, &body))).await;
    assert_eq!(again.iter().filter(|answer| answer.status == 201).count(), 1);
}
