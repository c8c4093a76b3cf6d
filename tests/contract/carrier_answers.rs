//! Carriers' reports about a parcel, and their effects on the order. The carrier is a stub on a loopback
//! address.

use std::time::{Duration, Instant};

use blackbox::{
    CarrierStub, Expect, StubAnswer, Trader, World, assert_members, at_once, eventually, inpost_at, items,
    line, until,
};
use serde_json::{Value, json};

use crate::{PROGRAM, set};

const ARRIVED: &str = "2015-09-17T11:28:00.000+02:00";

/// A world that queries the stub for InPost.
async fn prepared(poll_interval: &str) -> (CarrierStub, World, Trader) {
    let carrier = CarrierStub::start().await;
    let interval = [("TRACKING__POLL_INTERVAL", poll_interval)];
    let settings = |options| set(inpost_at(options, &carrier.url), &interval);
    let world = World::with(PROGRAM, settings).await;
    let trader = world.trader().await;
    (carrier, world, trader)
}

fn inpost(number: &str) -> Value {
    json!({"carrier": "inpost", "tracking_number": number})
}

#[tokio::test]
async fn a_delivered_parcel_sets_the_order_delivered_without_a_mail() {
    let (carrier, world, trader) = prepared("1h").await;
    carrier.answers("PAST-1", StubAnswer::Delivered(ARRIVED));
    let order = world.paid_order(&trader).await;
    let made = world.shipped(&trader.token, &order.id, &inpost("PAST-1")).await;
    assert_members(&made, json!({"delivered_already": true, "buyer_notified": false}));
    let seen = world.order(&trader.token, &order.id).await;
    assert_eq!(seen["shipment"]["tracking_status"], "delivered");
    // The carrier's instant is before the payment.
    let at = &seen["paid_at"];
    let delivered = json!({"status": "delivered", "shipped_at": at, "delivered_at": at});
    assert_members(&seen, delivered);
    assert_eq!((world.mails(&order.id).await, carrier.look_ups()), (0, 1));
    let journal = world.read(&trader.token, "/v1/events?limit=200").await;
    let [shipped, delivered] = items(&journal).last_chunk::<2>().unwrap();
    for (step, event) in [("order.shipped", shipped), ("order.delivered", delivered)] {
        assert_members(event, json!({"event": step, "occurred_at": at}));
        assert_eq!(world.count_in_feed(step, &order.id).await, 1, "{step}");
    }
}

#[tokio::test]
async fn many_reports_of_one_order_ask_the_carrier_once() {
    let (carrier, world, trader) = prepared("1h").await;
    carrier.takes(Duration::from_millis(500));
    let order = world.paid_order(&trader).await;
    let path = format!("/v1/orders/{}/shipments", order.id);
    let reports = (0..20).map(|n| {
        let number = format!("PARCEL-{n}");
        carrier.answers(&number, StubAnswer::Delivered(ARRIVED));
        world
            .at("POST", &path)
            .bearer(&trader.token)
            .json(&inpost(&number))
    });
    let answers = at_once(reports.collect::<Vec<_>>()).await;
    let (made, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 201);
    assert_eq!((made.len(), carrier.look_ups()), (1, 1));
    assert_eq!(made[0].json()["delivered_already"], true);
    for answer in refused {
        answer.refused(409, "already_shipped");
    }
}

#[tokio::test]
async fn a_failing_carrier_does_not_prevent_a_shipment() {
    let (carrier, world, trader) = prepared("1h").await;
    carrier.answers("SILENT-1", StubAnswer::Silence);
    carrier.answers("BROKEN-1", StubAnswer::Failure);
    for number in ["BROKEN-1", "SILENT-1", "UNKNOWN-1"] {
        let order = world.paid_order(&trader).await;
        let began = Instant::now();
        let made = world.shipped(&trader.token, &order.id, &inpost(number)).await;
        let took = began.elapsed();
        assert!(took < Duration::from_secs(5), "{number}: {took:?}");
        assert_members(&made, json!({"delivered_already": false, "buyer_notified": true}));
        let seen = world.order(&trader.token, &order.id).await;
        assert_eq!(seen["status"], "shipped");
        assert_eq!(seen["shipment"]["tracking_status"], Value::Null);
        assert!(carrier.look_ups_of(number) > 0);
        assert_eq!(world.mails(&order.id).await, 1);
    }
}

