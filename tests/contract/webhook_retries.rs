//! Failed deliveries: when they are retried, and when no more (contract: Retries).

use std::time::Duration;

use blackbox::{Receiver, Reply, assert_members, text};
use chrono::TimeDelta;
use serde_json::json;
use tokio::net::TcpSocket;

use crate::{instant, world_of_hooks};

/// The contract's delays, in seconds.
const DELAYS: [i64; 5] = [60, 300, 1_800, 7_200, 43_200];

#[tokio::test]
async fn a_failed_delivery_is_attempted_six_times_at_the_contracts_intervals() {
    // The token is valid for longer than 14.5 hours.
    let world = world_of_hooks(&[("OAUTH__ACCESS_TOKEN_TTL", "30d")]).await;
    let clock = world.database.control_clock().await;
    let (own, receiver, hook) = world.subscribed().await;
    receiver.answers(Reply::Status(500));
    // At another receiver the sixth attempt succeeds. The reply that hangs up is first: over a reused
    // connection, an attempt would try once more.
    let late = Receiver::start().await;
    let late_hook = world.hook(&own.token, &late).await;
    let failures = [500, 404, 429, 503].map(Reply::Status);
    late.answers_first(&[&[Reply::HangUp], &failures[..]].concat());
    world.any_order(&own.seller).await;
    for (number, delay) in (1_u8..).zip(DELAYS) {
        let begun = clock.now().await - TimeDelta::seconds(20);
        let delivery = world.attempted(&own.token, &hook.id, number).await;
        let lately = world.attempted(&own.token, &late_hook.id, number).await;
        let failure = if number == 1 { "protocol" } else { "status" };
        assert_members(&lately, json!({"failure": failure, "delivered_at": null}));
        assert_members(&delivery, json!({"response_status": 500, "delivered_at": null}));
        assert!(delivery["duration_ms"].is_i64());
        let next = instant(&text(&delivery, "next_retry_at"));
        let (least, most) = (TimeDelta::seconds(delay), TimeDelta::milliseconds(delay * 1_100));
        let now = clock.now().await;
        assert!(next >= begun + least && next <= now + most, "{delivery} at {now}");
        assert_eq!([&receiver, &late].map(Receiver::count), [usize::from(number); 2]);
        clock.advance(most + TimeDelta::seconds(1)).await;
    }
    let last = world.attempted(&own.token, &hook.id, 6).await;
    let exhausted = json!({"delivered_at": null, "next_retry_at": null, "response_status": 500});
    assert_members(&last, exhausted);
    let delivered = world.attempted(&own.token, &late_hook.id, 6).await;
    assert_members(&delivered, json!({"next_retry_at": null, "response_status": 204}));
    assert!(delivered["delivered_at"].is_string(), "{delivered}");
    clock.advance(TimeDelta::days(2)).await;
    // Later events are delivered, which shows that the queue was checked since.
    receiver.answers(Reply::Status(200));
    world.any_order(&own.seller).await;
    late.has(7).await;
    let arrived = receiver.has(7).await;
    let (first, later) = arrived.split_at(6);
    assert_ne!(later[0].delivery(), first[0].delivery());
    for repeat in first {
        assert_eq!(repeat.body, first[0].body, "the same bytes");
        for header in ["x-delivery-id", "x-signature", "x-event"] {
            assert_eq!(repeat.header(header), first[0].header(header));
        }
    }
    first[5].is_signed_by(&hook.secret).await;
    assert_eq!([&receiver, &late].map(Receiver::count), [7, 7]);
}

/// The URL of a port that nobody else gets, and on which nothing listens, as long as the socket lives.
pub(crate) fn unused_url() -> (TcpSocket, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/", socket.local_addr().unwrap());
    (socket, url)
}

#[tokio::test]
async fn a_failing_receiver_does_not_delay_deliveries_to_others() {
    let settings = [
        ("WEBHOOKS__ATTEMPT_TIMEOUT", "12s"),
        ("WEBHOOKS__CONCURRENCY", "32"),
    ];
    let world = world_of_hooks(&settings).await;
    let (dead, silent, hook) = world.subscribed().await;
    silent.answers(Reply::Silence);
    let many = "with made as (
            select seller_id, id, gen_random_uuid() as delivery
            from subscriptions, generate_series(1, 20000) where id::text = $1)
        insert into deliveries (seller_id, subscription_id, id, created_at, due_at, event, body)
        select seller_id, id, delivery, now(), now(), 'order.paid', convert_to(json_build_object(
            'id', delivery, 'event', 'order.paid', 'occurred_at', '2026-03-01T12:00:00.000000Z',
            'data', json_build_object('order_id', delivery, 'order_number', 'ZAM-1-1', 'seller_id', seller_id, 'event_id', delivery))::text, 'UTF8')
        from made returning 1";
    let database = world.database.connect().await;
    assert_eq!(database.query(many, &[&hook.id]).await.unwrap().len(), 20_000);
    // The next event wakes the queue.
    world.any_order(&dead.seller).await;
    silent.has(1).await;
    let (alive, receiver, _) = world.subscribed().await;
    let mut delays = Vec::new();
    for n in 1..=20 {
        world.any_order(&alive.seller).await;
        let begun = std::time::Instant::now();
        let arrived = receiver.has(n).await;
        delays.push(arrived[n - 1].at.saturating_duration_since(begun));
    }
    // But for a few, since the machine runs other tests too. A single attempt at the dead receiver takes longer.
    delays.sort();
    assert!(delays[16] < Duration::from_secs(10), "{delays:?}");
    assert!(silent.most_at_once() <= 16, "{} at once", silent.most_at_once());
}
