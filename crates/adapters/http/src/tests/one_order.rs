//! `GET /v1/orders/{id}`: an order in each of its states.

use chrono::TimeDelta;
use orders::{Delivery, OrderRef, OrderStatus, SellerOrder};
use serde_json::Value;

use super::fixture::{Fixture, now, principal};
use super::trade::{ORDER, later, paid, shipped, unpaid};

async fn read(order: SellerOrder) -> Value {
    let fixture = Fixture::admitting(principal()).with_order(Some(order));
    let answered = fixture.get(&format!("/v1/orders/{ORDER}")).await;
    assert_eq!(answered.status, 200);
    answered.json()
}

#[actix_web::test]
async fn a_shipped_order_whole() {
    let fixture = Fixture::admitting(principal()).with_order(Some(shipped()));
    let answered = fixture.get(&format!("/v1/orders/{ORDER}")).await;
    insta::assert_snapshot!(answered.text(), @r#"{"id":"0197a5c4-0000-7000-8000-00000000000d","order_number":"PL-2026-17","status":"shipped","payment_status":"paid","payment_method":"blik","placed_at":"2023-11-14T22:13:20.000000Z","paid_at":"2023-11-14T23:13:20.000000Z","shipped_at":"2023-11-15T00:13:20.000000Z","delivered_at":null,"delivery_method":null,"shipment":{"carrier":"DPD","tracking_number":"0000-17","tracking_url":"https://tracktrace.dpd.com.pl/parcelDetails?typ=1&p1=0000-17","tracking_status":"in_transit"},"buyer":{"name":"Ewa Żak","email":"ewa@example.com","phone":null},"shipping_address":{"line1":"Długa 1","line2":null,"postal_code":"00-001","city":"Warszawa","country":"PL"},"items":[{"id":"0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e","offer_id":"0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e","title":"Czajnik","handle":null,"sku":"K-17","quantity":2,"unit_price":{"amount":19900,"currency":"PLN"},"fulfillment_status":"shipped"},{"id":"00000000-0000-0000-0000-00000000000e","offer_id":"00000000-0000-0000-0000-00000000000e","title":"Kubek","handle":null,"sku":"K-17","quantity":2,"unit_price":null,"fulfillment_status":"shipped"}],"is_test":false,"updated_at":"2023-11-15T00:13:20.000000Z"}"#);
}

#[actix_web::test]
async fn an_unpaid_order_hides_its_buyer() {
    let fixture = Fixture::admitting(principal()).with_order(Some(unpaid()));
    let answered = fixture.get(&format!("/v1/orders/{ORDER}")).await;
    insta::assert_snapshot!(answered.text(), @r#"{"id":"0197a5c4-0000-7000-8000-00000000000d","order_number":"PL-2026-17","status":"pending","payment_status":"awaiting_payment","payment_method":"blik","placed_at":"2023-11-14T22:13:20.000000Z","paid_at":null,"shipped_at":null,"delivered_at":null,"delivery_method":null,"shipment":null,"buyer":null,"shipping_address":null,"items":[{"id":"0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e","offer_id":"0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e","title":"Czajnik","handle":null,"sku":"K-17","quantity":2,"unit_price":{"amount":19900,"currency":"PLN"},"fulfillment_status":"pending"},{"id":"00000000-0000-0000-0000-00000000000e","offer_id":"00000000-0000-0000-0000-00000000000e","title":"Kubek","handle":null,"sku":"K-17","quantity":2,"unit_price":null,"fulfillment_status":"pending"}],"is_test":false,"updated_at":"2023-11-14T22:13:20.000000Z"}"#);
    assert!(!answered.text().contains("Ewa"));
}

#[actix_web::test]
async fn the_buyer_is_there_from_the_payment_on_and_not_without() {
    let cancelled = |order: SellerOrder| order.cancel(later()).unwrap().after;
    for (order, status, payment, shown) in [
        (unpaid(), "pending", "awaiting_payment", false),
        (paid(), "processing", "paid", true),
        (shipped(), "shipped", "paid", true),
        (cancelled(unpaid()), "cancelled", "cancelled", false),
        (cancelled(paid()), "cancelled", "paid", true),
        (paid().erase_buyer(later()).after, "processing", "paid", false),
    ] {
        let json = read(order).await;
        assert_eq!(
            (&json["status"], &json["payment_status"]),
            (&status.into(), &payment.into())
        );
        for personal in ["buyer", "shipping_address"] {
            assert_eq!(json[personal].is_object(), shown, "{status} {payment} {personal}");
            assert_eq!(json[personal].is_null(), !shown, "{status} {payment} {personal}");
        }
        for item in json["items"].as_array().unwrap() {
            assert_eq!(
                (&item["fulfillment_status"], &item["id"]),
                (&status.into(), &item["offer_id"])
            );
        }
    }
}

#[actix_web::test]
async fn a_delivery_that_nobody_reported_as_shipped_has_no_shipment() {
    let at = Some(now() + TimeDelta::hours(2));
    let order = paid().deliver(Delivery { at }, later()).unwrap().after;
    assert_eq!(order.status(), OrderStatus::Delivered);
    let json = read(order).await;
    assert_eq!(json["shipment"], Value::Null);
    let at = "2023-11-15T00:13:20.000000Z";
    assert_eq!(
        (&json["shipped_at"], &json["delivered_at"]),
        (&at.into(), &at.into())
    );
}

#[actix_web::test]
async fn a_test_order_is_read_like_any() {
    let order = SellerOrder {
        is_test: true,
        ..paid()
    };
    assert_eq!(read(order).await["is_test"], true);
}

#[actix_web::test]
async fn an_order_is_named_by_id_or_number() {
    let number = OrderRef::parse("PL-2026-17").unwrap();
    let id = OrderRef::Id(ORDER.parse().unwrap());
    for (named, expected) in [
        (ORDER, id.clone()),
        (&ORDER.replace('-', "%2D"), id),
        ("PL-2026-17", number.clone()),
        ("PL%2d2026-17", number),
    ] {
        let mut fixture = Fixture::admitting(principal());
        fixture
            .orders
            .expect_order()
            .once()
            .withf(move |seller, order| *seller == principal().seller && *order == expected)
            .returning(|_, _| Ok(Some(paid())));
        let answered = fixture
            .get(&format!("/v1/orders/{named}?fields=order_number"))
            .await;
        let expected = format!(r#"{{"id":"{ORDER}","order_number":"PL-2026-17"}}"#);
        assert_eq!(answered.text(), expected, "{named}");
    }
}

#[actix_web::test]
async fn what_is_not_there_or_cannot_be_is_not_found() {
    let absent = Fixture::admitting(principal()).with_order(None);
    let answered = absent.get("/v1/orders/PL-2026-18").await;
    assert_eq!(answered.refusal(), (404, "not_found".to_owned()));
    for named in [
        "pl-2026-17",
        "A_1",
        "%00",
        "%zz",
        &ORDER.to_uppercase(),
        &"A".repeat(41),
    ] {
        let answered = Fixture::admitting(principal())
            .get(&format!("/v1/orders/{named}"))
            .await;
        assert_eq!(answered.refusal(), (404, "not_found".to_owned()), "{named}");
    }
}
