//! The marketplace ships and delivers one seller's part or all; and the feed's entries about that.

use blackbox::{Expect, Order, line, parcel, text, whole};
use serde_json::{Value, json};

use crate::world;

#[tokio::test]
async fn the_marketplace_ships_one_part_or_all_that_are_left() {
    let world = world().await;
    let traders = [world.trader().await, world.trader().await, world.trader().await];
    let mut lines = Vec::new();
    for trader in &traders {
        let offer = world.any_offer(&trader.seller, json!({})).await;
        lines.push(line(&trader.seller, &offer, 1));
    }
    let order = world.paid(&lines, json!({})).await;
    let statuses = async || {
        let mut statuses = Vec::new();
        for trader in &traders {
            statuses.push(text(&world.order(&trader.token, &order.id).await, "status"));
        }
        statuses
    };
    let by_gls = |seller: &str| json!({"seller_id": seller, "carrier": "gls", "tracking_number": "GLS-0001"});
    let one = by_gls(&traders[1].seller.id);
    let answer = world.market_ship(&order.id, &one).await.expect(201).json();
    let [shipment] = answer["shipments"].as_array().unwrap().as_slice() else {
        panic!("{answer}")
    };
    for field in ["seller_id", "carrier"] {
        assert_eq!(shipment[field], one[field]);
    }
    assert_eq!(world.mails(&order.id).await, 1, "one mail per call");
    let again = world.market_ship(&order.id, &one).await;
    again.refused(409, "already_shipped");
    assert_eq!(statuses().await, ["processing", "shipped", "processing"]);
    assert_eq!(
        world.whole_order(&order.id).await["status"],
        "processing",
        "the least advanced"
    );
    let cancelled = world.settle(&order.id, "cancellation").await;
    cancelled.refused(409, "already_shipped");
    assert_eq!(statuses().await, ["processing", "shipped", "processing"]);
    let rest = world
        .market_ship(&order.number, &parcel("DPD-0002"))
        .await
        .expect(201);
    assert_eq!(rest.json()["shipments"].as_array().unwrap().len(), 2);
    assert_eq!(statuses().await, ["shipped"; 3]);
    assert_eq!(world.mails(&order.id).await, 2);
    let seen = world.order(&traders[1].token, &order.id).await;
    assert_eq!(seen["shipment"]["carrier"], "GLS");
    let again = world.market_ship(&order.id, &parcel("DPD-0003")).await;
    again.refused(409, "already_shipped");
    world.settled(&order.id, "delivery").await;
    assert_eq!(statuses().await, ["delivered"; 3]);
    let strangers = by_gls(&world.seller().await.id);
    let strangers = world.market_ship(&order.id, &strangers).await;
    strangers.refused(404, "not_found");
    let wrong = json!({"seller_id": "x", "carrier": "tnt", "tracking_number": "abc", "item_ids": []});
    let paths = ["seller_id", "carrier", "tracking_number", "item_ids"];
    for (body, paths) in [(json!({}), &paths[1..3]), (wrong, &paths)] {
        world.market_ship(&order.id, &body).await.invalid(paths);
    }
}

#[tokio::test]
async fn delivery_of_what_nobody_shipped_records_both_steps_without_a_shipment() {
    let world = world().await;
    let trader = world.trader().await;
    let order = world.paid_order(&trader).await;
    world.settled(&order.id, "delivery").await;
    let seen = world.order(&trader.token, &order.id).await;
    assert_eq!(
        (&seen["status"], &seen["shipment"]),
        (&json!("delivered"), &Value::Null)
    );
    assert!(seen["shipped_at"].is_string());
    assert_eq!(seen["shipped_at"], seen["delivered_at"]);
    assert_eq!(world.mails(&order.id).await, 0);
    let answer = world.ship(&trader.token, &order.id, &parcel("AAAA1")).await;
    answer.is_problem(409, &[whole("already_shipped")]);
    // The feed lists sellers' shipments, not the marketplace's.
    let (own, markets) = (world.paid_order(&trader).await, world.paid_order(&trader).await);
    world.market_ship(&markets.id, &parcel("AAAA1")).await.expect(201);
    world.shipped(&trader.token, &own.id, &parcel("AAAA2")).await;
    for order in [&own, &markets] {
        world.settled(&order.id, "delivery").await;
    }
    let told = world.caught_up_feed().await;
    let of = |order: &Order| {
        told.iter()
            .filter(|item| item["order_id"] == order.id.as_str())
            .count()
    };
    assert_eq!((of(&order), of(&own), of(&markets)), (0, 1, 0), "{told:#?}");
}
