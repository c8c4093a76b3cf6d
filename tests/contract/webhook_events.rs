//! What subscribers hear of: every transition, once, thin, and signed (contract: Events).

use blackbox::{Integration, Receiver, World, line, local_receivers, parcel};
use serde_json::{Value, json};

use crate::{PROGRAM, instant};

/// Runs a trade in which every event happens, and gives what each of them tells, in order.
async fn trade(world: &World, own: &Integration, is_test: bool) -> Vec<(&'static str, Value)> {
    let trader = own.trader();
    let changes = json!({"is_test": is_test});
    let offer = world.any_offer(&trader.seller, json!({})).await;
    let lines = [line(&trader.seller, &offer, 1)];
    let delivered = world.paid(&lines, changes.clone()).await;
    world
        .ship(&trader.token, &delivered.id, &parcel("0000000001"))
        .await
        .expect(201);
    world.settle(&delivered.id, "delivery").await.expect(200);
    let cancelled = world.unpaid(&lines, changes).await;
    world.settle(&cancelled.id, "cancellation").await.expect(200);
    let moderation = format!("/sellers/{}/offers/{offer}/moderation", trader.seller.id);
    for decision in ["propose", "reject"] {
        world
            .office_post(&moderation, &json!({"decision": decision}))
            .await
            .expect(200);
    }
    let of = |order: &blackbox::Order| json!({"order_id": order.id, "order_number": order.number});
    vec![
        ("order.created", of(&delivered)),
        ("order.paid", of(&delivered)),
        ("order.shipped", of(&delivered)),
        ("order.delivered", of(&delivered)),
        ("order.created", of(&cancelled)),
        ("order.cancelled", of(&cancelled)),
        ("offer.rejected", json!({"offer_id": offer})),
    ]
}

fn sorted(mut told: Vec<(String, Value)>) -> Vec<(String, Value)> {
    told.sort_by_key(|(event, data)| (event.clone(), data.to_string()));
    told
}

#[tokio::test]
async fn every_transition_is_told_once_in_the_contracts_form() {
    for is_test in [false, true] {
        let world = World::with(PROGRAM, |options| {
            local_receivers(options)
                .set("SELLER_API__SERVER__SERVICE_NAME", "shop")
                .set("SELLER_API__SERVER__DOCS_URL", "https://docs.shop.example")
        })
        .await;
        let (own, receiver) = (world.integration().await, Receiver::start().await);
        let hook = world.hook(&own.token, &receiver).await;
        let expected = trade(&world, &own, is_test).await;
        let arrived = receiver.has(expected.len()).await;
        let told = arrived
            .iter()
            .map(|delivery| (delivery.event(), delivery.json()["data"].clone()));
        let expected = expected.into_iter().map(|(event, data)| (event.to_owned(), data));
        assert_eq!(sorted(told.collect()), sorted(expected.collect()));
        for delivery in &arrived {
            let body = delivery.json();
            let fields = body.as_object().unwrap().keys().collect::<Vec<_>>();
            assert_eq!(fields, ["data", "event", "id", "occurred_at"], "{body}");
            instant(body["occurred_at"].as_str().unwrap());
            assert_eq!(delivery.request_line, "POST /hooks HTTP/1.1");
            assert_eq!(delivery.header("content-type"), "application/json");
            assert_eq!(delivery.header("x-event"), body["event"]);
            assert_eq!(delivery.delivery(), body["id"]);
            let agent = "shop-webhooks/1.0 (+https://docs.shop.example)";
            assert_eq!(delivery.header("user-agent"), agent);
            delivery.is_signed_by(&hook.secret).await;
            let text = String::from_utf8_lossy(&delivery.body);
            assert!(
                !text.contains("buyer") && !text.contains("Żak"),
                "no buyer's data: {text}"
            );
        }
        let history = world.history(&own.token, &hook.id).await;
        assert_eq!(history.len(), arrived.len(), "each arrived at its first attempt");
    }
}

