//! `GET /v1/orders/{id}`: an order from its seller's view, and access to it.

use blackbox::{
    Expect, Trader, World, assert_members, ids, items, line, merged, offer_body, order_body, parcel, text,
    whole,
};
use serde_json::{Value, json};

use crate::{instant, world_of_trade};

const PERSONAL: [&str; 4] = ["buyer", "shipping_address", "delivery_point", "invoice"];

async fn list(world: &World, trader: &Trader, query: &str) -> Value {
    world.read(&trader.token, &format!("/v1/orders?{query}")).await
}

#[tokio::test]
async fn every_field_is_returned_from_placing_to_delivery() {
    let (world, trader, offer) = world_of_trade().await;
    let clock = world.database.control_clock().await;
    let time = |second: u32| format!("2040-01-01T12:00:{second:02}.000001Z");
    clock.freeze(instant(&time(1))).await;
    let lines = [line(&trader.seller, &offer, 2)];
    let placed = world.unpaid(&lines, json!({"order_number": "PL-2040-1"})).await;
    let body = order_body(&lines, json!({}));
    let number = offer.rsplit('-').next().unwrap().trim_start_matches('0');
    let mut expected = json!({
        "id": placed.id, "order_number": "PL-2040-1", "status": "pending", "payment_status": "awaiting_payment",
        "payment_method": "blik", "placed_at": time(1), "paid_at": null, "shipped_at": null, "delivered_at": null,
        "delivery_method": "parcel locker", "shipped_by": "seller", "shipment": null, "buyer": null, "shipping_address": null,
        "delivery_point": null, "invoice": null,
        "items": [{
            "id": offer, "offer_id": offer, "title": "Kettle", "handle": format!("kettle-{number}"), "sku": "K-1",
            "quantity": 2, "unit_price": {"amount": 12_900, "currency": "PLN"}, "fulfillment_status": "pending",
        }],
        "is_test": false, "updated_at": time(1),
    });
    let shipment = json!({
        "carrier": "DPD", "carrier_code": "dpd", "tracking_number": "0000123456789Q", "tracking_status": null,
        "tracking_url": "https://tracktrace.dpd.com.pl/parcelDetails?typ=1&p1=0000123456789Q",
    });
    let paid = json!({
        "payment_status": "paid", "paid_at": time(2), "buyer": body["buyer"], "shipping_address": body["shipping_address"],
        "delivery_point": body["delivery_point"], "invoice": body["invoice"],
    });
    for (second, (status, changes)) in (1..).zip([
        ("pending", json!({})),
        ("processing", paid),
        ("shipped", json!({"shipped_at": time(3), "shipment": shipment})),
        ("delivered", json!({"delivered_at": time(4)})),
    ]) {
        clock.freeze(instant(&time(second))).await;
        let sent = parcel("0000123456789Q");
        match status {
            "pending" => {}
            "processing" => world.order_moved(&placed.id, "payment").await,
            "shipped" => drop(world.shipped(&trader.token, &placed.id, &sent).await),
            _ => world.order_moved(&placed.id, "delivery").await,
        }
        let moved = json!({"status": status, "updated_at": time(second)});
        expected = merged(expected, merged(moved, changes));
        expected["items"][0]["fulfillment_status"] = json!(status);
        for id in [&placed.id, "PL-2040-1"] {
            assert_eq!(world.order(&trader.token, id).await, expected, "{id}");
        }
        let listed = list(&world, &trader, "").await;
        assert_eq!(listed, json!({"items": [expected], "next": null}));
    }
}

#[tokio::test]
async fn missing_values_are_null() {
    let (world, trader, offer) = world_of_trade().await;
    let unpriced = world.any_offer(&trader.seller, json!({"price": null})).await;
    let bare = json!({"items": [{"seller_id": trader.seller.id, "offer_id": unpriced, "quantity": 1}]});
    let placed = world.place(&bare).await.expect(201).json();
    let id = text(&placed, "order_id");
    world.order_moved(&id, "payment").await;
    let order = world.order(&trader.token, &id).await;
    let missing = "payment_method delivery_method shipment shipped_at delivered_at shipping_address delivery_point invoice";
    for field in missing.split(' ') {
        assert_eq!(order[field], Value::Null, "{field}");
    }
    let item = &order["items"][0];
    assert_eq!([&item["sku"], &item["unit_price"]], [&Value::Null; 2]);
    let partly = json!({
        "buyer": {"name": "Ewa"}, "shipping_address": {"country": "PL"}, "delivery_point": {"id": "WAW01M", "city": null},
        "invoice": {},
    });
    let order = world.paid(&[line(&trader.seller, &offer, 1)], partly).await;
    let expected = json!({
        "buyer": {"name": "Ewa", "email": null, "phone": null},
        "shipping_address": {"line1": null, "line2": null, "postal_code": null, "city": null, "country": "PL"},
        "delivery_point": {
            "id": "WAW01M", "name": null, "line1": null, "line2": null, "postal_code": null, "city": null, "country": null,
        },
        "invoice": {
            "company": null, "tax_id": null, "line1": null, "line2": null, "postal_code": null, "city": null, "country": null,
        },
    });
    assert_members(&world.order(&trader.token, &order.id).await, expected.clone());
    assert_members(&world.whole_order(&order.id).await["parts"][0], expected);
}

