//! The database's clock steps back while the service runs: used-up minutes stay used up, and due work waits.

use blackbox::{Expect, World, until};
use chrono::TimeDelta;
use serde_json::{Value, json};
use testkit::{TestWorker, instant};

use crate::{PROGRAM, deliveries::without_workers, world};

#[tokio::test]
async fn a_minute_that_comes_twice_has_one_window_and_others_have_theirs() {
    let world = world().await;
    let clock = world.stop_clock("2040-01-01T12:00:30Z").await;
    let seller = world.seller().await;
    let application = world.application(&seller, &["offers:read"]).await;
    let limit = json!({"rate_limit": 3});
    world.adjust(&application.client_id, &limit).await.expect(200);
    let token = world.token(&application).await;
    let me = async |at: &str| {
        clock.freeze(instant(at)).await;
        world.get(&token, "/v1/me").await
    };
    let uses_up = async |at: &str| {
        for left in [2, 1, 0] {
            let answer = me(at).await.expect(200);
            assert_eq!(answer.number("x-ratelimit-remaining"), left, "{at}");
        }
    };
    let is_refused = async |at: &str, wait: &str| {
        let answer = me(at).await;
        answer.refused(429, "rate_limited");
        assert_eq!(answer.must("retry-after"), wait, "{at}");
    };
    for at in ["2040-01-01T12:00:30Z", "2040-01-01T12:01:30Z"] {
        uses_up(at).await;
        is_refused(at, "30").await;
    }
    // An hour earlier none of that counts; that minute has a separate count.
    uses_up("2040-01-01T11:00:30Z").await;
    is_refused("2040-01-01T11:00:30Z", "30").await;
    uses_up("2040-01-01T11:01:00Z").await;
    // Used-up minutes are still used up when they come again, each until its end, as `Retry-After` says.
    is_refused("2040-01-01T12:00:00Z", "60").await;
    is_refused("2040-01-01T12:01:00Z", "60").await;
    uses_up("2040-01-01T12:02:00Z").await;
}

#[tokio::test]
async fn a_delivery_that_is_due_in_time_to_come_waits_for_it_and_holds_up_no_other() {
    let world = World::with(PROGRAM, without_workers).await;
    let clock = world.database.control_clock().await;
    let (own, receiver, hook) = world.subscribed().await;
    let early = world.any_order(&own.seller).await;
    clock.advance(TimeDelta::hours(-1)).await;
    let _worker = TestWorker::start(&world.options, &world.database);
    let mut arrived = 0;
    for _ in 0..3 {
        let late = world.any_order(&own.seller).await;
        arrived += 1;
        let last = receiver.has(arrived).await.pop().unwrap();
        assert_eq!(last.json()["data"]["order_id"], late.id);
    }
    let waits = world.history(&own.token, &hook.id).await;
    let is_waiting = |delivery: &&Value| delivery["delivered_at"].is_null();
    assert_eq!(waits.len(), 4);
    until("the record of what has arrived", async || {
        let history = world.history(&own.token, &hook.id).await;
        history.iter().filter(is_waiting).count() == 1
    })
    .await;
    clock.advance(TimeDelta::hours(1)).await;
    let last = receiver.has(arrived + 1).await.pop().unwrap();
    assert_eq!(last.json()["data"]["order_id"], early.id);
    until("the end of the deliveries", async || {
        world.waiting(&hook.id).await == 0
    })
    .await;
    assert_eq!(receiver.count(), 4, "each came once");
}
