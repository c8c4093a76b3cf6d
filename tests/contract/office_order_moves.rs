//! The marketplace's moves over orders: the tables of what leads where, repeats, and what is impossible.

use blackbox::{Expect, Order, Trader, World, eventually, line, parcel};
use serde_json::{Value, json};

use crate::world;

const STATES: [&str; 6] = [
    "pending",
    "processing",
    "shipped",
    "delivered",
    "cancelled unpaid",
    "cancelled paid",
];

/// An order of one seller in this state.
async fn order_in(world: &World, trader: &Trader, state: &str) -> Order {
    let offer = world.any_offer(&trader.seller, json!({})).await;
    let order = world.unpaid(&[line(&trader.seller, &offer, 2)], json!({})).await;
    let steps: &[&str] = match state {
        "pending" => &[],
        "processing" => &["payment"],
        "shipped" => &["payment", "shipment"],
        "delivered" => &["payment", "shipment", "delivery"],
        "cancelled unpaid" => &["cancellation"],
        _ => &["payment", "cancellation"],
    };
    for step in steps {
        make(world, &order, step)
            .await
            .expect(if *step == "shipment" { 201 } else { 200 });
    }
    order
}

async fn make(world: &World, order: &Order, step: &str) -> testkit::Answer {
    match step {
        "shipment" => world.market_ship(&order.id, &parcel("MARKET-1")).await,
        step => world.settle(&order.id, step).await,
    }
}

#[tokio::test]
async fn the_table_of_moves() {
    let world = world().await;
    let trader = world.trader().await;
    let refusals = |code: &'static str| Err::<&str, _>(code);
    for (step, outcomes) in [
        (
            "payment",
            [
                Ok("processing"),
                Ok("processing"),
                Ok("shipped"),
                Ok("delivered"),
                refusals("order_cancelled"),
                Ok("cancelled"),
            ],
        ),
        (
            "cancellation",
            [
                Ok("cancelled"),
                Ok("cancelled"),
                refusals("already_shipped"),
                refusals("already_shipped"),
                Ok("cancelled"),
                Ok("cancelled"),
            ],
        ),
        (
            "delivery",
            [
                refusals("order_unpaid"),
                Ok("delivered"),
                Ok("delivered"),
                Ok("delivered"),
                refusals("order_cancelled"),
                refusals("order_cancelled"),
            ],
        ),
        (
            "shipment",
            [
                refusals("order_unpaid"),
                Ok("shipped"),
                refusals("already_shipped"),
                refusals("already_shipped"),
                refusals("order_cancelled"),
                refusals("order_cancelled"),
            ],
        ),
    ] {
        for (state, outcome) in STATES.into_iter().zip(outcomes) {
            let order = order_in(&world, &trader, state).await;
            let before = world.whole_order(&order.id).await;
            let answer = make(&world, &order, step).await;
            let after = world.whole_order(&order.id).await;
            match outcome {
                Ok(status) => {
                    assert_eq!(
                        answer.status,
                        if step == "shipment" { 201 } else { 200 },
                        "{state} {step}: {answer:?}"
                    );
                    assert_eq!(after["status"], status, "{state} {step}");
                    let again = make(&world, &order, step).await;
                    if step != "shipment" {
                        again.expect(200);
                        assert_eq!(
                            world.whole_order(&order.id).await,
                            after,
                            "{state}: {step} again is harmless"
                        );
                    }
                    if status == before["status"] {
                        assert_eq!(after, before, "{state} {step} changes nothing");
                    }
                }
                Err(code) => {
                    assert_eq!(answer.status, 409, "{state} {step}: {answer:?}");
                    answer.refused(409, code);
                    assert_eq!(after, before, "{state} {step}");
                }
            }
        }
    }
    for step in ["payment", "cancellation", "delivery", "buyer-erasure"] {
        world
            .settle(&trader.seller.id, step)
            .await
            .refused(404, "not_found");
        world.settle("PL-NOTHING", step).await.refused(404, "not_found");
    }
    world
        .market_ship("PL-NOTHING", &parcel("AAAA"))
        .await
        .refused(404, "not_found");
}

