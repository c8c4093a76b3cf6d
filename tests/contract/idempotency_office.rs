//! `Idempotency-Key` on the marketplace's side.

use blackbox::{Expect, parcel};
use reqwest::Method;
use serde_json::json;
use testkit::Request;

use crate::world_of_trade;

fn keyed(request: Request, key: &str) -> Request {
    request.header("idempotency-key", key)
}

#[tokio::test]
async fn every_post_of_the_back_office_takes_a_key() {
    let (world, trader, offer) = world_of_trade().await;
    let order = world
        .unpaid(&[blackbox::line(&trader.seller, &offer, 1)], json!({}))
        .await;
    let placing = blackbox::order_body(&[blackbox::line(&trader.seller, &offer, 1)], json!({}));
    let seller = format!("/sellers/{}", trader.seller.id);
    let price = json!({"price": {"amount": 5, "currency": "PLN"}});
    for (path, body) in [
        (
            "/sellers".to_owned(),
            Some(json!({"name": "K", "email": "once@shop.example"})),
        ),
        ("/orders".to_owned(), Some(placing)),
        (format!("/orders/{}/payment", order.id), None),
        (format!("/orders/{}/shipment", order.id), Some(parcel("AAAA1"))),
        (format!("/orders/{}/delivery", order.id), None),
        (format!("/orders/{}/buyer-erasure", order.id), None),
        (format!("{seller}/offers/{offer}/automatic-price"), Some(price)),
        (
            format!("{seller}/offers/{offer}/moderation"),
            Some(json!({"decision": "reject"})),
        ),
        (
            format!("{seller}/personal-tokens"),
            Some(json!({"name": "script", "scopes": ["offers:read"]})),
        ),
        (
            format!("{seller}/applications"),
            Some(world.registration(json!({}))),
        ),
    ] {
        let send = || {
            let request = keyed(world.office(Method::POST, &path), &path);
            match &body {
                Some(body) => request.json(body).send(),
                None => request.send(),
            }
        };
        let first = send().await;
        assert!(matches!(first.status, 200 | 201), "{path}: {first:?}");
        let second = send().await;
        assert_eq!(second.must("idempotent-replayed"), "true", "{path}");
        assert_eq!(
            (second.status, &second.bytes),
            (first.status, &first.bytes),
            "{path}"
        );
        let other = keyed(world.office(Method::POST, "/orders/PL-1/payment"), &path);
        other.send().await.refused(422, "idempotency_key_reused");
        for bad in ["", &"k".repeat(129)] {
            keyed(world.office(Method::POST, &path), bad)
                .send()
                .await
                .errors()
                .iter()
                .any(|(_, path)| path.as_deref() == Some("Idempotency-Key"))
                .then_some(())
                .expect("the key is refused");
        }
    }
    assert_eq!(
        world.fed_offer(&trader.seller, &offer).await["stock"],
        5,
        "two orders were placed, not three"
    );
    // PUT, PATCH and DELETE are harmless to repeat as they are, and take none.
    let n = blackbox::number_of(&json!(offer));
    for stock in [1, 2] {
        let path = format!("{seller}/offers/{offer}");
        let put = keyed(world.office(Method::PUT, &path), "put")
            .json(&blackbox::offer_body(n, json!({"stock": stock})));
        put.send().await.expect(200);
    }
    assert_eq!(world.fed_offer(&trader.seller, &offer).await["stock"], 2);
}
