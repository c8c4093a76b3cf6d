//! What the tests of writing share: a caller that may do everything, orders, transactions, requests with a body.

use std::sync::{Arc, Mutex};

use actix_web::test::TestRequest;
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{Claimed, Money};
use oauth::{Principal, ScopeSet};
use offers::Offer;
use orders::{
    Buyer, Carrier, Cause, Lookup, NewShipment, OrderItem, OrderNumber, OrderState, SellerOrder,
    ShippingAddress, Sighting, TrackingNumber, TrackingStatus,
};
use serde_json::Value;
use usecases::MockTransaction;
use uuid::Uuid;

use super::fixture::{Answered, Fixture, OFFER, good, now, offer, principal};

pub(crate) const ORDER: &str = "0197a5c4-0000-7000-8000-00000000000d";
pub(crate) const SHIPMENTS: &str = "/v1/orders/PL-2026-17/shipments";
pub(crate) const PARCEL: &str = r#"{"carrier":"inpost","tracking_number":"520-ABC-17"}"#;

/// A caller with every scope.
pub(crate) fn writer() -> Principal {
    let mut caller = principal();
    caller.scopes = ScopeSet::all();
    caller
}

/// The clock of the transactions.
pub(crate) fn later() -> DateTime<Utc> {
    now() + TimeDelta::hours(3)
}

/// An order that waits for its payment.
pub(crate) fn unpaid() -> SellerOrder {
    let item = |offer, title: &str, amount: Option<i64>| OrderItem {
        offer,
        title: Some(title.to_owned()),
        handle: None,
        sku: Some("K-17".to_owned()),
        quantity: 2,
        taken: 2,
        unit_price: amount.map(|amount| Money::pln(amount).unwrap()),
    };
    SellerOrder {
        seller: principal().seller,
        id: ORDER.parse().unwrap(),
        number: OrderNumber::new("PL-2026-17".to_owned()).unwrap(),
        is_test: false,
        several_sellers: false,
        payment_method: Some("blik".to_owned()),
        delivery_method: None,
        placed_at: now(),
        buyer: Some(Buyer {
            name: Some("Ewa Żak".to_owned()),
            email: Some("ewa@example.com".to_owned()),
            phone: None,
        }),
        shipping_address: Some(ShippingAddress {
            line1: Some("Długa 1".to_owned()),
            line2: None,
            postal_code: Some("00-001".to_owned()),
            city: Some("Warszawa".to_owned()),
            country: "PL".to_owned(),
        }),
        items: vec![
            item(OFFER.parse().unwrap(), "Czajnik", Some(19_900)),
            item(Uuid::from_u128(0xe).into(), "Kubek", None),
        ],
        state: OrderState::Pending,
        updated_at: now(),
    }
}

/// The same, paid an hour later.
pub(crate) fn paid() -> SellerOrder {
    unpaid().pay(now() + TimeDelta::hours(1)).unwrap().after
}

/// The same, shipped an hour after that.
pub(crate) fn shipped() -> SellerOrder {
    let new = NewShipment {
        id: Uuid::from_u128(0xf).into(),
        carrier: Carrier::Dpd,
        tracking_number: TrackingNumber::new("0000-17".to_owned()).unwrap(),
        sighting: Some(sighting(TrackingStatus::InTransit)),
    };
    let at = now() + TimeDelta::hours(2);
    paid().ship(new, Cause::Seller, at).unwrap().after
}

pub(crate) fn sighting(status: TrackingStatus) -> Sighting {
    Sighting {
        status,
        at: None,
        raw_code: "17".to_owned(),
    }
}

/// A transaction in which nothing is expected yet.
pub(crate) fn transaction() -> MockTransaction {
    let mut transaction = MockTransaction::new();
    transaction.expect_now().returning(later);
    transaction
}

/// A transaction that finds an offer.
pub(crate) fn finding(offer: Option<Offer>) -> MockTransaction {
    let mut transaction = transaction();
    transaction
        .expect_lock_offers()
        .withf(|seller, ids| *seller == principal().seller && ids == [OFFER.parse().unwrap()])
        .returning(move |_, _| Ok(offer.clone().into_iter().collect()));
    transaction
}

/// A transaction that patches an offer and commits.
pub(crate) fn patching() -> MockTransaction {
    let mut transaction = finding(Some(offer()));
    transaction.expect_save_offers().once().returning(|_, _| Ok(()));
    transaction.expect_commit().once().returning(|| Ok(()));
    transaction
}

impl Fixture {
    /// Lets every request of the writer through.
    pub(crate) fn writing() -> Self {
        Self::admitting(writer())
    }

    /// The transactions that are opened, in this order and no others.
    pub(crate) fn transactions(mut self, transactions: Vec<MockTransaction>) -> Self {
        let left = Mutex::new(transactions.into_iter());
        self.units.expect_begin().returning(move || {
            let next = left.lock().unwrap().next();
            Ok(Box::new(next.expect("no transaction is expected here")))
        });
        self
    }

    /// The claim of the one request is answered so.
    pub(crate) fn claimed(mut self, claimed: Claimed) -> Self {
        let answer = move |_: &_, _| Ok(claimed.clone());
        self.claims.expect_claim().once().returning(answer);
        self
    }

    /// The order that a seller's request finds.
    pub(crate) fn with_order(mut self, order: Option<SellerOrder>) -> Self {
        self.orders
            .expect_order()
            .returning(move |_, _| Ok(order.clone()));
        self
    }

    /// What the carrier says, asked once.
    pub(crate) fn with_carrier(mut self, says: Lookup) -> Self {
        self.carriers
            .expect_look_up()
            .once()
            .return_once(move |_, _| says);
        self
    }
}

/// Anything that is written down while a test runs.
#[derive(Clone, Default)]
pub(crate) struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    pub(crate) fn add(&self, note: impl Into<String>) {
        self.0.lock().unwrap().push(note.into());
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// A PATCH of the offer with this body.
pub(crate) fn patch(body: &str) -> TestRequest {
    good(&format!("/v1/offers/{OFFER}"))
        .method(actix_web::http::Method::PATCH)
        .insert_header(("content-type", "application/json"))
        .set_payload(body.to_owned())
}

/// A POST with this body.
pub(crate) fn post(url: &str, body: &str) -> TestRequest {
    good(url)
        .method(actix_web::http::Method::POST)
        .insert_header(("content-type", "application/json"))
        .set_payload(body.to_owned())
}

impl Answered {
    /// Code and path of each entry.
    pub(crate) fn entries(&self) -> Vec<(String, Option<String>)> {
        let json = self.json();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let entries = json["errors"].as_array().unwrap().iter();
        entries
            .map(|entry| (text(&entry["code"]).unwrap(), text(&entry["path"])))
            .collect()
    }
}
