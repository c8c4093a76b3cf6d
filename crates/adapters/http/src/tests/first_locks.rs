//! What is known to be locked first is told when the transaction is opened, through everything that stands in between.

use actix_web::test::TestRequest;
use orders::{Lookup, OrderRef};
use usecases::FirstLock;

use super::fixture::{Fixture, OFFER, principal, unavailable};
use super::grants::refresh;
use super::token_endpoint::{application, knowing};
use super::trade::{PARCEL, SHIPMENTS, paid, patch, post};

/// The store is away when the transaction is opened in this way; any other way is not expected, and would be answered without
/// the advice to come back.
async fn opens(
    mut fixture: Fixture,
    request: TestRequest,
    how: impl Fn(&FirstLock) -> bool + Send + 'static,
) {
    fixture
        .units
        .expect_begin_locking()
        .once()
        .withf(how)
        .returning(|_| Err(unavailable()));
    let answered = fixture.send(request).await;
    assert_eq!(answered.status, 500, "{}", answered.text());
    assert_eq!(answered.header("retry-after"), Some("1"));
}

#[actix_web::test]
async fn a_change_locks_its_offer() {
    let first = FirstLock::Offer(principal().seller, OFFER.parse().unwrap());
    opens(Fixture::writing(), patch(r#"{"stock":1}"#), move |lock| {
        *lock == first
    })
    .await;
}

#[actix_web::test]
async fn a_shipment_locks_its_part_of_the_order() {
    let number = OrderRef::parse("PL-2026-17").unwrap();
    let first = FirstLock::Part(principal().seller, number);
    let mut fixture = Fixture::writing().with_order(Some(paid()));
    fixture
        .carriers
        .expect_look_up()
        .returning(|_, _| Lookup::NotFound);
    opens(fixture, post(SHIPMENTS, PARCEL), move |lock| *lock == first).await;
}

#[actix_web::test]
async fn a_refreshed_pair_locks_its_token() {
    opens(knowing(application()), refresh(), |lock| {
        matches!(lock, FirstLock::RefreshToken(_))
    })
    .await;
}
