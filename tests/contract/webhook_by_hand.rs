//! Test events and redeliveries that an application asks for (contract: POST …/test, POST …/redelivery).

use blackbox::{
    Expect, HOOK_SCOPES, Receiver, Reply, TRADE_EVENTS, World, assert_members, eventually, keyed, merged,
    soon_again, text,
};
use chrono::TimeDelta;
use serde_json::{Value, json};
use testkit::Answer;
use uuid::Uuid;

use crate::{PROGRAM, idempotency_keys::replays, world_of_hooks};

#[tokio::test]
async fn a_test_event_is_a_sample_of_a_subscribed_event() {
    let world = world_of_hooks(&[]).await;
    let (own, receiver) = (world.integration().await, Receiver::start().await);
    let events = ["order.paid", "offer.rejected", "connection.ended"];
    let hook = world.subscription(&own.token, &receiver.url, &events).await;
    let (id, secret) = (text(&hook, "id"), text(&hook, "secret"));
    let test = |body: &Value| world.testing(&own.token, &id).json(body).send();
    let without_body = world.testing(&own.token, &id).send().await;
    let rejected = json!({"event": "offer.rejected"});
    let ended = json!({"event": "connection.ended"});
    for (answer, event, about) in [
        (without_body, "order.paid", "order_id"),
        (test(&json!({})).await, "order.paid", "order_id"),
        (test(&rejected).await, "offer.rejected", "offer_id"),
        (test(&ended).await, "connection.ended", ""),
    ] {
        let made = answer.expect(201).json();
        assert_members(&made, json!({"event": event, "attempt": 0, "failure": null}));
        let delivery = text(&made, "id");
        let is_it = |arrived: &testkit::Received| arrived.delivery() == delivery;
        let find = async || receiver.received().into_iter().find(is_it);
        let arrived = eventually("the test event", find).await;
        arrived.is_signed_by(&secret).await;
        let data = &arrived.json()["data"];
        assert_eq!((&data["test"], &data[about]), (&json!(true), &made[about]));
        let one = format!("/v1/webhooks/{id}/deliveries/{delivery}");
        let one = world.read(&own.token, &one).await;
        assert_eq!((one["event"].as_str(), &one[about]), (Some(event), &made[about]));
    }
    for (body, path) in [
        (json!({"event": "order.shipped"}), "event"),
        (json!({"event": "order.lost"}), "event"),
        (json!({"event": null}), "event"),
        (json!({"url": receiver.url}), "url"),
    ] {
        test(&body).await.invalid(path);
    }
    let other = world.integration_of(own.seller.clone()).await;
    let strangers = world.testing(&other.token, &id).send().await;
    strangers.refused(404, "not_found");
    assert_eq!(receiver.count(), 4);
}

