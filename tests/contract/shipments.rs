//! `/v1/orders/{id}/shipments`: valid reports, their effects, and rejections; the list.

use blackbox::{
    Expect, all_invalid, assert_members, cases, entry, line, merged, offer_id, parcel, sorted, whole,
};
use serde_json::{Value, json};

use crate::world_of_trade;

#[tokio::test]
async fn a_shipment_with_each_carrier_is_returned_with_its_tracking_url() {
    let (world, trader, _) = world_of_trade().await;
    let carriers = "
        inpost InPost => https://inpost.pl/sledzenie-przesylek?number=Ab-1
        dhl DHL       => https://www.dhl.com/pl-pl/home/tracking.html?tracking-id=Ab-1&submit=1
        poczta_polska Poczta Polska => https://emonitoring.poczta-polska.pl/?numer=Ab-1
        dpd DPD       => https://tracktrace.dpd.com.pl/parcelDetails?typ=1&p1=Ab-1
        gls GLS       => https://gls-group.com/PL/pl/sledzenie-paczek?match=Ab-1
        ups UPS       => https://www.ups.com/track?loc=pl_PL&tracknum=Ab-1
        fedex FedEx   => https://www.fedex.com/fedextrack/?trknbr=Ab-1
        other Other   =>";
    for (names, page) in cases(carriers) {
        let (carrier, name) = names.split_once(' ').unwrap();
        let order = world.paid_order(&trader).await;
        let body = json!({"carrier": carrier, "tracking_number": "Ab-1"});
        // The order's number works in place of the id, and tracking numbers may repeat.
        let shipment = world.shipped(&trader.token, &order.number, &body).await;
        let seen = world.order(&trader.token, &order.id).await;
        let url = if page.is_empty() { Value::Null } else { json!(page) };
        let expected = json!({
            "id": shipment["id"], "order_id": order.id, "carrier": carrier, "carrier_name": name, "carrier_code": carrier,
            "tracking_number": "Ab-1",
            "tracking_url": url, "item_ids": [seen["items"][0]["id"]], "delivered_already": false, "buyer_notified": true,
            "created_at": seen["shipped_at"],
        });
        assert_eq!(shipment, expected);
        assert!(shipment["id"].is_string() && shipment["created_at"].as_str().unwrap().ends_with('Z'));
        let of_order = json!({
            "carrier": name, "carrier_code": carrier, "tracking_number": "Ab-1", "tracking_url": url, "tracking_status": null,
        });
        assert_members(&seen, json!({"shipment": of_order, "status": "shipped"}));
        assert_eq!(world.mails(&order.id).await, 1);
    }
}

#[tokio::test]
async fn the_shipments_of_an_order_are_listed() {
    let (world, trader, mine) = world_of_trade().await;
    let path = |order: &str, query: &str| format!("/v1/orders/{order}/shipments{query}");
    let listed = async |order: &str| world.read(&trader.token, &path(order, "")).await;
    let order = world.paid_order(&trader).await;
    assert_eq!(listed(&order.id).await, json!({"items": []}));
    let made = world.shipped(&trader.token, &order.id, &parcel("AAAA1")).await;
    for id in [&order.id, &order.number] {
        assert_eq!(listed(id).await, json!({"items": [made]}));
    }
    let some = world
        .read(&trader.token, &path(&order.id, "?fields=carrier_code"))
        .await;
    assert_eq!(some["items"], json!([{"id": made["id"], "carrier_code": "dpd"}]));
    let unknown = path(&order.id, "?fields=nothing");
    world.invalid(&trader.token, &unknown, "fields").await;
    let (stranger, one) = (world.trader().await, path(&order.id, ""));
    world.refuses(&stranger.token, &one, 404, "not_found").await;
    // The marketplace's shipment is listed, and only that of the seller's own part.
    let theirs = world.any_offer(&stranger.seller, json!({})).await;
    let both = [line(&trader.seller, &mine, 1), line(&stranger.seller, &theirs, 1)];
    let shared = world.paid(&both, json!({})).await;
    let part = json!({"seller_id": trader.seller.id, "carrier": "gls", "tracking_number": "AAAA2"});
    world.market_ship(&shared.id, &part).await.expect(201);
    let seen = listed(&shared.number).await;
    assert_members(&seen["items"][0], json!({"carrier": "gls", "item_ids": [mine]}));
    let others = world.read(&stranger.token, &path(&shared.id, "")).await;
    assert_eq!(others, json!({"items": []}));
    // A delivery that was recorded without a shipment.
    let order = world.paid_order(&trader).await;
    world.order_moved(&order.id, "delivery").await;
    assert_eq!(listed(&order.id).await, json!({"items": []}));
}