#[tokio::test]
async fn everybody_hears_what_is_theirs_and_asked_for() {
    let world = World::with(PROGRAM, local_receivers).await;
    let (own, receiver) = (world.integration().await, Receiver::start().await);
    let (other, others) = (world.integration().await, Receiver::start().await);
    let hook = world.hook(&own.token, &receiver).await;
    let second = world.hook(&own.token, &receiver).await;
    let few = Receiver::start().await;
    world
        .subscribe_to(&own.token, &few.url, &["order.shipped"])
        .await
        .expect(201);
    world.hook(&other.token, &others).await;
    // One order of both sellers, paid: each hears of its own part.
    let (ours, theirs) = (
        world.any_offer(&own.seller, json!({})).await,
        world.any_offer(&other.seller, json!({})).await,
    );
    world
        .paid(
            &[line(&own.seller, &ours, 1), line(&other.seller, &theirs, 1)],
            json!({}),
        )
        .await;
    // One order of ours alone, which is shipped too.
    let order = world.paid_order(&own.trader()).await;
    world
        .ship(&own.token, &order.id, &parcel("0000000002"))
        .await
        .expect(201);
    let arrived = receiver.has(10).await;
    few.has(1).await;
    others.has(2).await;
    let ids = arrived
        .iter()
        .map(blackbox::Received::delivery)
        .collect::<std::collections::BTreeSet<_>>();
    assert_eq!(ids.len(), 10, "each subscription has deliveries of its own");
    for delivery in &arrived {
        let (mine, secret) = if world
            .history(&own.token, &hook.id)
            .await
            .iter()
            .any(|known| known["id"] == delivery.delivery())
        {
            (true, &hook.secret)
        } else {
            (false, &second.secret)
        };
        delivery.is_signed_by(secret).await;
        let other_secret = if mine { &second.secret } else { &hook.secret };
        assert_ne!(
            delivery.header("x-signature"),
            blackbox::signature(other_secret, &delivery.body).await
        );
    }
    assert_eq!((receiver.count(), few.count(), others.count()), (10, 1, 2));
}

#[tokio::test]
async fn a_delivery_is_told_from_its_queueing_on() {
    let world = World::with(PROGRAM, |options| {
        local_receivers(options).set("SELLER_API__SERVER__WORKERS", "none")
    })
    .await;
    let (own, receiver) = (world.integration().await, Receiver::start().await);
    let hook = world.hook(&own.token, &receiver).await;
    let offer = world.any_offer(&own.seller, json!({})).await;
    let order = world.unpaid(&[line(&own.seller, &offer, 1)], json!({})).await;
    let queued = world.delivery(&own.token, &hook.id).await;
    let created_at = instant(queued["created_at"].as_str().unwrap());
    let expected = json!({
        "id": queued["id"], "event": "order.created", "attempt": 0, "response_status": null, "duration_ms": null,
        "delivered_at": null, "next_retry_at": null, "created_at": queued["created_at"],
    });
    assert_eq!(queued, expected);
    let _worker = testkit::TestWorker::start(&world.options, &world.database);
    let arrived = receiver.hears("order.created").await;
    assert_eq!(arrived.json()["data"]["order_id"], order.id);
    let done = blackbox::eventually("the note of it", async || {
        let delivery = world.delivery(&own.token, &hook.id).await;
        (delivery["attempt"] == 1).then_some(delivery)
    })
    .await;
    let delivered_at = instant(done["delivered_at"].as_str().unwrap());
    assert!(delivered_at >= created_at);
    assert_eq!(
        (&done["response_status"], &done["next_retry_at"]),
        (&json!(204), &Value::Null)
    );
    assert!(done["duration_ms"].as_i64().is_some_and(|ms| ms >= 0));
    assert_eq!(done["id"], arrived.delivery());
    let some = world
        .get(
            &own.token,
            &format!("/v1/webhooks/{}/deliveries?fields=attempt", hook.id),
        )
        .await;
    assert_eq!(
        some.expect(200).json(),
        json!({"items": [{"id": done["id"], "attempt": 1}]})
    );
}

#[tokio::test]
async fn the_last_hundred_are_kept_in_view_newest_first() {
    let world = World::with(PROGRAM, local_receivers).await;
    let (own, receiver) = (world.integration().await, Receiver::start().await);
    world
        .subscribe_to(&own.token, &receiver.url, &["order.created"])
        .await
        .expect(201);
    let hook = world.get(&own.token, "/v1/webhooks").await.json()["items"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let offer = world.any_offer(&own.seller, json!({"stock": 1_000})).await;
    for _ in 0..103 {
        world.unpaid(&[line(&own.seller, &offer, 1)], json!({})).await;
    }
    receiver.has(103).await;
    let history = world.history(&own.token, &hook).await;
    assert_eq!(history.len(), 100);
    let times = history
        .iter()
        .map(|delivery| instant(delivery["created_at"].as_str().unwrap()));
    assert!(
        times
            .clone()
            .zip(times.skip(1))
            .all(|(newer, older)| newer >= older)
    );
    let ids = receiver
        .received()
        .iter()
        .map(|delivery| delivery.delivery().to_owned())
        .collect::<std::collections::HashSet<_>>();
    assert_eq!(ids.len(), 103, "each once");
}
