//! The marketplace's transitions of orders: a table of results, repeats, and impossible transitions.

use blackbox::{Expect, Order, Trader, World, line, parcel};
use serde_json::{Value, json};
use testkit::Answer;

use crate::{world, world_of_trade};

/// The states of an order, and the transitions that lead to them.
const STATES: [(&str, &str); 6] = [
    ("pending", ""),
    ("processing", "payment"),
    ("shipped", "payment shipment"),
    ("delivered", "payment shipment delivery"),
    ("cancelled unpaid", "cancellation"),
    ("cancelled paid", "payment cancellation"),
];

/// The result of each transition in each state: a status, or the code of an error.
const MOVES: [(&str, &str); 4] = [
    (
        "payment",
        "processing processing shipped delivered order_cancelled cancelled",
    ),
    (
        "cancellation",
        "cancelled cancelled already_shipped already_shipped cancelled cancelled",
    ),
    (
        "delivery",
        "order_unpaid delivered delivered delivered order_cancelled order_cancelled",
    ),
    (
        "shipment",
        "order_unpaid shipped already_shipped already_shipped order_cancelled order_cancelled",
    ),
];

async fn make(world: &World, order: &Order, step: &str) -> Answer {
    match step {
        "shipment" => world.market_ship(&order.id, &parcel("MARKET-1")).await,
        step => world.settle(&order.id, step).await,
    }
}

/// An order of one seller after these transitions.
async fn order_after(world: &World, trader: &Trader, steps: &str) -> Order {
    let order = world.any_order(&trader.seller).await;
    for step in steps.split_whitespace() {
        let answer = make(world, &order, step).await;
        assert!(answer.status < 300, "{answer:?}");
    }
    order
}

#[tokio::test]
async fn the_table_of_moves() {
    let world = world().await;
    let trader = world.trader().await;
    for (step, outcomes) in MOVES {
        for ((state, steps), outcome) in STATES.into_iter().zip(outcomes.split(' ')) {
            let order = order_after(&world, &trader, steps).await;
            let before = world.whole_order(&order.id).await;
            let answer = make(&world, &order, step).await;
            let after = world.whole_order(&order.id).await;
            let told = format!("{state} {step}: {answer:?}");
            if matches!(outcome, "order_unpaid" | "order_cancelled" | "already_shipped") {
                assert_eq!(answer.status, 409, "{told}");
                answer.refused(409, outcome);
                assert_eq!(after, before, "{told}");
                continue;
            }
            let status = if step == "shipment" { 201 } else { 200 };
            assert_eq!(answer.status, status, "{told}");
            assert_eq!(after["status"], outcome, "{told}");
            if step != "shipment" {
                world.settled(&order.id, step).await;
                let again = world.whole_order(&order.id).await;
                assert_eq!(again, after, "{state}: {step} again is harmless");
            }
            assert!(outcome != before["status"] || after == before, "{told}");
        }
    }
    for step in ["payment", "cancellation", "delivery", "buyer-erasure"] {
        for nobodys in [trader.seller.id.as_str(), "PL-NOTHING"] {
            world.settle(nobodys, step).await.refused(404, "not_found");
        }
    }
    let shipped = world.market_ship("PL-NOTHING", &parcel("AAAA")).await;
    shipped.refused(404, "not_found");
}

#[tokio::test]
async fn cancelling_returns_what_was_taken_once_and_a_number_serves_as_well() {
    let (world, trader, offer) = world_of_trade().await;
    let seller = &trader.seller;
    let uncounted = world.any_offer(seller, json!({"stock": null})).await;
    let lines = [line(seller, &offer, 3), line(seller, &uncounted, 3)];
    let order = world.paid(&lines, json!({})).await;
    assert_eq!(world.stock(seller, &offer).await, 4);
    for _ in 0..3 {
        let answer = world.settle(&order.number, "cancellation").await.expect(200);
        assert_eq!(answer.json()["status"], "cancelled");
        assert_eq!(world.stock(seller, &offer).await, 7);
    }
    assert_eq!(world.stock(seller, &uncounted).await, Value::Null);
    // A test order takes no stock, so it returns none.
    let test = world
        .paid(&[line(seller, &offer, 3)], json!({"is_test": true}))
        .await;
    world.settled(&test.id, "cancellation").await;
    assert_eq!(world.stock(seller, &offer).await, 7);
    // If the stock has become null meanwhile, it is not counted any more.
    let order = world.ordered(seller, &[&offer]).await;
    world.feed_again(seller, &offer, json!({"stock": null})).await;
    world.settled(&order.id, "cancellation").await;
    assert_eq!(world.stock(seller, &offer).await, Value::Null);
    // An order from before the stock was counted returns nothing either.
    let order = world.paid(&[line(seller, &offer, 10)], json!({})).await;
    world.feed_again(seller, &offer, json!({"stock": 5})).await;
    world.settled(&order.id, "cancellation").await;
    assert_eq!(world.stock(seller, &offer).await, 5);
}
