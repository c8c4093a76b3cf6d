//! Who sees what of an order: several sellers, strangers, test orders.

use blackbox::{Expect, line, offer_body, parcel};
use serde_json::{Value, json};

use crate::world_of_trade;

#[tokio::test]
async fn an_order_of_several_sellers_shows_each_its_own_part() {
    let (world, trader, offer) = world_of_trade().await;
    let other = world.trader().await;
    let others: [String; 2] = [
        world.any_offer(&other.seller, json!({})).await,
        world.any_offer(&other.seller, json!({})).await,
    ];
    let lines = [
        line(&other.seller, &others[0], 1),
        line(&trader.seller, &offer, 1),
        line(&other.seller, &others[1], 3),
    ];
    let order = world.paid(&lines, json!({})).await;
    let items = |order: &Value| -> Vec<String> {
        order["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let (mine, theirs) = (
        world.order(&trader.token, &order.id).await,
        world.order(&other.token, &order.id).await,
    );
    assert_eq!(
        (items(&mine), items(&theirs)),
        (vec![offer.clone()], others.to_vec())
    );
    for field in [
        "id",
        "order_number",
        "buyer",
        "shipping_address",
        "placed_at",
        "paid_at",
        "payment_status",
    ] {
        assert_eq!(mine[field], theirs[field], "{field}");
    }
    // One part moves without the other.
    let shipment = json!({"seller_id": trader.seller.id, "carrier": "gls", "tracking_number": "GLS-0001"});
    world.market_ship(&order.id, &shipment).await.expect(201);
    assert_eq!(world.order(&trader.token, &order.id).await["status"], "shipped");
    assert_eq!(world.order(&other.token, &order.id).await, theirs);
    for filter in ["status=shipped", "status=processing"] {
        let list = |token: String| {
            let world = &world;
            async move {
                world
                    .get(&token, &format!("/v1/orders?{filter}&fields=status"))
                    .await
                    .expect(200)
                    .json()["items"]
                    .as_array()
                    .unwrap()
                    .len()
            }
        };
        let shipped = filter.ends_with("shipped");
        assert_eq!(
            (list(trader.token.clone()).await, list(other.token.clone()).await),
            (usize::from(shipped), usize::from(!shipped))
        );
    }
}

#[tokio::test]
async fn nobody_elses_order_is_found() {
    let (world, trader, _) = world_of_trade().await;
    let order = world.paid_order(&trader).await;
    let stranger = world.trader().await;
    let missing = trader.seller.id.clone();
    for (token, id) in [
        (&stranger.token, order.id.as_str()),
        (&stranger.token, order.number.as_str()),
        (&trader.token, missing.as_str()),
        (&trader.token, "PL-NOTHING"),
        (&trader.token, "%00"),
        (&trader.token, "%"),
        (&trader.token, "a%2Fb"),
        (
            &trader.token,
            &order
                .number
                .to_lowercase()
                .replace(|c: char| c.is_ascii_digit(), "x"),
        ),
    ] {
        world
            .get(token, &format!("/v1/orders/{id}"))
            .await
            .is_problem(404, &[blackbox::whole("not_found")]);
    }
    let reader = world
        .personal_token(&trader.seller, &["offers:read", "shipments:write"])
        .await
        .token;
    for path in [format!("/v1/orders/{}", order.id), "/v1/orders".to_owned()] {
        world.get(&reader, &path).await.refused(403, "insufficient_scope");
    }
}

#[tokio::test]
async fn test_orders_are_read_by_id_and_number_and_never_listed() {
    let (world, trader, offer) = world_of_trade().await;
    let order = world
        .unpaid(&[line(&trader.seller, &offer, 3)], json!({"is_test": true}))
        .await;
    for id in [&order.id, &order.number] {
        assert_eq!(world.order(&trader.token, id).await["is_test"], true);
    }
    assert_eq!(
        world.fed_offer(&trader.seller, &offer).await["stock"],
        offer_body(0, json!({}))["stock"]
    );
    let listed = async |query: &str| {
        let list = world
            .get(&trader.token, &format!("/v1/orders?{query}"))
            .await
            .expect(200)
            .json();
        assert_eq!(list, json!({"items": [], "next": null}), "{query}");
    };
    for query in [
        "",
        "status=pending",
        "placed_after=2000-01-01T00:00:00Z",
        "updated_after=2000-01-01T00:00:00Z",
    ] {
        listed(query).await;
    }
    world.settle(&order.id, "payment").await.expect(200);
    let shipped = world
        .ship(&trader.token, &order.id, &parcel("TEST-0001"))
        .await
        .expect(201)
        .json();
    assert_eq!(
        (&shipped["buyer_notified"], &shipped["delivered_already"]),
        (&json!(false), &json!(false))
    );
    assert_eq!(world.mails(&order.id).await, 0);
    for query in ["", "status=shipped"] {
        listed(query).await;
    }
}