#[tokio::test]
async fn cancelling_returns_stock_once_and_a_number_serves_as_well() {
    let world = world().await;
    let trader = world.trader().await;
    let offer = world.any_offer(&trader.seller, json!({"stock": 5})).await;
    let uncounted = world.any_offer(&trader.seller, json!({"stock": null})).await;
    let lines = [
        line(&trader.seller, &offer, 3),
        line(&trader.seller, &uncounted, 3),
    ];
    let order = world.paid(&lines, json!({})).await;
    assert_eq!(world.fed_offer(&trader.seller, &offer).await["stock"], 2);
    for _ in 0..3 {
        let answer = world
            .settle(&order.number, "cancellation")
            .await
            .expect(200)
            .json();
        assert_eq!(answer["status"], "cancelled");
        assert_eq!(world.fed_offer(&trader.seller, &offer).await["stock"], 5);
    }
    assert_eq!(
        world.fed_offer(&trader.seller, &uncounted).await["stock"],
        Value::Null
    );
    // A test order took nothing, so it returns nothing.
    let test = world
        .paid(&[line(&trader.seller, &offer, 3)], json!({"is_test": true}))
        .await;
    world.settle(&test.id, "cancellation").await.expect(200);
    assert_eq!(world.fed_offer(&trader.seller, &offer).await["stock"], 5);
    // What came meanwhile as null is not counted any more.
    let order = world.unpaid(&[line(&trader.seller, &offer, 1)], json!({})).await;
    let n = blackbox::number_of(&json!(offer));
    world
        .put(
            &trader.seller,
            &offer,
            &blackbox::offer_body(n, json!({"stock": null})),
        )
        .await
        .expect(200);
    world.settle(&order.id, "cancellation").await.expect(200);
    assert_eq!(
        world.fed_offer(&trader.seller, &offer).await["stock"],
        Value::Null
    );
}

#[tokio::test]
async fn the_marketplace_ships_one_part_or_all_that_are_left() {
    let world = world().await;
    let traders = [world.trader().await, world.trader().await, world.trader().await];
    let mut lines = Vec::new();
    for trader in &traders {
        lines.push(line(
            &trader.seller,
            &world.any_offer(&trader.seller, json!({})).await,
            1,
        ));
    }
    let order = world.paid(&lines, json!({})).await;
    let one = json!({"seller_id": traders[1].seller.id, "carrier": "gls", "tracking_number": "GLS-0001"});
    let answer = world.market_ship(&order.id, &one).await.expect(201).json();
    let shipments = answer["shipments"].as_array().expect("shipments");
    assert_eq!(shipments.len(), 1);
    assert_eq!(
        (&shipments[0]["seller_id"], &shipments[0]["carrier"]),
        (&json!(traders[1].seller.id), &json!("gls"))
    );
    assert_eq!(world.mails(&order.id).await, 1, "one mail per call");
    world
        .market_ship(&order.id, &one)
        .await
        .refused(409, "already_shipped");
    let statuses = async || {
        let mut statuses = Vec::new();
        for trader in &traders {
            statuses.push(
                world.order(&trader.token, &order.id).await["status"]
                    .as_str()
                    .unwrap()
                    .to_owned(),
            );
        }
        statuses
    };
    assert_eq!(statuses().await, ["processing", "shipped", "processing"]);
    assert_eq!(
        world.whole_order(&order.id).await["status"],
        "processing",
        "the least advanced"
    );
    world
        .settle(&order.id, "cancellation")
        .await
        .refused(409, "already_shipped");
    assert_eq!(statuses().await, ["processing", "shipped", "processing"]);
    let rest = world
        .market_ship(&order.number, &parcel("DPD-0002"))
        .await
        .expect(201)
        .json();
    assert_eq!(rest["shipments"].as_array().unwrap().len(), 2);
    assert_eq!(statuses().await, ["shipped"; 3]);
    assert_eq!(world.mails(&order.id).await, 2);
    assert_eq!(
        world.order(&traders[1].token, &order.id).await["shipment"]["carrier"],
        "GLS"
    );
    world
        .market_ship(&order.id, &parcel("DPD-0003"))
        .await
        .refused(409, "already_shipped");
    world.settle(&order.id, "delivery").await.expect(200);
    assert_eq!(statuses().await, ["delivered"; 3]);
    let stranger = world.trader().await;
    let theirs = json!({"seller_id": stranger.seller.id, "carrier": "gls", "tracking_number": "GLS-0001"});
    world
        .market_ship(&order.id, &theirs)
        .await
        .refused(404, "not_found");
    for (body, paths) in [
        (json!({}), vec!["carrier", "tracking_number"]),
        (
            json!({"seller_id": "x", "carrier": "tnt", "tracking_number": "abc", "item_ids": []}),
            vec!["seller_id", "carrier", "tracking_number", "item_ids"],
        ),
    ] {
        world.market_ship(&order.id, &body).await.invalid(&paths);
    }
}

