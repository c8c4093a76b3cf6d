//! `POST /v1/orders/{id}/shipments`: what it records, whom it asks, what it answers.

use orders::{
    Carrier, Lookup, OrderEventKind, OrderRef, SellerOrder, Sighting, TrackingNumber, TrackingStatus,
};
use usecases::MockTransaction;

use super::fixture::{Answered, Fixture, principal};
use super::trade::{Notes, PARCEL, SHIPMENTS, later, paid, post, sighting, transaction};

/// A transaction that ships this order and notes what is saved and queued.
fn shipping(order: SellerOrder, notes: &Notes) -> MockTransaction {
    let mut transaction = transaction();
    let number = OrderRef::parse("PL-2026-17").unwrap();
    transaction
        .expect_lock_part()
        .once()
        .withf(move |seller, order| *seller == principal().seller && *order == number)
        .return_once(|_, _| Ok(Some(order)));
    let saved = notes.clone();
    transaction.expect_save_parts().once().returning(move |changes| {
        for change in changes {
            let kinds: Vec<_> = change.events.iter().map(|event| name(event.kind)).collect();
            saved.add(format!("{} {}", change.after.status().as_str(), kinds.join(",")));
        }
        Ok(())
    });
    let queued = notes.clone();
    transaction.expect_queue_mail().returning(move |mail| {
        queued.add(format!("mail to {}", mail.to));
        Ok(())
    });
    let committed = notes.clone();
    transaction.expect_commit().once().returning(move || {
        committed.add("commit");
        Ok(())
    });
    transaction
}

fn name(kind: OrderEventKind) -> &'static str {
    match kind {
        OrderEventKind::Shipped => "shipped",
        OrderEventKind::Delivered => "delivered",
        OrderEventKind::Created | OrderEventKind::Paid | OrderEventKind::Cancelled => "other",
    }
}

/// Ships the order, of which a carrier says this, if one is to be asked.
async fn ship(order: SellerOrder, body: &str, says: Option<Lookup>) -> (Answered, Vec<String>) {
    let notes = Notes::default();
    let mut fixture = Fixture::writing()
        .with_order(Some(order.clone()))
        .transactions(vec![shipping(order, &notes)]);
    if let Some(says) = says {
        fixture = fixture.with_carrier(says);
    }
    let answered = fixture.send(post(SHIPMENTS, body)).await;
    (answered, notes.all())
}

#[actix_web::test]
async fn a_parcel_on_its_way() {
    let (answered, notes) = ship(paid(), PARCEL, Some(Lookup::NotFound)).await;
    assert_eq!(answered.status, 201);
    insta::assert_snapshot!(answered.text(), @r#"{"id":"00000000-0000-0000-0000-000000000001","order_id":"0197a5c4-0000-7000-8000-00000000000d","carrier":"inpost","carrier_name":"InPost","tracking_number":"520-ABC-17","tracking_url":"https://inpost.pl/sledzenie-przesylek?number=520-ABC-17","item_ids":["0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e","00000000-0000-0000-0000-00000000000e"],"delivered_already":false,"buyer_notified":true,"created_at":"2023-11-15T01:13:20.000000Z"}"#);
    assert_eq!(notes, ["shipped shipped", "mail to ewa@example.com", "commit"]);
}

#[actix_web::test]
async fn a_parcel_that_has_arrived_already() {
    let says = Sighting {
        at: Some(later() - chrono::TimeDelta::minutes(5)),
        ..sighting(TrackingStatus::Delivered)
    };
    let (answered, notes) = ship(paid(), PARCEL, Some(Lookup::Found(says))).await;
    assert_eq!(answered.status, 201);
    let json = answered.json();
    assert_eq!(
        (&json["delivered_already"], &json["buyer_notified"]),
        (&true.into(), &false.into())
    );
    assert_eq!(notes, ["delivered shipped,delivered", "commit"]);
}

#[actix_web::test]
async fn a_carrier_that_does_not_answer_usefully_hinders_nothing() {
    for says in [
        Lookup::Unavailable("timed out".to_owned()),
        Lookup::NotFound,
        Lookup::Found(sighting(TrackingStatus::InTransit)),
        Lookup::Found(sighting(TrackingStatus::Unknown)),
    ] {
        let (answered, notes) = ship(paid(), PARCEL, Some(says)).await;
        assert_eq!(answered.json()["delivered_already"], false);
        assert_eq!(notes, ["shipped shipped", "mail to ewa@example.com", "commit"]);
    }
}

#[actix_web::test]
async fn the_carrier_is_asked_about_the_number_as_it_was_sent() {
    let mut fixture = Fixture::writing()
        .with_order(Some(paid()))
        .transactions(vec![shipping(paid(), &Notes::default())]);
    let number = TrackingNumber::new("aB-0009".to_owned()).unwrap();
    fixture
        .carriers
        .expect_look_up()
        .once()
        .withf(move |carrier, asked| (*carrier, asked) == (Carrier::PocztaPolska, &number))
        .returning(|_, _| Lookup::NotFound);
    let body = r#"{"carrier":"poczta_polska","tracking_number":"aB-0009"}"#;
    let answered = fixture
        .send(post(
            &format!("{SHIPMENTS}?fields=carrier_name,tracking_url"),
            body,
        ))
        .await;
    let text = answered.text();
    assert!(
        text.contains("Poczta Polska") && text.contains("aB-0009"),
        "{text}"
    );
    let mut names: Vec<_> = answered.json().as_object().unwrap().keys().cloned().collect();
    names.sort();
    assert_eq!(names, ["carrier_name", "id", "tracking_url"]);
}

#[actix_web::test]
async fn every_carrier_is_known_and_other_is_never_asked() {
    for carrier in Carrier::ALL {
        let body = format!(r#"{{"tracking_number":"ABCD","carrier":"{}"}}"#, carrier.as_str());
        let says = (carrier != Carrier::Other).then_some(Lookup::NotFound);
        let (answered, _) = ship(paid(), &body, says).await;
        let json = answered.json();
        assert_eq!(json["carrier"], carrier.as_str());
        assert_eq!(json["carrier_name"], carrier.display_name());
        assert_eq!(json["tracking_url"].is_null(), carrier == Carrier::Other);
    }
}

#[actix_web::test]
async fn a_test_order_is_shipped_without_carrier_and_mail() {
    let order = SellerOrder {
        is_test: true,
        ..paid()
    };
    let (answered, notes) = ship(order, PARCEL, None).await;
    assert_eq!(
        (answered.status.as_u16(), &answered.json()["buyer_notified"]),
        (201, &false.into())
    );
    assert_eq!(notes, ["shipped shipped", "commit"]);
}

#[actix_web::test]
async fn named_items_do_not_limit_the_shipment() {
    let own: Vec<_> = paid().items.iter().map(|item| item.offer.to_string()).collect();
    let body = format!(
        r#"{{"carrier":"other","tracking_number":"ABCD","item_ids":["{}"]}}"#,
        own[1]
    );
    let (answered, _) = ship(paid(), &body, None).await;
    assert_eq!(answered.json()["item_ids"], serde_json::json!(own));
}
