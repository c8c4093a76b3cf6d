//! The marketplace's moves over orders: the tables of what leads where, repeats, and what is impossible.

use blackbox::{Expect, Order, Trader, World, line, parcel};
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
async fn cancelling_returns_what_was_taken_and_no_more() {
    let world = world().await;
    let trader = world.trader().await;
    let offer = world.any_offer(&trader.seller, json!({"stock": null})).await;
    let order = world.paid(&[line(&trader.seller, &offer, 10)], json!({})).await;
    // The offer is counted from now on; the order had been placed before.
    let n = blackbox::number_of(&json!(offer));
    let counted = blackbox::offer_body(n, json!({"stock": 5}));
    world.put(&trader.seller, &offer, &counted).await.expect(200);
    world.settle(&order.id, "cancellation").await.expect(200);
    assert_eq!(world.fed_offer(&trader.seller, &offer).await["stock"], 5);
}
