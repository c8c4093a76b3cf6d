//! The marketplace's transitions of orders: results, repeats, impossible ones, shipments of parts, and
//! erasure of the buyer.

use blackbox::{Expect, assert_members, line, parcel, text, whole};
use serde_json::json;

use crate::{concurrent_requests::traders, world, world_of_trade, world_with};

#[tokio::test]
async fn each_transition_is_made_repeated_or_refused_by_the_orders_state() {
    let world = world().await;
    let trader = world.trader().await;
    let [order, other] = [
        world.any_order(&trader.seller).await,
        world.any_order(&trader.seller).await,
    ];
    for (order, step, outcome) in [
        (&order, "delivery", Err("order_unpaid")),
        (&order, "payment", Ok("processing")),
        (&order, "delivery", Ok("delivered")),
        (&order, "cancellation", Err("already_shipped")),
        (&other, "cancellation", Ok("cancelled")),
        (&other, "payment", Err("order_cancelled")),
        (&other, "delivery", Err("order_cancelled")),
    ] {
        let answer = world.move_order(&order.id, step).await;
        match outcome {
            Ok(status) => {
                let moved = answer.expect(200).json();
                assert_eq!(moved["status"], status);
                let part = moved["parts"][0].as_object().unwrap();
                for personal in ["buyer", "shipping_address", "delivery_point", "invoice"] {
                    assert!(
                        !part.contains_key(personal),
                        "remembered answers hold no {personal}"
                    );
                }
            }
            Err(code) => answer.refused(409, code),
        }
        let after = world.whole_order(&order.id).await;
        if outcome.is_ok() {
            world.order_moved(&order.id, step).await;
            assert_eq!(
                world.whole_order(&order.id).await,
                after,
                "{step} again is harmless"
            );
        }
    }
    for step in ["payment", "cancellation", "delivery", "buyer-erasure"] {
        for nobodys in [trader.seller.id.as_str(), "PL-NOTHING"] {
            world.move_order(nobodys, step).await.refused(404, "not_found");
        }
    }
    let shipped = world.market_ship("PL-NOTHING", &parcel("AAAA")).await;
    shipped.refused(404, "not_found");
}

#[tokio::test]
async fn a_cancellation_returns_the_taken_stock_once() {
    let (world, trader, offer) = world_of_trade().await;
    let seller = &trader.seller;
    let uncounted = world.any_offer(seller, json!({"stock": null})).await;
    let lines = [line(seller, &offer, 3), line(seller, &uncounted, 3)];
    let order = world.paid(&lines, json!({})).await;
    assert_eq!(world.stock(seller, &offer).await, 4);
    // Nothing was taken of what was not counted when it was ordered.
    world.feed_again(seller, &uncounted, json!({"stock": 5})).await;
    for _ in 0..3 {
        let answer = world.move_order(&order.number, "cancellation").await.expect(200);
        assert_eq!(answer.json()["status"], "cancelled");
        assert_eq!(world.stock(seller, &offer).await, 7);
    }
    assert_eq!(world.stock(seller, &uncounted).await, 5);
    // A test order takes no stock, so it returns none.
    let three = [line(seller, &offer, 3)];
    let test = world.paid(&three, json!({"is_test": true})).await;
    world.order_moved(&test.id, "cancellation").await;
    assert_eq!(world.stock(seller, &offer).await, 7);
}

#[tokio::test]
async fn the_marketplace_ships_one_part_or_all_remaining_parts() {
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
    let cancelled = world.move_order(&order.id, "cancellation").await;
    cancelled.refused(409, "already_shipped");
    let rest = world.market_ship(&order.number, &parcel("DPD-0002")).await;
    assert_eq!(rest.expect(201).json()["shipments"].as_array().unwrap().len(), 2);
    assert_eq!(statuses().await, ["shipped"; 3]);
    assert_eq!(world.mails(&order.id).await, 2);
    let seen = world.order(&traders[1].0.token, &order.id).await;
    assert_eq!(seen["shipment"]["carrier"], "GLS");
    world.order_moved(&order.id, "delivery").await;
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
    world.order_moved(&order.id, "delivery").await;
    let seen = world.order(&trader.token, &order.id).await;
    let at = text(&seen, "shipped_at");
    let expected = json!({"status": "delivered", "shipment": null, "shipped_at": at, "delivered_at": at});
    assert_members(&seen, expected);
    assert_eq!(world.mails(&order.id).await, 0);
    let answer = world.ship(&trader.token, &order.id, &parcel("AAAA1")).await;
    answer.is_problem(409, &[whole("already_shipped")]);
}

#[tokio::test]
async fn erasure_removes_the_buyer_from_every_part_and_every_queued_mail() {
    // Nobody sends the mail meanwhile.
    let world = world_with(&[("SERVER__WORKERS", "none")]).await;
    let (traders, lines) = traders(&world, 2, 7).await;
    let order = world.paid(&lines, json!({})).await;
    let other = world.paid(&lines, json!({})).await;
    world.market_ship(&order.id, &parcel("AAAA1")).await.expect(201);
    let waiting = "select count(*) from mails where order_id::text = $1 and due_at is not null";
    assert_eq!(world.count(waiting, &[&order.id]).await, 1);
    let shown = world.whole_order(&order.id).await.to_string();
    let personal = ["Ewa", "Długa", "WAW01M", "5260250274"];
    assert!(personal.iter().all(|text| shown.contains(text)));
    for _ in 0..2 {
        let answer = world.move_order(&order.id, "buyer-erasure").await.expect(200);
        let erased = json!({
            "buyer": null, "shipping_address": null, "delivery_point": null, "invoice": null, "status": "shipped",
        });
        for (trader, _) in &traders {
            assert_members(&world.order(&trader.token, &order.id).await, erased.clone());
            let others = world.order(&trader.token, &other.id).await;
            assert!(others["buyer"].is_object() && others["invoice"].is_object());
        }
        for shown in [answer.json(), world.whole_order(&order.id).await] {
            let shown = shown.to_string();
            assert!(!personal.iter().any(|text| shown.contains(text)), "{shown}");
        }
    }
    // An erased buyer gets no mail.
    assert_eq!(world.count(waiting, &[&order.id]).await, 0);
    let logged = "select count(*) from audit_log where action = 'buyer.erased' and subject = $1";
    assert_eq!(world.count(logged, &[&order.id]).await, 1);
}