#[tokio::test]
async fn a_parcel_is_polled_until_its_delivery() {
    let (carrier, world, trader) = prepared("100ms").await;
    carrier.answers("LONG-WAY-1", StubAnswer::State("adopted_at_source_branch"));
    let order = world.paid_order(&trader).await;
    let report = inpost("LONG-WAY-1");
    let made = world.shipped(&trader.token, &order.id, &report).await;
    assert_eq!(made["delivered_already"], false);
    let seen = async || world.order(&trader.token, &order.id).await;
    let before = seen().await;
    assert_eq!(before["shipment"]["tracking_status"], "in_transit");
    let is_at = async |status: &str| {
        let is_so = |order: &Value| order["shipment"]["tracking_status"] == status;
        eventually(status, async || Some(seen().await).filter(is_so)).await
    };
    carrier.answers("LONG-WAY-1", StubAnswer::State("out_for_delivery"));
    let moved = is_at("out_for_delivery").await;
    assert_eq!(moved["status"], "shipped");
    let [then, now] = [&before, &moved].map(|order| order["updated_at"].as_str());
    assert!(now > then, "a returned field changed");
    carrier.answers("LONG-WAY-1", StubAnswer::Delivered(ARRIVED));
    let arrived = is_at("delivered").await;
    assert_eq!(arrived["status"], "delivered");
    let (delivered, shipped) = (&arrived["delivered_at"], &arrived["shipped_at"]);
    assert_eq!(delivered, shipped, "not before it was shipped");
    for step in ["order.delivered", "order.shipped"] {
        assert_eq!(world.count_in_feed(step, &order.id).await, 1, "{step}");
    }
    let followed = "select count(*) from parcels where order_id::text = $1";
    assert_eq!(world.count(followed, &[&order.id]).await, 0);
}

#[tokio::test]
async fn carriers_are_not_queried_for_test_orders_other_carriers_and_refused_reports() {
    let (carrier, world, trader) = prepared("100ms").await;
    let offer = world.any_offer(&trader.seller, json!({})).await;
    let lines = [line(&trader.seller, &offer, 1)];
    let test = world.paid(&lines, json!({"is_test": true})).await;
    carrier.answers("TEST-1", StubAnswer::Delivered(ARRIVED));
    let made = world.shipped(&trader.token, &test.id, &inpost("TEST-1")).await;
    assert_eq!(made["delivered_already"], false);
    let other = world.paid_order(&trader).await;
    let by_other = json!({"carrier": "other", "tracking_number": "OTHER-1"});
    world.shipped(&trader.token, &other.id, &by_other).await;
    // A rejected report queries no carrier.
    let unpaid = world.unpaid(&lines, json!({})).await;
    let refused = world.ship(&trader.token, &unpaid.id, &inpost("UNPAID-1")).await;
    refused.refused(409, "order_unpaid");
    // A parcel that is queried after these were reported: otherwise they would have been queried by then too.
    let asked = world.paid_order(&trader).await;
    world.shipped(&trader.token, &asked.id, &inpost("ASKED-1")).await;
    until("a second question", async || carrier.look_ups_of("ASKED-1") > 1).await;
    let unasked = ["TEST-1", "OTHER-1", "UNPAID-1"].map(|number| carrier.look_ups_of(number));
    assert_eq!(unasked, [0, 0, 0]);
    assert_eq!(world.order(&trader.token, &test.id).await["status"], "shipped");
}
