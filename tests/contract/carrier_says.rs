//! What a carrier says of a parcel, and what becomes of the order by it. The carrier is one on the loopback.

use std::time::{Duration, Instant};

use blackbox::{CarrierStub, Expect, Says, Trader, World, eventually, line};
use serde_json::{Value, json};

use crate::PROGRAM;

/// A world that asks the carrier for InPost.
async fn prepared(carrier: &CarrierStub, poll_interval: &str) -> (World, Trader) {
    let url = carrier.url.clone();
    let world = World::with(PROGRAM, |options| {
        options
            .set("SELLER_API__CARRIERS__INPOST__ENABLED", true)
            .set("SELLER_API__CARRIERS__INPOST__BASE_URL", url)
            .set("SELLER_API__TRACKING__POLL_INTERVAL", poll_interval)
    });
    let world = world.await;
    let trader = world.trader().await;
    (world, trader)
}

fn inpost(number: &str) -> Value {
    json!({"carrier": "inpost", "tracking_number": number})
}

#[tokio::test]
async fn a_parcel_that_has_arrived_makes_the_order_delivered_without_a_mail() {
    let carrier = CarrierStub::start().await;
    let (world, trader) = prepared(&carrier, "1h").await;
    // The carrier's instant is kept within payment and now.
    for (number, instant) in [
        ("PAST-1", "2015-09-17T11:28:00.000+02:00"),
        ("FUTURE-1", "2099-09-17T11:28:00.000+02:00"),
    ] {
        carrier.says(number, Says::Delivered(instant));
        let order = world.paid_order(&trader).await;
        let made = world
            .ship(&trader.token, &order.id, &inpost(number))
            .await
            .expect(201)
            .json();
        assert_eq!(
            (&made["delivered_already"], &made["buyer_notified"]),
            (&json!(true), &json!(false))
        );
        let seen = world.order(&trader.token, &order.id).await;
        assert_eq!(seen["status"], "delivered");
        assert_eq!(seen["shipped_at"], seen["delivered_at"]);
        assert_eq!(seen["shipment"]["tracking_status"], "delivered");
        let bound = if number.starts_with("PAST") {
            &seen["paid_at"]
        } else {
            &made["created_at"]
        };
        assert_eq!(&seen["delivered_at"], bound, "{seen}");
        assert_eq!(world.mails(&order.id).await, 0);
        assert_eq!(carrier.asked(number), 1);
        let both = async || {
            let told = [
                world.told("order.shipped", &order.id).await,
                world.told("order.delivered", &order.id).await,
            ];
            (told == [1, 1]).then_some(())
        };
        eventually("both steps in the feed", both).await;
    }
}

#[tokio::test]
async fn no_answer_of_a_carrier_hinders_a_shipment() {
    let carrier = CarrierStub::start().await;
    let (world, trader) = prepared(&carrier, "1h").await;
    carrier.says("SILENT-1", Says::Silence);
    carrier.says("BROKEN-1", Says::Failure);
    for number in ["BROKEN-1", "SILENT-1", "UNKNOWN-1"] {
        let order = world.paid_order(&trader).await;
        let began = Instant::now();
        let made = world
            .ship(&trader.token, &order.id, &inpost(number))
            .await
            .expect(201)
            .json();
        assert!(
            began.elapsed() < Duration::from_millis(3_300),
            "{number}: {:?}",
            began.elapsed()
        );
        assert_eq!(
            (&made["delivered_already"], &made["buyer_notified"]),
            (&json!(false), &json!(true))
        );
        let seen = world.order(&trader.token, &order.id).await;
        assert_eq!(
            (&seen["status"], &seen["shipment"]["tracking_status"]),
            (&json!("shipped"), &Value::Null)
        );
        assert!(carrier.asked(number) > 0);
        assert_eq!(world.mails(&order.id).await, 1);
    }
}

#[tokio::test]
async fn a_parcel_is_followed_to_its_delivery() {
    let carrier = CarrierStub::start().await;
    let (world, trader) = prepared(&carrier, "100ms").await;
    carrier.says("LONG-WAY-1", Says::State("adopted_at_source_branch"));
    let order = world.paid_order(&trader).await;
    let made = world
        .ship(&trader.token, &order.id, &inpost("LONG-WAY-1"))
        .await
        .expect(201)
        .json();
    assert_eq!(made["delivered_already"], false);
    let seen = async || world.order(&trader.token, &order.id).await;
    assert_eq!(seen().await["shipment"]["tracking_status"], "in_transit");
    let before = seen().await["updated_at"].clone();
    carrier.says("LONG-WAY-1", Says::State("out_for_delivery"));
    let moved = async || {
        Some(seen().await).filter(|order| order["shipment"]["tracking_status"] == "out_for_delivery")
    };
    let moved = eventually("out_for_delivery", moved).await;
    assert_eq!(moved["status"], "shipped");
    assert!(
        moved["updated_at"].as_str() > before.as_str(),
        "a returned field changed"
    );
    carrier.says("LONG-WAY-1", Says::Delivered("2015-09-17T11:28:00.000+02:00"));
    let arrived = async || Some(seen().await).filter(|order| order["status"] == "delivered");
    let arrived = eventually("the delivery", arrived).await;
    assert_eq!(
        arrived["delivered_at"], arrived["shipped_at"],
        "not before it was shipped"
    );
    assert_eq!(arrived["shipment"]["tracking_status"], "delivered");
    eventually("the feed", async || {
        (world.told("order.delivered", &order.id).await == 1).then_some(())
    })
    .await;
    assert_eq!(world.told("order.shipped", &order.id).await, 1);
    assert_eq!(
        world
            .count(
                "select count(*) from parcels where order_id::text = $1",
                &order.id
            )
            .await,
        0
    );
}

#[tokio::test]
async fn what_is_not_to_be_asked_is_not() {
    let carrier = CarrierStub::start().await;
    let (world, trader) = prepared(&carrier, "100ms").await;
    let offer = world.any_offer(&trader.seller, json!({})).await;
    let lines = [line(&trader.seller, &offer, 1)];
    let test = world.paid(&lines, json!({"is_test": true})).await;
    carrier.says("TEST-1", Says::Delivered("2015-09-17T11:28:00.000+02:00"));
    let made = world
        .ship(&trader.token, &test.id, &inpost("TEST-1"))
        .await
        .expect(201)
        .json();
    assert_eq!(made["delivered_already"], false);
    let other = world.paid_order(&trader).await;
    world
        .ship(
            &trader.token,
            &other.id,
            &json!({"carrier": "other", "tracking_number": "OTHER-1"}),
        )
        .await
        .expect(201);
    // A refused report asks nobody.
    let unpaid = world.unpaid(&lines, json!({})).await;
    world
        .ship(&trader.token, &unpaid.id, &inpost("UNPAID-1"))
        .await
        .refused(409, "order_unpaid");
    // A parcel that is asked about after these were reported: by then they would have been, too.
    let asked = world.paid_order(&trader).await;
    world
        .ship(&trader.token, &asked.id, &inpost("ASKED-1"))
        .await
        .expect(201);
    eventually("a second question", async || {
        (carrier.asked("ASKED-1") > 1).then_some(())
    })
    .await;
    assert_eq!(
        [
            carrier.asked("TEST-1"),
            carrier.asked("OTHER-1"),
            carrier.asked("UNPAID-1")
        ],
        [0, 0, 0]
    );
    assert_eq!(world.order(&trader.token, &test.id).await["status"], "shipped");
}