/// The limits are shared with the panel: see `webhook_panel`.
#[tokio::test]
async fn both_are_limited_by_the_clock_minute_and_only_what_is_queued_counts() {
    let world = world_of_hooks(&[("SERVER__WORKERS", "none")]).await;
    let clock = world.stop_clock("2026-03-01T12:00:25Z").await;
    let (own, _, hook) = world.subscribed().await;
    world.any_order(&own.seller).await;
    let delivery = text(&world.delivery(&own.token, &hook.id).await, "id");
    let test = || world.testing(&own.token, &hook.id);
    let again = |delivery: &str| world.redelivering(&own.token, &hook.id, delivery);
    let lost = json!({"event": "order.lost"});
    let one_test = async || test().send().await;
    let one_again = async || again(&delivery).send().await;
    let no_test = async || test().json(&lost).send().await;
    let none_again = async || again(&Uuid::nil().to_string()).send().await;
    let replayed = [
        keyed(test(), "t").send().await.expect(201),
        keyed(again(&delivery), "r").send().await.expect(200),
    ];
    for _ in 0..31 {
        no_test().await.invalid("event");
        none_again().await.refused(404, "not_found");
        replays(&replayed[0], &keyed(test(), "t").send().await);
        replays(&replayed[1], &keyed(again(&delivery), "r").send().await);
    }
    for _ in 1..10 {
        one_test().await.expect(201);
    }
    for _ in 1..30 {
        one_again().await.expect(200);
    }
    let limited = |answer: Answer, limit: &str| {
        answer.refused(429, "rate_limited");
        let message = text(&answer.json()["errors"][0], "message");
        let said = format!("this subscription reached: {limit} a minute");
        assert!(message.contains(&said), "{message}");
        assert_eq!(answer.must("retry-after"), "35");
        assert_eq!(answer.must("x-ratelimit-limit"), "1000000");
        assert!(answer.number("x-ratelimit-remaining") > 0);
    };
    limited(one_test().await, "10");
    limited(one_again().await, "30");
    // Another subscription has its own limits.
    let other = world.hook(&own.token, &Receiver::start().await).await;
    let elsewhere = world.testing(&own.token, &other.id);
    elsewhere.send().await.expect(201);
    clock.advance(TimeDelta::seconds(35)).await;
    one_test().await.expect(201);
    one_again().await.expect(200);
}

#[tokio::test]
async fn a_redelivery_has_the_same_id_and_body_and_the_whole_schedule() {
    let world = World::with(PROGRAM, soon_again).await;
    let (own, receiver, hook) = world.subscribed().await;
    world.any_order(&own.seller).await;
    let delivered = world.attempted(&own.token, &hook, 1).await;
    let id = text(&delivered, "id");
    let reset = json!({
        "attempt": 0, "delivered_at": null, "response_status": null, "failure": null, "duration_ms": null,
        "next_retry_at": null,
    });
    // After success; then after exhaustion.
    for (reply, attempts, status) in [(Reply::Status(500), 6, 500), (Reply::Status(204), 1, 204)] {
        let before = receiver.count();
        receiver.answers(reply);
        let again = world.redelivering(&own.token, &hook.id, &id).send().await;
        let again = again.expect(200).json();
        assert_eq!(again, merged(delivered.clone(), reset.clone()));
        let ended = world.attempted(&own.token, &hook, attempts).await;
        assert_members(
            &ended,
            json!({"response_status": status, "created_at": delivered["created_at"]}),
        );
        assert_eq!(receiver.count() - before, usize::from(attempts));
    }
    let arrived = receiver.received();
    for one in &arrived {
        assert_eq!((one.delivery(), &one.body), (id.as_str(), &arrived[0].body));
        one.is_signed_by(&hook.secret).await;
    }
    assert_eq!(world.history(&own.token, &hook.id).await.len(), 1);
    let path = format!(
        "/v1/webhooks/{}/deliveries/{id}/redelivery?fields=attempt",
        hook.id
    );
    let some = world.at("POST", &path).bearer(&own.token).send().await;
    assert_eq!(some.expect(200).json(), json!({"id": id, "attempt": 0}));
    let with_field = world
        .redelivering(&own.token, &hook.id, &id)
        .json(&json!({"event": null}));
    with_field.send().await.refused(400, "validation_error");
    let id = id.as_str();
    for (subscription, delivery) in [(hook.id.as_str(), "x"), ("x", id), (id, id)] {
        let answer = world.redelivering(&own.token, subscription, delivery);
        answer.send().await.refused(404, "not_found");
    }
    let other = world.integration_of(own.seller.clone()).await;
    let strangers = world.redelivering(&other.token, &hook.id, id).send().await;
    strangers.refused(404, "not_found");
}

