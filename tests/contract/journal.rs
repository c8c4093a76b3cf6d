//! `GET /v1/events`: the events of the webhooks, in one order, by cursor.

use std::time::{Duration, Instant};

use blackbox::{
    Expect, Received, Trader, World, all_invalid, at_once, items, line, once_each, parcel, text, whole,
};
use chrono::{DateTime, SecondsFormat, TimeDelta};
use serde_json::{Value, json};
use testkit::ServerOptions;
use tokio::task::JoinSet;

use crate::{PROGRAM, world_of_consent, world_of_hooks, world_of_trade, world_with};

async fn page(world: &World, token: &str, query: &str) -> Value {
    world.read(token, &format!("/v1/events{query}")).await
}

/// All events after a cursor, by pages of this size, and the cursor behind them.
async fn rest(world: &World, token: &str, after: &str, limit: usize) -> (Vec<Value>, String) {
    let (mut events, mut cursor) = (Vec::new(), after.to_owned());
    loop {
        let page = page(world, token, &format!("?limit={limit}&after={cursor}")).await;
        cursor = text(&page, "cursor");
        events.extend_from_slice(items(&page));
        if page["has_more"] == false {
            return (events, cursor);
        }
    }
}

fn names(events: &[Value]) -> Vec<String> {
    events.iter().map(|event| text(event, "event")).collect()
}

/// An order with these fields is paid and shipped, and an offer rejected. Returns their events in order.
async fn trade(world: &World, trader: &Trader, changes: Value) -> [&'static str; 4] {
    let offer = world.any_offer(&trader.seller, json!({})).await;
    let order = world.paid(&[line(&trader.seller, &offer, 1)], changes).await;
    world.shipped(&trader.token, &order.id, &parcel("AAAA1")).await;
    world.moderate(&trader.seller, &offer, "reject").await;
    ["order.created", "order.paid", "order.shipped", "offer.rejected"]
}

#[tokio::test]
async fn the_journal_has_what_webhooks_deliver() {
    let world = world_of_hooks(&[]).await;
    let (own, receiver, _) = world.subscribed().await;
    let trader = own.trader();
    let before = text(&page(&world, &trader.token, "").await, "cursor");
    // Test orders are in no list, but in the journal.
    let expected = trade(&world, &trader, json!({"is_test": true})).await;
    let arrived = receiver.has(expected.len()).await;
    let (events, _) = rest(&world, &trader.token, &before, 200).await;
    assert_eq!(names(&events), expected);
    let of_delivery = |event: &Value| {
        let is_of = |body: &Value| body["data"]["event_id"] == event["id"];
        arrived.iter().map(Received::json).find(is_of)
    };
    for event in &events {
        let delivered = of_delivery(event).unwrap();
        for field in ["event", "occurred_at", "data"] {
            assert_eq!(event[field], delivered[field], "{event} {delivered}");
        }
    }
    // Nobody else has them.
    let stranger = world.trader().await;
    assert_eq!(items(&page(&world, &stranger.token, "").await).len(), 0);
    let query = format!("/v1/events?after={before}");
    world.get(&stranger.token, &query).await.invalid("after");
}

#[tokio::test]
async fn a_cursor_is_a_place_in_the_whole_journal() {
    let (world, trader, _) = world_of_trade().await;
    let first = page(&world, &trader.token, "").await;
    assert_eq!((&first["items"], &first["has_more"]), (&json!([]), &json!(false)));
    let expected = trade(&world, &trader, json!({})).await;
    let all = rest(&world, &trader.token, &text(&first, "cursor"), 200).await;
    assert_eq!(names(&all.0), expected);
    for limit in [1, 2, 3] {
        let pages = rest(&world, &trader.token, &text(&first, "cursor"), limit).await;
        assert_eq!(pages.0, all.0);
    }
    let from_the_oldest = page(&world, &trader.token, "?limit=1000").await;
    assert_eq!(items(&from_the_oldest), all.0);
    // Scopes and fields may change between calls; what may not be seen is passed over.
    let token = async |scopes: &[&str]| world.personal_token(&trader.seller, scopes).await.token;
    let (offers, orders) = (token(&["offers:read"]).await, token(&["orders:read"]).await);
    let seen = page(&world, &offers, "?limit=1&fields=event").await;
    assert_eq!(
        seen["items"],
        json!([{"id": all.0[3]["id"], "event": "offer.rejected"}])
    );
    assert_eq!(seen["has_more"], false);
    let after = format!("?after={}", text(&seen, "cursor"));
    assert_eq!(page(&world, &orders, &after).await["items"], json!([]));
    assert_eq!(names(items(&page(&world, &orders, "").await)), expected[..3]);
    let none = token(&["settings:read"]).await;
    let refused = world.get(&none, "/v1/events").await;
    refused.is_problem(403, &[whole("insufficient_scope")]);
    assert!(refused.must("www-authenticate").contains("orders:read"));
    let cursor = text(&first, "cursor");
    let table = format!(
        "after=x                                     => after
         after={cursor}x                             => after
         after={cursor}&since=2026-01-01T00:00:00Z   => since
         since=2001-01-01T00:00:00Z                  => since
         since=yesterday                             => since
         wait=x                                      => wait
         limit=x                                     => limit
         fields=number                               => fields"
    );
    let ask = async |query: &str| world.get(&trader.token, &format!("/v1/events?{query}")).await;
    all_invalid(&table, ask).await;
}