#[tokio::test]
async fn each_invalid_value_is_named_by_its_path_and_nothing_is_shipped() {
    let (world, trader, _) = world_of_trade().await;
    let order = world.paid_order(&trader).await;
    let many: Vec<_> = (0..1001).map(offer_id).collect();
    let long = json!({"tracking_number": "A".repeat(65)});
    for (changes, path) in [(long, "tracking_number"), (json!({"item_ids": many}), "item_ids")] {
        let body = merged(parcel("AAAA1"), changes);
        world.ship(&trader.token, &order.id, &body).await.invalid(path);
    }
    let table = r#"
        {}                                              => carrier tracking_number
        {"carrier":"DPD","tracking_number":"AAAA1"}     => carrier
        {"carrier":"dpd","tracking_number":"AAAA 1"}    => tracking_number
        {"carrier":"dpd","tracking_number":12345}       => tracking_number
        {"carrier":"dpd","tracking_number":"AAAA1","item_ids":null} => item_ids
        {"carrier":"dpd","tracking_number":"AAAA1","item_ids":[7]}  => item_ids[0]
        {"x":1,"item_ids":[],"tracking_number":"","carrier":""}     => carrier tracking_number item_ids x"#;
    let ship = async |body: &str| world.ship(&trader.token, &order.id, &body.parse().unwrap()).await;
    all_invalid(table, ship).await;
    let unshipped = world.order(&trader.token, &order.id).await;
    assert_eq!(unshipped["status"], "processing");
    for good in ["AAAA", &"9".repeat(64), "----"] {
        let order = world.paid_order(&trader).await;
        let made = world.shipped(&trader.token, &order.id, &parcel(good)).await;
        assert_eq!(made["tracking_number"], good, "neither trimmed nor re-cased");
    }
    // `fields` selects fields of the answer.
    let send = async |fields: &str| {
        let path = format!("/v1/orders/{}/shipments?fields={fields}", order.id);
        let request = world.at("POST", &path).bearer(&trader.token);
        request.json(&parcel("AAAA1")).send().await
    };
    for bad in ["nothing", ""] {
        send(bad).await.invalid("fields");
    }
    let made = send("carrier,carrier").await.expect(201).json();
    assert_eq!(made, json!({"id": made["id"], "carrier": "dpd"}));
}

#[tokio::test]
async fn item_ids_are_checked_against_the_sellers_own_items() {
    let (world, trader, first) = world_of_trade().await;
    let second = world.any_offer(&trader.seller, json!({})).await;
    let elsewhere = world.any_offer(&trader.seller, json!({})).await;
    let order = world.ordered(&trader.seller, &[&first, &second]).await;
    world.order_moved(&order.id, "payment").await;
    let ship = async |ids: &[&str]| {
        let body = merged(parcel("AAAA1"), json!({"item_ids": ids}));
        world.ship(&trader.token, &order.id, &body).await
    };
    ship(&[&first, &first]).await.invalid("item_ids[1]");
    ship(&[&first, &elsewhere]).await.invalid("item_ids[1]");
    ship(&["x", &first]).await.invalid("item_ids[0]");
    let two = ship(&[&elsewhere, &first, &offer_id(1)]).await;
    two.invalid("item_ids[0] item_ids[2]");
    let made = ship(&[&second]).await.expect(201).json();
    let all = json!([first, second]);
    // The whole order is shipped.
    assert_eq!(sorted(&made["item_ids"]), sorted(&all));
}

#[tokio::test]
async fn a_shipment_is_refused_by_the_orders_state() {
    let (world, trader, mine) = world_of_trade().await;
    let other = world.trader().await;
    let theirs = world.any_offer(&other.seller, json!({})).await;
    let both = [line(&trader.seller, &mine, 1), line(&other.seller, &theirs, 1)];
    let ship = async |order: &str| world.ship(&trader.token, order, &parcel("AAAA1")).await;
    let refused = async |order: &str, code: &str| ship(order).await.is_problem(409, &[whole(code)]);
    let order = world.unpaid(&both, json!({})).await;
    refused(&order.id, "order_unpaid").await;
    world.order_moved(&order.id, "cancellation").await;
    refused(&order.id, "order_cancelled").await;
    let order = world.paid(&both, json!({})).await;
    let answer = ship(&order.id).await;
    answer.refused(409, "multi_seller_order");
    let items = &answer.json()["errors"][0]["item_ids"];
    assert_eq!(items, &json!([mine]), "the caller's own items only");
    assert_eq!(world.mails(&order.id).await, 0);
    let part = json!({"seller_id": trader.seller.id, "carrier": "dpd", "tracking_number": "AAAA1"});
    world.market_ship(&order.id, &part).await.expect(201);
    refused(&order.number, "already_shipped").await;
}

#[tokio::test]
async fn access_is_checked_before_items_and_items_before_the_state() {
    let (world, trader, _) = world_of_trade().await;
    let order = world.paid_order(&trader).await;
    let stranger = world.trader().await;
    let foreign = merged(parcel("AAAA1"), json!({"item_ids": [offer_id(1)]}));
    for (token, id) in [
        (&stranger.token, order.id.as_str()),
        (&trader.token, "PL-NOTHING"),
        (&trader.token, "%00"),
    ] {
        let answer = world.ship(token, id, &foreign).await;
        answer.is_problem(404, &[whole("not_found")]);
    }
    world.order_moved(&order.id, "cancellation").await;
    let answer = world.ship(&trader.token, &order.id, &foreign).await;
    answer.is_problem(400, &[entry("validation_error", "item_ids[0]")]);
    let answer = world.ship(&stranger.token, &order.id, &json!({})).await;
    answer.invalid("carrier tracking_number");
    let reader = world.personal_token(&trader.seller, &["orders:read"]).await.token;
    let answer = world.ship(&reader, "PL-NOTHING", &json!({})).await;
    answer.refused(403, "insufficient_scope");
}