#[tokio::test]
async fn the_buyers_data_are_returned_only_once_paid() {
    let (world, trader, offer) = world_of_trade().await;
    let shown = async |order: &str, is_shown: bool, status: &str, payment: &str| {
        let order = world.order(&trader.token, order).await;
        for field in PERSONAL {
            assert_eq!(order[field].is_object(), is_shown, "{order}");
        }
        assert_members(&order, json!({"status": status, "payment_status": payment}));
        let query = format!("fields={}&ids={}", PERSONAL.join(","), text(&order, "id"));
        let listed = list(&world, &trader, &query).await;
        for field in PERSONAL {
            assert_eq!(items(&listed)[0][field], order[field]);
        }
    };
    let lines = [line(&trader.seller, &offer, 1)];
    let unpaid = world.unpaid(&lines, json!({})).await.id;
    shown(&unpaid, false, "pending", "awaiting_payment").await;
    world.order_moved(&unpaid, "cancellation").await;
    shown(&unpaid, false, "cancelled", "cancelled").await;
    let paid = world.paid(&lines, json!({})).await.id;
    shown(&paid, true, "processing", "paid").await;
    world.order_moved(&paid, "cancellation").await;
    shown(&paid, true, "cancelled", "paid").await;
}

#[tokio::test]
async fn each_seller_of_an_order_sees_its_own_part() {
    let (world, trader, offer) = world_of_trade().await;
    let other = world.trader().await;
    let others = [
        world.any_offer(&other.seller, json!({})).await,
        world.any_offer(&other.seller, json!({})).await,
    ];
    let lines = [
        line(&other.seller, &others[0], 1),
        line(&trader.seller, &offer, 1),
        line(&other.seller, &others[1], 3),
    ];
    let order = world.paid(&lines, json!({})).await;
    let mine = world.order(&trader.token, &order.id).await;
    let theirs = world.order(&other.token, &order.id).await;
    assert_eq!((ids(&mine), ids(&theirs)), (vec![offer], others.to_vec()));
    assert_eq!(mine["shipped_by"], "marketplace");
    assert_eq!(list(&world, &trader, "").await["items"], json!([mine]));
    let shared = "id order_number buyer shipping_address delivery_point invoice placed_at paid_at payment_status shipped_by";
    for field in shared.split(' ') {
        assert_eq!(mine[field], theirs[field], "{field}");
    }
    // The parts of an order move independently.
    let shipment = json!({"seller_id": trader.seller.id, "carrier": "gls", "tracking_number": "GLS-0001"});
    world.market_ship(&order.id, &shipment).await.expect(201);
    assert_eq!(world.order(&trader.token, &order.id).await["status"], "shipped");
    assert_eq!(world.order(&other.token, &order.id).await, theirs);
    for (status, counts) in [("shipped", [1, 0]), ("processing", [0, 1])] {
        for (trader, count) in [&trader, &other].into_iter().zip(counts) {
            let list = list(&world, trader, &format!("status={status}&fields=status")).await;
            assert_eq!(items(&list).len(), count, "{status}");
        }
    }
}

#[tokio::test]
async fn another_sellers_order_is_404() {
    let (world, trader, _) = world_of_trade().await;
    let order = world.paid_order(&trader).await;
    let stranger = world.trader().await;
    let lower = order.number.to_lowercase();
    let as_number = lower.replace(|c: char| c.is_ascii_digit(), "x");
    let unknown = [&trader.seller.id, "PL-NOTHING", "%00", "%", "a%2Fb", &as_number];
    let unknown = unknown.map(|id| (&trader, id));
    let foreign = [&order.id, &order.number].map(|id| (&stranger, id.as_str()));
    for (trader, id) in foreign.into_iter().chain(unknown) {
        let answer = world.get(&trader.token, &format!("/v1/orders/{id}")).await;
        answer.is_problem(404, &[whole("not_found")]);
    }
}

#[tokio::test]
async fn test_orders_can_be_read_but_are_not_listed_and_take_no_stock() {
    let (world, trader, offer) = world_of_trade().await;
    let lines = [line(&trader.seller, &offer, 3)];
    let order = world.unpaid(&lines, json!({"is_test": true})).await;
    for id in [&order.id, &order.number] {
        assert_eq!(world.order(&trader.token, id).await["is_test"], true);
    }
    let stock = world.stock(&trader.seller, &offer).await;
    assert_eq!(stock, offer_body(0, json!({}))["stock"]);
    let since = ["placed_after", "updated_after"].map(|name| format!("{name}=2000-01-01T00:00:00Z"));
    for query in ["", "status=pending", &since[0], &since[1]] {
        let listed = list(&world, &trader, query).await;
        assert_eq!(listed, json!({"items": [], "next": null}), "{query}");
    }
}