#[tokio::test]
async fn a_delivery_that_waits_is_due_now_and_keeps_its_attempts() {
    let world = world_of_hooks(&[]).await;
    let (own, receiver, hook) = world.subscribed().await;
    receiver.answers_first(&[Reply::Status(500)]);
    world.any_order(&own.seller).await;
    let waits = world.attempted(&own.token, &hook, 1).await;
    let again = world.redelivering(&own.token, &hook.id, &text(&waits, "id"));
    let again = again.send().await.expect(200).json();
    let expected = json!({"attempt": 1, "response_status": 500, "failure": "status"});
    assert_members(&again, expected);
    assert!(
        again["next_retry_at"].as_str() < waits["next_retry_at"].as_str(),
        "{again}"
    );
    // Its retry would have been a minute later.
    let delivered = world.attempted(&own.token, &hook, 2).await;
    assert!(delivered["delivered_at"].is_string(), "{delivered}");
    assert_eq!(receiver.count(), 2);
    // As if the worker had been lost during the last attempt.
    let lost = "update deliveries set attempt = 6, delivered_at = null, response_status = null, \
        failure = 'worker_lost'";
    world.execute(lost).await;
    let ended = world.delivery(&own.token, &hook.id).await;
    assert_members(&ended, json!({"attempt": 6, "failure": "sender_lost"}));
}

#[tokio::test]
async fn a_delivery_under_way_is_409_until_its_attempt_has_ended() {
    let world = world_of_hooks(&[]).await;
    let (own, receiver, hook) = world.subscribed().await;
    receiver.answers_first(&[Reply::Held(204)]);
    world.any_order(&own.seller).await;
    let id = receiver.has(1).await[0].delivery().to_owned();
    let again = || world.redelivering(&own.token, &hook.id, &id).send();
    again().await.refused(409, "delivery_in_progress");
    receiver.lets_go();
    let ended = world.attempted(&own.token, &hook, 1).await;
    assert!(ended["delivered_at"].is_string(), "{ended}");
    again().await.expect(200);
    receiver.has(2).await;
    world.attempted(&own.token, &hook, 1).await;
}

#[tokio::test]
async fn a_redelivery_of_an_old_delivery_is_sent_at_once() {
    let world = world_of_hooks(&[("OAUTH__ACCESS_TOKEN_TTL", "30d")]).await;
    let clock = world.database.control_clock().await;
    let (own, receiver, hook) = world.subscribed().await;
    world.any_order(&own.seller).await;
    let delivered = world.attempted(&own.token, &hook, 1).await;
    clock.advance(TimeDelta::days(20)).await;
    let again = world.redelivering(&own.token, &hook.id, &text(&delivered, "id"));
    again.send().await.expect(200);
    receiver.has(2).await;
}

/// The application is connected again, which its subscription does not survive.
#[tokio::test]
async fn a_subscription_that_a_disconnection_has_ended_is_inactive() {
    let world = world_of_hooks(&[]).await;
    let mut member = world.member().await;
    let receiver = Receiver::start().await;
    let partner = world.partner(&world.seller().await, &HOOK_SCOPES).await;
    let scope = HOOK_SCOPES.join(" ");
    let pair = world.pair(&mut member.browser, &partner, &scope).await;
    let hook = world.hook(&pair.access, &receiver).await.id;
    world.any_order(&member.seller).await;
    let delivery = world.attempted(&pair.access, &hook, 1).await;
    member.browser.disconnect(&partner.client_id).await;
    let token = world.pair(&mut member.browser, &partner, &scope).await.access;
    for request in [
        world.changing(&token, &hook, &json!({"events": ["order.paid"]})),
        world.testing(&token, &hook),
        world.redelivering(&token, &hook, &text(&delivery, "id")),
        world
            .at("POST", &format!("/v1/webhooks/{hook}/secret-rotation"))
            .bearer(&token),
    ] {
        request.send().await.refused(409, "webhook_inactive");
    }
    let present = world.read(&token, &format!("/v1/webhooks/{hook}")).await;
    assert_members(&present, json!({"active": false, "events": TRADE_EVENTS}));
    world.unsubscribe(&token, &hook).await.expect(204);
}
