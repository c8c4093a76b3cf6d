//! Permissions, carrier look-ups and notifications of shipments.

use orders::{MockCarrierLookup, MockOrderDirectory, MockOrderReader, OrderStatus, TrackingStatus};
use uuid::Uuid;

use super::*;
use crate::MockTransaction;
use crate::test_support::{chance, now, part, refusal};

fn number() -> TrackingNumber {
    TrackingNumber::new("ABC-123".to_owned()).unwrap()
}

fn report(item_ids: &[&str]) -> Report {
    Report {
        order: OrderRef::Id(Uuid::from_u128(9).into()),
        carrier: Carrier::Inpost,
        tracking_number: number(),
        item_ids: item_ids.iter().map(ToString::to_string).collect(),
    }
}

fn paid(seller: u128) -> SellerOrder {
    part(seller, 1).pay(now()).unwrap().after
}

fn reader(part: Option<SellerOrder>) -> MockOrderReader {
    let mut reader = MockOrderReader::new();
    reader.expect_order().returning(move |_, _| Ok(part.clone()));
    reader
}

/// Finds these parts, and expects this many saves and mails.
fn store(parts: Vec<SellerOrder>, saves: usize, mails: usize) -> MockTransaction {
    let mut store = MockTransaction::new();
    let first = parts.first().cloned();
    store.expect_lock_part().returning(move |_, _| Ok(first.clone()));
    store.expect_lock_order().returning(move |_| Ok(parts.clone()));
    store.expect_save_parts().times(saves).returning(|_| Ok(()));
    store.expect_queue_mail().times(mails).returning(|_| Ok(()));
    store
}

async fn check(part: Option<SellerOrder>, items: &[&str]) -> Result<SellerOrder, Failure<Refusal>> {
    check_report(&reader(part), Uuid::from_u128(1).into(), &report(items)).await
}

#[tokio::test]
async fn items_are_looked_at_before_the_state() {
    let own = paid(1).items[0].offer.to_string();
    assert!(check(Some(paid(1)), &[&own]).await.is_ok());
    let unpaid = check(Some(part(1, 1)), &["not-an-id", &own]).await.unwrap_err();
    let Failure::Refused(Refusal::Items(violations)) = unpaid else {
        panic!("{unpaid}")
    };
    assert_eq!(
        violations.iter().map(|(path, _)| path).collect::<Vec<_>>(),
        ["item_ids[0]"]
    );
    assert!(matches!(
        check(None, &[]).await,
        Err(Failure::Refused(Refusal::NoSuchOrder))
    ));
}

#[tokio::test]
async fn an_order_of_several_sellers_names_the_callers_items() {
    let several = SellerOrder {
        several_sellers: true,
        ..paid(1)
    };
    let own = own_items(&several);
    let failure = check(Some(several), &[]).await.unwrap_err();
    let Failure::Refused(Refusal::Impossible { refused, own_items }) = failure else {
        panic!("{failure}")
    };
    assert_eq!((refused.reason, own_items), (Reason::SeveralSellers, own));
}

#[tokio::test]
async fn neither_test_orders_nor_other_carriers_are_looked_up() {
    let never = MockCarrierLookup::new();
    assert_eq!(ask_carrier(&never, true, Carrier::Dpd, &number()).await, None);
    assert_eq!(ask_carrier(&never, false, Carrier::Other, &number()).await, None);
    let mut broken = MockCarrierLookup::new();
    broken
        .expect_look_up()
        .once()
        .returning(|_, _| Lookup::Unavailable("timed out".to_owned()));
    assert_eq!(ask_carrier(&broken, false, Carrier::Dpd, &number()).await, None);
}

