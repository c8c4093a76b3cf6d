//! The marketplace ships and delivers: one seller's part or all, and what the feed tells of it.

use blackbox::{Expect, Order, eventually, line, parcel};
use serde_json::{Value, json};

use crate::world;

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
    let items = world.caught_up_feed().await;
    let of = |order: &Order| {
        items
            .iter()
            .filter(|item| item["order_id"] == order.id.as_str())
            .count()
    };
    assert_eq!((of(&own), of(&markets)), (1, 0), "{items:#?}");
}
