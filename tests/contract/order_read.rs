//! `GET /v1/orders/{id}`: an order as its seller sees it.

use blackbox::{line, order_body, parcel};
use serde_json::{Value, json};

use crate::{instant, world_of_trade};

const FIELDS: [&str; 16] = [
    "id",
    "order_number",
    "status",
    "payment_status",
    "payment_method",
    "placed_at",
    "paid_at",
    "shipped_at",
    "delivered_at",
    "delivery_method",
    "shipment",
    "buyer",
    "shipping_address",
    "items",
    "is_test",
    "updated_at",
];

#[tokio::test]
async fn every_field_from_placing_to_delivery() {
    let (world, trader, offer) = world_of_trade().await;
    let clock = world.database.control_clock().await;
    let at = async |second: u32| {
        clock
            .freeze(instant(&format!("2040-01-01T12:00:{second:02}.000001Z")))
            .await;
    };
    let time = |second: u32| format!("2040-01-01T12:00:{second:02}.000001Z");
    at(1).await;
    let lines = [line(&trader.seller, &offer, 2)];
    let placed = world.unpaid(&lines, json!({"order_number": "PL-2040-1"})).await;
    let body = order_body(&lines, json!({}));
    let number = offer
        .rsplit('-')
        .next()
        .unwrap()
        .trim_start_matches('0')
        .to_owned();
    let mut expected = json!({
        "id": placed.id, "order_number": "PL-2040-1", "status": "pending", "payment_status": "awaiting_payment",
        "payment_method": "blik", "placed_at": time(1), "paid_at": null, "shipped_at": null, "delivered_at": null,
        "delivery_method": "parcel locker", "shipment": null, "buyer": null, "shipping_address": null,
        "items": [{
            "id": offer, "offer_id": offer, "title": "Kettle", "handle": format!("kettle-{number}"), "sku": "K-1",
            "quantity": 2, "unit_price": {"amount": 12_900, "currency": "PLN"}, "fulfillment_status": "pending",
        }],
        "is_test": false, "updated_at": time(1),
    });
    let is = async |expected: &Value| {
        assert_eq!(&world.order(&trader.token, &placed.id).await, expected);
        assert_eq!(
            &world.order(&trader.token, "PL-2040-1").await,
            expected,
            "by its number"
        );
        let list = world.get(&trader.token, "/v1/orders").await.expect(200).json();
        assert_eq!(list, json!({"items": [expected], "next": null}));
    };
    let set = |expected: &mut Value, changes: Value| {
        expected
            .as_object_mut()
            .unwrap()
            .extend(changes.as_object().unwrap().clone());
    };
    is(&expected).await;
    at(2).await;
    world.settle(&placed.id, "payment").await.expect(200);
    set(
        &mut expected,
        json!({
            "status": "processing", "payment_status": "paid", "paid_at": time(2), "updated_at": time(2),
            "buyer": body["buyer"], "shipping_address": body["shipping_address"],
        }),
    );
    expected["items"][0]["fulfillment_status"] = json!("processing");
    is(&expected).await;
    at(3).await;
    world
        .ship(&trader.token, &placed.id, &parcel("0000123456789Q"))
        .await
        .expect(201);
    let shipment = json!({
        "carrier": "DPD", "tracking_number": "0000123456789Q", "tracking_status": null,
        "tracking_url": "https://tracktrace.dpd.com.pl/parcelDetails?typ=1&p1=0000123456789Q",
    });
    set(
        &mut expected,
        json!({"status": "shipped", "shipped_at": time(3), "updated_at": time(3), "shipment": shipment}),
    );
    expected["items"][0]["fulfillment_status"] = json!("shipped");
    is(&expected).await;
    at(4).await;
    world.settle(&placed.id, "delivery").await.expect(200);
    set(
        &mut expected,
        json!({"status": "delivered", "delivered_at": time(4), "updated_at": time(4)}),
    );
    expected["items"][0]["fulfillment_status"] = json!("delivered");
    is(&expected).await;
}

#[tokio::test]
async fn what_an_order_does_not_have_is_null() {
    let (world, trader, offer) = world_of_trade().await;
    let bare = json!({"items": [{"seller_id": trader.seller.id, "offer_id": offer, "quantity": 1}]});
    let placed = world.place(&bare).await.expect(201).json();
    let id = placed["order_id"].as_str().unwrap();
    world.settle(id, "payment").await.expect(200);
    let order = world.order(&trader.token, id).await;
    let mut names: Vec<_> = order.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    let mut all = FIELDS;
    all.sort_unstable();
    assert_eq!(names, all);
    for field in [
        "payment_method",
        "delivery_method",
        "shipment",
        "shipped_at",
        "delivered_at",
        "shipping_address",
    ] {
        assert_eq!(order[field], Value::Null, "{field}");
    }
    let item = &order["items"][0];
    assert_eq!(item.as_object().unwrap().len(), 8, "{item}");
    assert_eq!(item["sku"], Value::Null);
    let partly = json!({"buyer": {"name": "Ewa"}, "shipping_address": {"country": "PL"}});
    let order = world.paid(&[line(&trader.seller, &offer, 1)], partly).await;
    let order = world.order(&trader.token, &order.id).await;
    assert_eq!(
        order["buyer"],
        json!({"name": "Ewa", "email": null, "phone": null})
    );
    let address = json!({"line1": null, "line2": null, "postal_code": null, "city": null, "country": "PL"});
    assert_eq!(order["shipping_address"], address);
}

#[tokio::test]
async fn buyer_and_address_are_read_only_once_paid() {
    let (world, trader, offer) = world_of_trade().await;
    let lines = [line(&trader.seller, &offer, 1)];
    let shown = async |order: &str| {
        let order = world.order(&trader.token, order).await;
        let both = [order["buyer"].is_object(), order["shipping_address"].is_object()];
        assert_eq!(both[0], both[1], "{order}");
        (both[0], order["status"].clone(), order["payment_status"].clone())
    };
    let unpaid = world.unpaid(&lines, json!({})).await;
    assert_eq!(
        shown(&unpaid.id).await,
        (false, json!("pending"), json!("awaiting_payment"))
    );
    world.settle(&unpaid.id, "cancellation").await.expect(200);
    assert_eq!(
        shown(&unpaid.id).await,
        (false, json!("cancelled"), json!("cancelled"))
    );
    let paid = world.paid(&lines, json!({})).await;
    assert_eq!(shown(&paid.id).await, (true, json!("processing"), json!("paid")));
    world.settle(&paid.id, "cancellation").await.expect(200);
    assert_eq!(shown(&paid.id).await, (true, json!("cancelled"), json!("paid")));
}
