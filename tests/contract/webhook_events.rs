//! Subscribers' events: every transition, once, without details, and signed (contract: Events).

use std::collections::BTreeSet;

use blackbox::{
    Integration, Order, Received, Receiver, World, assert_members, line, parcel, signature, text,
};
use serde_json::{Value, json};
use testkit::TestWorker;

use crate::{instant, world_of_hooks};

/// Runs a trade in which every event occurs. Returns each event's data, sorted.
async fn trade(world: &World, own: &Integration, is_test: bool) -> Vec<(String, Value)> {
    let changes = json!({"is_test": is_test});
    let offer = world.any_offer(&own.seller, json!({})).await;
    let lines = [line(&own.seller, &offer, 1)];
    let delivered = world.paid(&lines, changes.clone()).await;
    let sent = parcel("0000000001");
    world.shipped(&own.token, &delivered.id, &sent).await;
    world.order_moved(&delivered.id, "delivery").await;
    let cancelled = world.unpaid(&lines, changes.clone()).await;
    world.order_moved(&cancelled.id, "cancellation").await;
    let refunded = world.paid(&lines, changes).await;
    world.order_moved(&refunded.id, "cancellation").await;
    for decision in ["propose", "reject"] {
        world.moderate(&own.seller, &offer, decision).await;
    }
    let seller = &own.seller.id;
    let of = |order: &Order| json!({"order_id": order.id, "order_number": order.number, "seller_id": seller});
    sorted(vec![
        ("order.created".to_owned(), of(&delivered)),
        ("order.paid".to_owned(), of(&delivered)),
        ("order.shipped".to_owned(), of(&delivered)),
        ("order.delivered".to_owned(), of(&delivered)),
        ("order.created".to_owned(), of(&cancelled)),
        ("order.cancelled".to_owned(), of(&cancelled)),
        ("order.created".to_owned(), of(&refunded)),
        ("order.paid".to_owned(), of(&refunded)),
        ("order.cancelled".to_owned(), of(&refunded)),
        (
            "offer.rejected".to_owned(),
            json!({"offer_id": offer, "seller_id": seller}),
        ),
    ])
}

fn sorted(mut told: Vec<(String, Value)>) -> Vec<(String, Value)> {
    told.sort_by_key(|(event, data)| (event.clone(), data.to_string()));
    told
}

#[tokio::test]
async fn each_transition_is_delivered_once_in_the_contracts_format() {
    let docs = ("SERVER__DOCS_URL", "https://docs.shop.example");
    let world = world_of_hooks(&[("SERVER__SERVICE_NAME", "shop"), docs]).await;
    for is_test in [false, true] {
        let (own, receiver, hook) = world.subscribed().await;
        let expected = trade(&world, &own, is_test).await;
        let arrived = receiver.has(expected.len()).await;
        let data = |delivery: &Received| {
            let mut data = delivery.json()["data"].take();
            data.as_object_mut().unwrap().remove("event_id");
            (delivery.event(), data)
        };
        assert_eq!(sorted(arrived.iter().map(data).collect()), expected);
        for delivery in &arrived {
            // The receiver has compared body and headers with the document.
            assert_eq!(delivery.request_line, "POST /hooks HTTP/1.1");
            assert_eq!(delivery.header("x-webhook-id"), hook.id);
            let agent = "shop-webhooks/1.0 (+https://docs.shop.example)";
            assert_eq!(delivery.header("user-agent"), agent);
            delivery.is_signed_by(&hook.secret).await;
            let text = String::from_utf8_lossy(&delivery.body);
            assert!(!text.contains("buyer") && !text.contains("Żak"), "{text}");
        }
        let history = world.history(&own.token, &hook.id).await;
        assert_eq!(history.len(), arrived.len(), "each arrived at its first attempt");
    }
}

