//! Failed deliveries: what counts as a failure, when it is retried, and when no more (contract: Retries).

use std::time::Duration;

use blackbox::{EVENTS, Receiver, Reply, World, local_receivers, soon_again, text};
use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::{PROGRAM, instant, set};

/// The contract's delays, in seconds.
const DELAYS: [i64; 5] = [60, 300, 1_800, 7_200, 43_200];

async fn world_with(settings: &[(&str, &str)]) -> World {
    World::with(PROGRAM, |options| set(local_receivers(options), settings)).await
}

#[tokio::test]
async fn six_attempts_at_the_contracts_distances_and_no_seventh() {
    // The token is valid for longer than 14.5 hours.
    let world = world_with(&[("OAUTH__ACCESS_TOKEN_TTL", "30d")]).await;
    let clock = world.database.control_clock().await;
    let (own, receiver, hook) = world.subscribed().await;
    receiver.answers(Reply::Status(500));
    world.any_order(&own.seller).await;
    for (number, delay) in (1_u8..).zip(DELAYS) {
        let begun = clock.now().await - TimeDelta::seconds(20);
        let delivery = world.attempted(&own.token, &hook.id, number).await;
        assert_eq!(delivery["response_status"], 500);
        assert_eq!(delivery["delivered_at"], Value::Null);
        assert!(delivery["duration_ms"].is_i64());
        let next = instant(&text(&delivery, "next_retry_at"));
        let (least, most) = (TimeDelta::seconds(delay), TimeDelta::milliseconds(delay * 1_100));
        let now = clock.now().await;
        assert!(next >= begun + least && next <= now + most, "{delivery} at {now}");
        assert_eq!(receiver.count(), usize::from(number));
        clock.advance(most + TimeDelta::seconds(1)).await;
    }
    let last = world.attempted(&own.token, &hook.id, 6).await;
    let times = [&last["delivered_at"], &last["next_retry_at"]];
    assert_eq!(times, [&Value::Null; 2], "exhausted");
    assert_eq!(last["response_status"], 500);
    clock.advance(TimeDelta::days(2)).await;
    // Later events are delivered, which shows that the queue was checked since.
    receiver.answers(Reply::Status(200));
    world.any_order(&own.seller).await;
    let arrived = receiver.has(7).await;
    let (told, news) = arrived.split_at(6);
    assert_ne!(news[0].delivery(), told[0].delivery());
    for repeat in told {
        assert_eq!(repeat.body, told[0].body, "the same bytes");
        for header in ["x-delivery-id", "x-signature", "x-event"] {
            assert_eq!(repeat.header(header), told[0].header(header));
        }
    }
    told[5].is_signed_by(&hook.secret).await;
    assert_eq!(receiver.count(), 7);
}

#[tokio::test]
async fn any_success_ends_it_and_nothing_else_does() {
    let world = world_with(&[("WEBHOOKS__ATTEMPT_TIMEOUT", "1s")]).await;
    let own = world.integration().await;
    let mut hooks = Vec::new();
    for (reply, status) in [
        (Reply::Status(200), Some(200)),
        (Reply::Status(201), Some(201)),
        (Reply::Status(299), Some(299)),
        (Reply::Status(301), Some(301)),
        (Reply::Redirect, Some(307)),
        (Reply::Status(400), Some(400)),
        (Reply::Status(410), Some(410)),
        (Reply::Status(503), Some(503)),
        (Reply::HangUp, None),
        (Reply::Silence, None),
    ] {
        let receiver = Receiver::start().await;
        receiver.answers(reply);
        let hook = world.hook(&own.token, &receiver).await.id;
        hooks.push((hook, Some(receiver), status));
    }
    // Nothing listens on this port.
    let gone = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let url = format!("http://{gone}/");
    let nobody = world.subscription(&own.token, &url, &EVENTS).await;
    hooks.push((text(&nobody, "id"), None, None));
    world.any_order(&own.seller).await;
    for (hook, receiver, status) in &hooks {
        let delivery = world.attempted(&own.token, hook, 1).await;
        assert_eq!(delivery["response_status"], json!(status), "{delivery}");
        let delivered = status.is_some_and(|status| (200..300).contains(&status));
        assert_eq!(delivery["delivered_at"].is_string(), delivered, "{delivery}");
        assert_eq!(delivery["next_retry_at"].is_string(), !delivered, "{delivery}");
        if let Some(receiver) = receiver {
            assert!(delivery["duration_ms"].is_i64(), "{delivery}");
            assert_eq!(
                receiver.count(),
                1,
                "{status:?}: one attempt, and no redirect is followed"
            );
        }
    }
}

#[tokio::test]
async fn the_sixth_attempt_may_still_succeed() {
    let world = World::with(PROGRAM, soon_again).await;
    let (own, receiver, hook) = world.subscribed().await;
    // The reply that hangs up is first: over a reused connection, an attempt would try once more.
    receiver.answers_first(&[
        Reply::HangUp,
        Reply::Status(500),
        Reply::Redirect,
        Reply::Status(404),
        Reply::Status(429),
    ]);
    world.any_order(&own.seller).await;
    let delivery = world.attempted(&own.token, &hook.id, 6).await;
    let ended = delivery["delivered_at"].is_string() && delivery["next_retry_at"].is_null();
    assert!(ended, "{delivery}");
    assert_eq!(delivery["response_status"], 204);
    let arrived = receiver.has(6).await;
    for (earlier, later) in arrived.iter().zip(&arrived[1..]) {
        let pause = later.at - earlier.at;
        assert!(pause >= Duration::from_millis(100), "not before it is due");
    }
    assert_eq!(receiver.count(), 6);
}

#[tokio::test]
async fn a_receiver_that_fails_holds_up_nobody_else() {
    let world = world_with(&[
        ("WEBHOOKS__ATTEMPT_TIMEOUT", "3s"),
        ("WEBHOOKS__CONCURRENCY", "32"),
    ])
    .await;
    let (dead, silent, hook) = world.subscribed().await;
    silent.answers(Reply::Silence);
    let many = "with made as (
            select seller_id, id, gen_random_uuid() as delivery
            from subscriptions, generate_series(1, 20000) where id::text = $1)
        insert into deliveries (seller_id, subscription_id, id, created_at, due_at, event, body)
        select seller_id, id, delivery, now(), now(), 'order.paid', convert_to(json_build_object(
            'id', delivery, 'event', 'order.paid', 'occurred_at', '2026-03-01T12:00:00.000000Z',
            'data', json_build_object('order_id', delivery, 'order_number', 'ZAM-1-1'))::text, 'UTF8')
        from made returning 1";
    let database = world.database.connect().await;
    assert_eq!(database.query(many, &[&hook.id]).await.unwrap().len(), 20_000);
    // The next event wakes the queue.
    world.any_order(&dead.seller).await;
    silent.has(1).await;
    let (alive, receiver, _) = world.subscribed().await;
    for n in 1..=20 {
        let begun = std::time::Instant::now();
        world.any_order(&alive.seller).await;
        let arrived = receiver.has(n).await;
        let delay = arrived[n - 1].at - begun;
        // Generous, since the machine runs other tests too. A single attempt at the dead receiver takes longer.
        assert!(delay < Duration::from_millis(2_500), "{delay:?} at event {n}");
    }
    assert!(silent.most_at_once() <= 16, "{} at once", silent.most_at_once());
}
