//! The marketplace ships.

use std::sync::{Arc, Mutex};

use ::orders::{Carrier, Lookup, MockCarrierLookup, Sighting, TrackingStatus};
use serde_json::{Value, json};

use super::fixture::{Answer, Office, uuid};
use super::orders::{order, place, shop};

async fn paid(change: impl FnOnce(&mut Value)) -> (Office, [String; 2]) {
    let (office, sellers, offers) = shop().await;
    let mut order = order(&sellers, &offers);
    change(&mut order);
    assert_eq!(place(&office, &order).await.status, 201);
    assert_eq!(office.post("/orders/SHOP-1/payment", "").await.status, 200);
    (office, sellers)
}

async fn ship(office: &Office, seller: Option<&str>) -> Answer {
    let body = json!({"seller_id": seller, "carrier": "dpd", "tracking_number": "ABC-123"});
    office.post("/orders/SHOP-1/shipment", &body.to_string()).await
}

/// Carriers that give this answer, and note whom they were asked about.
fn carriers(answer: Lookup) -> (Arc<MockCarrierLookup>, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let mut carriers = MockCarrierLookup::new();
    carriers.expect_look_up().returning({
        let asked = Arc::clone(&asked);
        move |carrier, number| {
            let asked_for = format!("{} {}", carrier.as_str(), number.as_str());
            asked.lock().unwrap().push(asked_for);
            answer.clone()
        }
    });
    (Arc::new(carriers), asked)
}

#[actix_web::test]
async fn all_parts_go_with_one_parcel_and_one_mail() {
    let (office, sellers) = paid(|_| ()).await;
    let shipped = ship(&office, None).await;
    assert_eq!(shipped.status, 201);
    let mut body = shipped.json();
    let shipments = body["shipments"].as_array_mut().unwrap();
    assert_eq!(shipments.len(), 2);
    let first = shipments[0].as_object_mut().unwrap();
    assert!(first.remove("id").unwrap().is_string());
    let expected = json!({
        "seller_id": sellers[0], "item_ids": [uuid(701)], "carrier": "dpd", "carrier_name": "DPD",
        "tracking_number": "ABC-123",
        "tracking_url": "https://tracktrace.dpd.com.pl/parcelDetails?typ=1&p1=ABC-123", "tracking_status": null,
        "delivered_already": false, "buyer_notified": true, "created_at": "2023-11-14T22:13:20.000000Z",
    });
    assert_eq!(Value::Object(first.clone()), expected);
    assert_eq!(body["order_number"], "SHOP-1");
    assert_eq!(office.store.rows().mails.len(), 1);
    let read = office.get("/orders/SHOP-1").await.json();
    assert_eq!(read["status"], "shipped");
    assert_eq!(read["parts"][1]["shipment"]["tracking_number"], "ABC-123");
    assert_eq!(ship(&office, None).await.errors(), "409 already_shipped");
    let cancelled = office.post("/orders/SHOP-1/cancellation", "").await;
    assert_eq!(cancelled.errors(), "409 already_shipped");
}

#[actix_web::test]
async fn one_part_may_go_before_the_others() {
    let (office, sellers) = paid(|_| ()).await;
    let shipped = ship(&office, Some(&sellers[1])).await;
    assert_eq!(shipped.status, 201);
    assert_eq!(shipped.json()["shipments"][0]["seller_id"], sellers[1]);
    assert_eq!(office.get("/orders/SHOP-1").await.json()["status"], "processing");
    assert_eq!(
        ship(&office, Some(&sellers[1])).await.errors(),
        "409 already_shipped"
    );
    assert_eq!(ship(&office, Some(&uuid(99))).await.errors(), "404 not_found");
    let rest = ship(&office, None).await.json();
    assert_eq!(rest["shipments"].as_array().unwrap().len(), 1);
    assert_eq!(rest["shipments"][0]["seller_id"], sellers[0]);
}

#[actix_web::test]
async fn the_carrier_is_asked_once_and_a_delivery_that_it_knows_of_is_recorded() {
    let (mut office, _) = paid(|_| ()).await;
    let (lookup, asked) = carriers(Lookup::Found(Sighting {
        status: TrackingStatus::Delivered,
        at: None,
        raw_code: "D".to_owned(),
    }));
    office.back_office.carriers = lookup;
    let shipped = ship(&office, None).await.json();
    assert_eq!(*asked.lock().unwrap(), ["dpd ABC-123"]);
    for shipment in shipped["shipments"].as_array().unwrap() {
        assert_eq!(shipment["delivered_already"], true);
        assert_eq!(shipment["buyer_notified"], false);
        assert_eq!(shipment["tracking_status"], "delivered");
    }
    assert!(office.store.rows().mails.is_empty());
    assert_eq!(office.get("/orders/SHOP-1").await.json()["status"], "delivered");
}

#[actix_web::test]
async fn nobody_is_asked_about_what_is_refused_or_only_a_test() {
    let (lookup, asked) = carriers(Lookup::Unavailable("timed out".to_owned()));
    let (mut office, _) = paid(|order| order["is_test"] = json!(true)).await;
    office.back_office.carriers = lookup;
    assert_eq!(ship(&office, Some(&uuid(99))).await.errors(), "404 not_found");
    let shipped = ship(&office, None).await;
    assert_eq!(shipped.json()["shipments"][0]["buyer_notified"], false);
    assert_eq!(ship(&office, None).await.errors(), "409 already_shipped");
    assert!(asked.lock().unwrap().is_empty());
}

#[actix_web::test]
async fn an_unpaid_or_cancelled_order_is_not_shipped() {
    let (office, sellers, offers) = shop().await;
    place(&office, &order(&sellers, &offers)).await;
    assert_eq!(ship(&office, None).await.errors(), "409 order_unpaid");
    office.post("/orders/SHOP-1/cancellation", "").await;
    assert_eq!(ship(&office, None).await.errors(), "409 order_cancelled");
}

#[actix_web::test]
async fn a_shipment_names_its_carrier_and_number() {
    let (office, _) = paid(|_| ()).await;
    let path = "/orders/SHOP-1/shipment";
    let wrong = r#"{"seller_id": "x", "carrier": "pigeon", "tracking_number": "a b", "item_ids": []}"#;
    assert_eq!(
        office.post(path, wrong).await.errors(),
        "400 validation_error seller_id, validation_error carrier, validation_error tracking_number, \
         validation_error item_ids"
    );
    for carrier in Carrier::ALL {
        let (office, _) = paid(|_| ()).await;
        let body = json!({"carrier": carrier.as_str(), "tracking_number": "ABC-123"});
        assert_eq!(office.post(path, &body.to_string()).await.status, 201);
    }
}