#[tokio::test]
async fn a_subscription_gets_its_sellers_events_of_the_chosen_types_alone() {
    let world = world_of_hooks(&[]).await;
    let (own, receiver, hook) = world.subscribed().await;
    let (other, others, _) = world.subscribed().await;
    let second = world.hook(&own.token, &receiver).await;
    let few = Receiver::start().await;
    world.subscription(&own.token, &few.url, &["order.shipped"]).await;
    // One paid order of both sellers: each gets events about its own part.
    let mut lines = Vec::new();
    for seller in [&own.seller, &other.seller] {
        let offer = world.any_offer(seller, json!({})).await;
        lines.push(line(seller, &offer, 1));
    }
    world.paid(&lines, json!({})).await;
    // One order of our seller only, which is shipped too.
    let order = world.paid_order(&own.trader()).await;
    world.shipped(&own.token, &order.id, &parcel("0000000002")).await;
    let arrived = receiver.has(10).await;
    few.has(1).await;
    others.has(2).await;
    let distinct: BTreeSet<_> = arrived.iter().map(Received::delivery).collect();
    assert_eq!(distinct.len(), 10, "each subscription has separate deliveries");
    let first = world.history(&own.token, &hook.id).await;
    for delivery in &arrived {
        let (mut mine, mut its) = (&hook, &second);
        if !first.iter().any(|known| known["id"] == delivery.delivery()) {
            std::mem::swap(&mut mine, &mut its);
        }
        delivery.is_signed_by(&mine.secret).await;
        let foreign = signature(&its.secret, &delivery.body).await;
        assert_ne!(delivery.header("x-signature"), foreign);
    }
    assert_eq!([&receiver, &few, &others].map(Receiver::count), [10, 1, 2]);
}

#[tokio::test]
async fn a_delivery_is_listed_as_soon_as_it_is_queued() {
    let world = world_of_hooks(&[("SERVER__WORKERS", "none")]).await;
    let (own, receiver, hook) = world.subscribed().await;
    let order = world.any_order(&own.seller).await;
    let queued = world.delivery(&own.token, &hook.id).await;
    let created_at = instant(&text(&queued, "created_at"));
    let expected = json!({
        "id": queued["id"], "event": "order.created", "attempt": 0, "response_status": null, "duration_ms": null,
        "delivered_at": null, "next_retry_at": null, "created_at": queued["created_at"], "failure": null,
        "order_id": order.id, "offer_id": null,
    });
    assert_eq!(queued, expected);
    let _worker = TestWorker::start(&world.options, &world.database);
    let arrived = receiver.hears("order.created").await;
    assert_eq!(arrived.json()["data"]["order_id"], order.id);
    let done = world.attempted(&own.token, &hook.id, 1).await;
    assert!(instant(&text(&done, "delivered_at")) >= created_at);
    assert_members(
        &done,
        json!({"response_status": 204, "next_retry_at": null, "id": arrived.delivery()}),
    );
    assert!(done["duration_ms"].as_i64().is_some_and(|ms| ms >= 0));
    let path = format!("/v1/webhooks/{}/deliveries", hook.id);
    let some = json!({"items": [{"id": done["id"], "attempt": 1}]});
    let attempt = format!("{path}?fields=attempt");
    assert_eq!(world.read(&own.token, &attempt).await, some);
    let one = format!("{path}/{}", arrived.delivery());
    let mut whole = world.read(&own.token, &one).await;
    let body = whole.as_object_mut().unwrap().remove("body").unwrap();
    assert_eq!(body.as_str().unwrap().as_bytes(), arrived.body, "as sent");
    assert_eq!(whole, done);
    let some = world.read(&own.token, &format!("{one}?fields=body")).await;
    assert_eq!(some, json!({"id": done["id"], "body": body}));
}

#[tokio::test]
async fn the_last_hundred_deliveries_are_listed_newest_first() {
    let world = world_of_hooks(&[]).await;
    let (own, receiver) = (world.integration().await, Receiver::start().await);
    let events = ["order.created"];
    let hook = world.subscription(&own.token, &receiver.url, &events).await;
    let offer = world.any_offer(&own.seller, json!({"stock": 1_000})).await;
    let mut orders = Vec::new();
    for _ in 0..103 {
        orders.push(world.ordered(&own.seller, &[&offer]).await.id);
    }
    receiver.has(103).await;
    let history = world.history(&own.token, &text(&hook, "id")).await;
    let listed: Vec<_> = history
        .iter()
        .map(|delivery| text(delivery, "order_id"))
        .collect();
    let last: Vec<_> = orders.into_iter().rev().take(100).collect();
    assert_eq!(listed, last);
}