#[tokio::test]
async fn since_begins_with_the_first_event_recorded_then() {
    let (world, trader, _) = world_of_trade().await;
    trade(&world, &trader, json!({})).await;
    // An event may have been recorded before the time, and committed after it.
    let now = text(&page(&world, &trader.token, "").await["items"][3], "occurred_at");
    let since = async || page(&world, &trader.token, &format!("?since={now}")).await;
    assert_eq!(items(&since().await).len(), 4);
    let earlier = "update journal set recorded_at = recorded_at - interval '1 minute' where number < 4";
    world.execute(earlier).await;
    assert_eq!(names(items(&since().await)), ["offer.rejected"]);
    let soon = (DateTime::parse_from_rfc3339(&now).unwrap() + TimeDelta::seconds(20)).to_utc();
    let soon = soon.to_rfc3339_opts(SecondsFormat::Micros, true);
    let future = page(&world, &trader.token, &format!("?since={soon}")).await;
    assert_eq!(future["items"], json!([]));
    let expected = trade(&world, &trader, json!({})).await;
    let (later, _) = rest(&world, &trader.token, &text(&future, "cursor"), 200).await;
    assert_eq!(names(&later), expected);
}

/// D142.
#[tokio::test]
async fn who_waits_for_a_journal_holds_no_connection_that_others_need() {
    let world = world_with(&[("DATABASE__POOL_SIZE", "8")]).await;
    let (one, other) = (world.seller().await, world.seller().await);
    let offer = world.any_offer(&one, json!({"stock": 20})).await;
    let mut orders = Vec::new();
    for _ in 0..20 {
        orders.push(world.unpaid(&[line(&one, &offer, 1)], json!({})).await.id);
    }
    let others = world.any_order(&other).await;
    let lock = format!("select from journals where seller_id = '{}' for update", one.id);
    let held = world.open_transaction(&lock).await;
    let pay = |order: &String| world.office(reqwest::Method::POST, &format!("/orders/{order}/payment"));
    let paying = tokio::spawn(once_each(orders.iter().map(pay).collect::<Vec<_>>()));
    world.waiters(2).await;
    world.order_moved(&others.id, "payment").await;
    for answer in paying.await.unwrap() {
        answer.must("retry-after");
        answer.refused(500, "internal_error");
    }
    drop(held);
    for answer in at_once(orders.iter().map(pay)).await {
        answer.expect(200);
    }
}

#[tokio::test]
async fn places_that_are_lost_or_no_longer_kept_are_refused() {
    let (world, trader, _) = world_of_trade().await;
    trade(&world, &trader, json!({})).await;
    let begin = page(&world, &trader.token, "?limit=1").await;
    let second = format!("/v1/events?after={}", text(&begin, "cursor"));
    let ask = async || world.get(&trader.token, &second).await;
    ask().await.expect(200);
    // Another event has the number.
    world
        .execute("update journal set id = gen_random_uuid() where number = 1")
        .await;
    ask().await.invalid("after");
    world.execute("delete from journal where number = 1").await;
    ask().await.expect(200);
    world.execute("delete from journal where number = 2").await;
    ask().await.invalid("after");
}

