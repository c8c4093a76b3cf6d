//! Erasure of a buyer's data: permanent, in every part of an order and in queued work.

use blackbox::{line, parcel};
use serde_json::{Value, json};

use crate::world;

#[tokio::test]
async fn erasure_takes_the_buyer_from_everywhere() {
    let world = world().await;
    let traders = [world.trader().await, world.trader().await];
    let mut lines = Vec::new();
    for trader in &traders {
        let offer = world.any_offer(&trader.seller, json!({})).await;
        lines.push(line(&trader.seller, &offer, 1));
    }
    let order = world.paid(&lines, json!({})).await;
    let kept = world.paid(&lines, json!({})).await;
    world.market_ship(&order.id, &parcel("AAAA1")).await.expect(201);
    assert_eq!(world.mails(&order.id).await, 1);
    for _ in 0..2 {
        world.settled(&order.id, "buyer-erasure").await;
        for trader in &traders {
            let seen = world.order(&trader.token, &order.id).await;
            let nothing = [&seen["buyer"], &seen["shipping_address"]];
            assert_eq!((nothing, &seen["status"]), ([&Value::Null; 2], &json!("shipped")));
            assert!(world.order(&trader.token, &kept.id).await["buyer"].is_object());
        }
        assert!(!world.whole_order(&order.id).await.to_string().contains("Ewa"));
    }
    let waiting = "select count(*) from mails where order_id::text = $1 and due_at is not null";
    assert_eq!(
        world.count(waiting, &order.id).await,
        0,
        "an erased buyer gets no mail"
    );
    world.settled(&order.id, "delivery").await;
    // An order that was erased before its shipment is shipped without a mail.
    let early = world.paid_order(&traders[0]).await;
    world.settled(&early.id, "buyer-erasure").await;
    let shipped = world
        .shipped(&traders[0].token, &early.id, &parcel("AAAA2"))
        .await;
    assert_eq!(shipped["buyer_notified"], false);
    assert_eq!(world.mails(&early.id).await, 0);
}