#[tokio::test]
async fn the_mail_is_queued_with_the_shipment_unless_the_parcel_has_arrived() {
    let seller = Uuid::from_u128(1).into();
    for (status, mailed) in [(TrackingStatus::InTransit, 1), (TrackingStatus::Delivered, 0)] {
        let sighting = Sighting {
            status,
            at: None,
            raw_code: String::new(),
        };
        let store = store(vec![paid(1)], 1, mailed);
        let (report, sighting) = (report(&[]), Some(sighting));
        let after = record_report(&store, &chance(), seller, &report, sighting, now())
            .await
            .unwrap();
        assert_eq!(after.parcel().unwrap().buyer_notified, mailed == 1);
    }
}

#[tokio::test]
async fn what_was_fine_at_the_check_may_be_shipped_meanwhile() {
    let new = NewShipment {
        id: Uuid::nil().into(),
        carrier: Carrier::Dpd,
        tracking_number: number(),
        sighting: None,
    };
    let shipped = paid(1).ship(new, Cause::Seller, now()).unwrap().after;
    let seller = Uuid::from_u128(1).into();
    let store = store(vec![shipped], 0, 0);
    let refused = record_report(&store, &chance(), seller, &report(&[]), None, now()).await;
    assert!(
        matches!(refusal(refused), Refusal::Impossible { refused, .. } if refused.reason == Reason::AlreadyShipped)
    );
}

fn marketplace(seller: Option<u128>) -> MarketplaceShipment {
    MarketplaceShipment {
        order: OrderRef::Id(Uuid::from_u128(9).into()),
        seller: seller.map(|seller| Uuid::from_u128(seller).into()),
        carrier: Carrier::Gls,
        tracking_number: number(),
    }
}

#[tokio::test]
async fn the_marketplace_ships_what_is_left_with_one_mail() {
    let several = |seller| SellerOrder {
        several_sellers: true,
        ..paid(seller)
    };
    let ship = async |parts: Vec<SellerOrder>, shipment: MarketplaceShipment, saves, mailed| {
        let store = store(parts, saves, mailed);
        record_marketplace_shipment(&store, &chance(), &shipment, None, now()).await
    };
    let first = ship(vec![several(1), several(2)], marketplace(Some(1)), 1, 1)
        .await
        .unwrap();
    assert_eq!(first.len(), 1);
    let all = ship(vec![first[0].clone(), several(2)], marketplace(None), 1, 1)
        .await
        .unwrap();
    assert_eq!(
        all.iter()
            .map(|part| part.seller.uuid().as_u128())
            .collect::<Vec<_>>(),
        [2]
    );
    let again = ship(vec![first[0].clone(), all[0].clone()], marketplace(None), 0, 0)
        .await
        .unwrap_err();
    assert!(matches!(
        again,
        Failure::Refused(Refusal::Impossible { refused, .. }) if refused.status == OrderStatus::Shipped
    ));
    let nobody = ship(vec![several(1)], marketplace(Some(7)), 0, 0)
        .await
        .unwrap_err();
    assert!(matches!(nobody, Failure::Refused(Refusal::NoSuchOrder)));
}

#[tokio::test]
async fn what_the_marketplace_cannot_ship_is_refused_before_a_carrier_is_asked() {
    let check = async |parts: Vec<SellerOrder>, seller| {
        let mut directory = MockOrderDirectory::new();
        directory.expect_parts().returning(move |_| Ok(parts.clone()));
        check_marketplace_shipment(&directory, &marketplace(seller)).await
    };
    let fine = check(vec![paid(1), paid(2)], Some(2)).await.unwrap();
    assert_eq!(fine, [paid(2)]);
    assert_eq!(check(vec![paid(1), paid(2)], None).await.unwrap().len(), 2);
    assert!(matches!(
        check(vec![part(1, 1)], None).await,
        Err(Failure::Refused(Refusal::Impossible { refused, .. })) if refused.reason == Reason::Unpaid
    ));
    for (parts, seller) in [(vec![], None), (vec![paid(1)], Some(7))] {
        assert!(matches!(
            check(parts, seller).await,
            Err(Failure::Refused(Refusal::NoSuchOrder))
        ));
    }
}
