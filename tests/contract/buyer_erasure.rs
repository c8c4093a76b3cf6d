//! Erasure of a buyer's data: permanent, in every part of an order and in queued work.

use blackbox::{assert_members, parcel};
use serde_json::json;

use crate::{crowds::traders, world};

#[tokio::test]
async fn erasure_removes_the_buyer_from_every_part_and_every_queued_mail() {
    let world = world().await;
    let (traders, lines) = traders(&world, 2, 7).await;
    let order = world.paid(&lines, json!({})).await;
    let other = world.paid(&lines, json!({})).await;
    world.market_ship(&order.id, &parcel("AAAA1")).await.expect(201);
    assert_eq!(world.mails(&order.id).await, 1);
    for _ in 0..2 {
        world.settled(&order.id, "buyer-erasure").await;
        for (trader, _) in &traders {
            let erased = json!({"buyer": null, "shipping_address": null, "status": "shipped"});
            assert_members(&world.order(&trader.token, &order.id).await, erased);
            assert!(world.order(&trader.token, &other.id).await["buyer"].is_object());
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
    let trader = &traders[0].0;
    let early = world.paid_order(trader).await;
    world.settled(&early.id, "buyer-erasure").await;
    let shipped = world.shipped(&trader.token, &early.id, &parcel("AAAA2")).await;
    assert_eq!(shipped["buyer_notified"], false);
    assert_eq!(world.mails(&early.id).await, 0);
}