#[tokio::test]
async fn events_are_kept_for_the_configured_time() {
    let world = world_with(&[("RETENTION__EVENTS", "1s")]).await;
    let trader = world.trader().await;
    let begin = text(&page(&world, &trader.token, "").await, "cursor");
    trade(&world, &trader, json!({})).await;
    let events = "select count(*) from journal";
    world.until_count("the events are cleared", events, &[], 0).await;
    let late = world
        .get(&trader.token, &format!("/v1/events?after={begin}"))
        .await;
    late.invalid("after");
    let message = text(&late.json()["errors"][0], "message");
    assert!(message.contains("`since`"), "{message}");
    assert_eq!(page(&world, &trader.token, "").await["items"], json!([]));
}

#[tokio::test]
async fn a_request_waits_for_an_event_and_few_wait_at_once() {
    let world = World::with(PROGRAM, ServerOptions::in_one_process).await;
    let trader = world.trader().await;
    let cursor = text(&page(&world, &trader.token, "").await, "cursor");
    let waiting = |method: &str| {
        let request = world.at(method, &format!("/v1/events?after={cursor}&wait=30"));
        request.bearer(&trader.token).send()
    };
    let began = Instant::now();
    let mut waiters: JoinSet<_> = (0..6).map(|_| waiting("GET")).collect();
    // Whoever comes sixth is answered at once, and so is HEAD.
    let sixth = waiters.join_next().await.unwrap().unwrap().expect(200);
    assert_eq!(sixth.json()["items"], json!([]));
    waiting("HEAD").await.expect(200);
    assert!(began.elapsed() < Duration::from_secs(15));
    world.any_order(&trader.seller).await;
    for answer in waiters.join_all().await {
        assert_eq!(names(items(&answer.expect(200).json())), ["order.created"]);
    }
    assert!(began.elapsed() >= Duration::from_secs(1) && began.elapsed() < Duration::from_secs(30));
    // Nothing comes: an empty page, and a cursor.
    let end = text(&page(&world, &trader.token, "").await, "cursor");
    let empty = page(&world, &trader.token, &format!("?wait=1&after={end}")).await;
    assert_eq!(empty["items"], json!([]));
    // A token that ends or loses its scope meanwhile gets nothing, not even an event.
    let short = world.personal_token(&trader.seller, &["orders:read"]).await;
    let app = world.application(&trader.seller, &["orders:read"]).await;
    let narrowed = world.token(&app).await;
    let waiters = [&short.token, &narrowed].map(|token| {
        let request = world.at("GET", &format!("/v1/events?wait=30&after={end}"));
        request.bearer(token)
    });
    let waiters = world.admitted_to_journal(waiters).await;
    world.revoke_personal(&trader.seller, &short).await;
    world.set_scopes(&app, &["messaging"]).await;
    world.any_order(&trader.seller).await;
    let refusals = [(401, "unauthorized"), (403, "insufficient_scope")];
    for (waiter, (status, code)) in waiters.into_iter().zip(refusals) {
        waiter.await.unwrap().refused(status, code);
    }
}

#[tokio::test]
async fn the_journal_has_a_limit_of_its_own_for_each_application_and_seller() {
    let world = world_of_consent().await;
    let (mut one, mut other) = (world.member().await, world.member().await);
    let partner = world.partner(&world.seller().await, &["orders:read"]).await;
    let first = world.pair(&mut one.browser, &partner, "orders:read").await.access;
    let second = world
        .pair(&mut other.browser, &partner, "orders:read")
        .await
        .access;
    let own = world.personal_token(&one.seller, &["orders:read"]).await.token;
    world.stop_clock("2026-03-01T12:00:30Z").await;
    for token in [&first, &second, &own] {
        let answer = world.get(token, "/v1/events").await.expect(200);
        assert_eq!(answer.must("x-ratelimit-limit"), "60");
        assert_eq!(answer.must("x-ratelimit-remaining"), "59");
    }
    for left in (0..59).rev() {
        let answer = world.get(&first, "/v1/events").await.expect(200);
        assert_eq!(answer.number("x-ratelimit-remaining"), left);
    }
    let refused = world.get(&first, "/v1/events").await;
    refused.is_problem(429, &[whole("rate_limited")]);
    let others = world.get(&first, "/v1/me").await.expect(200);
    assert_eq!(others.must("x-ratelimit-remaining"), "599");
    // No operation: as any other unknown one.
    let posted = world.at("POST", "/v1/events").bearer(&first).send().await;
    assert_eq!(posted.expect(404).must("x-ratelimit-remaining"), "598");
}