#[tokio::test]
async fn delivery_of_what_nobody_shipped_records_both_steps_without_a_shipment() {
    let world = world().await;
    let trader = world.trader().await;
    let order = world.paid_order(&trader).await;
    world.settle(&order.id, "delivery").await.expect(200);
    let seen = world.order(&trader.token, &order.id).await;
    assert_eq!(
        (&seen["status"], &seen["shipment"]),
        (&json!("delivered"), &Value::Null)
    );
    assert!(seen["shipped_at"].is_string());
    assert_eq!(seen["shipped_at"], seen["delivered_at"]);
    assert_eq!(world.mails(&order.id).await, 0);
    world
        .ship(&trader.token, &order.id, &parcel("AAAA1"))
        .await
        .is_problem(409, &[blackbox::whole("already_shipped")]);
}

#[tokio::test]
async fn the_feed_tells_what_a_seller_shipped_and_not_what_the_marketplace_did() {
    let world = world().await;
    let trader = world.trader().await;
    let (own, markets) = (world.paid_order(&trader).await, world.paid_order(&trader).await);
    world.market_ship(&markets.id, &parcel("AAAA1")).await.expect(201);
    world.settle(&markets.id, "delivery").await.expect(200);
    world
        .ship(&trader.token, &own.id, &parcel("AAAA2"))
        .await
        .expect(201);
    world.settle(&own.id, "delivery").await.expect(200);
    let told = async || (world.told("order.shipped", &own.id).await == 1).then_some(());
    eventually("order.shipped", told).await;
    let items = world.feed().await;
    let of = |order: &Order| {
        items
            .iter()
            .filter(|item| item["order_id"] == order.id.as_str())
            .count()
    };
    assert_eq!((of(&own), of(&markets)), (1, 0), "{items:#?}");
}

#[tokio::test]
async fn erasure_takes_the_buyer_from_everywhere() {
    let world = world().await;
    let traders = [world.trader().await, world.trader().await];
    let mut lines = Vec::new();
    for trader in &traders {
        lines.push(line(
            &trader.seller,
            &world.any_offer(&trader.seller, json!({})).await,
            1,
        ));
    }
    let order = world.paid(&lines, json!({})).await;
    let kept = world.paid(&lines, json!({})).await;
    world.market_ship(&order.id, &parcel("AAAA1")).await.expect(201);
    assert_eq!(world.mails(&order.id).await, 1);
    for _ in 0..2 {
        world.settle(&order.id, "buyer-erasure").await.expect(200);
        for trader in &traders {
            let seen = world.order(&trader.token, &order.id).await;
            assert_eq!(
                (&seen["buyer"], &seen["shipping_address"]),
                (&Value::Null, &Value::Null),
                "{seen}"
            );
            assert_eq!(seen["status"], "shipped");
            assert!(world.order(&trader.token, &kept.id).await["buyer"].is_object());
        }
        assert!(!world.whole_order(&order.id).await.to_string().contains("Ewa"));
    }
    let waiting = "select count(*) from mails where order_id::text = $1 and due_at is not null";
    assert_eq!(
        world.count(waiting, &order.id).await,
        0,
        "nothing is sent to an erased buyer"
    );
    world.settle(&order.id, "delivery").await.expect(200);
    // An order that is erased before it is shipped is shipped without a mail.
    let early = world.paid_order(&traders[0]).await;
    world.settle(&early.id, "buyer-erasure").await.expect(200);
    let shipped = world
        .ship(&traders[0].token, &early.id, &parcel("AAAA2"))
        .await
        .expect(201)
        .json();
    assert_eq!(shipped["buyer_notified"], false);
    assert_eq!(world.mails(&early.id).await, 0);
}
