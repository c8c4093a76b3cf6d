//! The marketplace ships and delivers one seller's part or all; and the feed's entries about that.

use blackbox::{Expect, Order, assert_members, parcel, text, whole};
use serde_json::json;

use crate::{crowds::traders, world};

#[tokio::test]
async fn the_marketplace_ships_one_part_or_all_that_are_left() {
    let world = world().await;
    let (traders, lines) = traders(&world, 3, 7).await;
    let order = world.paid(&lines, json!({})).await;
    let statuses = async || {
        let mut statuses = Vec::new();
        for (trader, _) in &traders {
            statuses.push(text(&world.order(&trader.token, &order.id).await, "status"));
        }
        statuses
    };
    let by_gls = |seller: &str| json!({"seller_id": seller, "carrier": "gls", "tracking_number": "GLS-0001"});
    let one = by_gls(&traders[1].0.seller.id);
    let answer = world.market_ship(&order.id, &one).await.expect(201).json();
    assert_eq!(answer["shipments"].as_array().unwrap().len(), 1, "{answer}");
    for field in ["seller_id", "carrier"] {
        assert_eq!(answer["shipments"][0][field], one[field]);
    }
    assert_eq!(world.mails(&order.id).await, 1, "one mail per call");
    let again = world.market_ship(&order.id, &one).await;
    again.refused(409, "already_shipped");
    assert_eq!(statuses().await, ["processing", "shipped", "processing"]);
    let whole = world.whole_order(&order.id).await;
    assert_eq!(whole["status"], "processing", "the least advanced");
    let cancelled = world.settle(&order.id, "cancellation").await;
    cancelled.refused(409, "already_shipped");
    assert_eq!(statuses().await, ["processing", "shipped", "processing"]);
    let rest = world.market_ship(&order.number, &parcel("DPD-0002")).await;
    assert_eq!(rest.expect(201).json()["shipments"].as_array().unwrap().len(), 2);
    assert_eq!(statuses().await, ["shipped"; 3]);
    assert_eq!(world.mails(&order.id).await, 2);
    let seen = world.order(&traders[1].0.token, &order.id).await;
    assert_eq!(seen["shipment"]["carrier"], "GLS");
    let again = world.market_ship(&order.id, &parcel("DPD-0003")).await;
    again.refused(409, "already_shipped");
    world.settled(&order.id, "delivery").await;
    assert_eq!(statuses().await, ["delivered"; 3]);
    let strangers = by_gls(&world.seller().await.id);
    let strangers = world.market_ship(&order.id, &strangers).await;
    strangers.refused(404, "not_found");
    let wrong = json!({"seller_id": "x", "carrier": "tnt", "tracking_number": "abc", "item_ids": []});
    for (body, paths) in [
        (json!({}), "carrier tracking_number"),
        (wrong, "seller_id carrier tracking_number item_ids"),
    ] {
        world.market_ship(&order.id, &body).await.invalid(paths);
    }
}

#[tokio::test]
async fn the_delivery_of_an_unshipped_order_records_both_steps_without_a_shipment() {
    let world = world().await;
    let trader = world.trader().await;
    let order = world.paid_order(&trader).await;
    world.settled(&order.id, "delivery").await;
    let seen = world.order(&trader.token, &order.id).await;
    let at = text(&seen, "shipped_at");
    let expected = json!({"status": "delivered", "shipment": null, "shipped_at": at, "delivered_at": at});
    assert_members(&seen, expected);
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
    let feed = world.caught_up_feed().await;
    let listed = |order: &Order| feed.iter().filter(|item| item["order_id"] == *order.id).count();
    assert_eq!([&order, &own, &markets].map(listed), [0, 1, 0], "{feed:#?}");
}
