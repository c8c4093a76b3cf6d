//! Permissions, carrier look-ups and notifications of shipments.

use chrono::TimeDelta;
use orders::MockOrderDirectory;
use uuid::Uuid;

use super::*;
use crate::MockTransaction;
use crate::test_support::{chance, now, part, refusal};

fn number() -> TrackingNumber {
    TrackingNumber::new("ABC-123".to_owned()).unwrap()
}

fn paid(seller: u128) -> SellerOrder {
    part(seller, 1).pay(now()).unwrap().after
}

fn several(seller: u128) -> SellerOrder {
    let mut part = paid(seller);
    part.several_sellers = true;
    part
}

/// True for this reason, with seller 1's own items.
fn is_impossible(refusal: &ShippingRefusal, reason: Reason) -> bool {
    let own = paid(1).items[0].offer;
    matches!(refusal, ShippingRefusal::Impossible { refused, own_items } if refused.reason == reason && *own_items == [own])
}

const SCHEDULE: PollSchedule = PollSchedule {
    interval: TimeDelta::minutes(15),
};

/// Finds these parts, and expects this many saves, and this many parcels in transit, each with a mail.
fn store(parts: Vec<SellerOrder>, saves: usize, in_transit: usize) -> MockTransaction {
    let mut store = MockTransaction::new();
    let first = parts.first().cloned();
    store.expect_lock_part().returning(move |_, _| Ok(first.clone()));
    store.expect_lock_order().returning(move |_| Ok(parts.clone()));
    store.expect_save_parts().times(saves).returning(|_| Ok(()));
    store
        .expect_begin_tracking()
        .times(in_transit)
        .withf(|parcel| parcel.shipped_at == now() && parcel.due_at == now() + TimeDelta::minutes(30))
        .returning(|_| Ok(()));
    store.expect_queue_mail().times(in_transit).returning(|_| Ok(()));
    store
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
async fn the_marketplace_ships_the_remaining_parts_with_one_mail() {
    let ship = async |parts: &[SellerOrder], seller, recorded| {
        let store = store(parts.to_vec(), recorded, recorded);
        record_marketplace_shipment(&store, &chance(), &marketplace(seller), None, SCHEDULE, now()).await
    };
    let first = ship(&[several(1), several(2)], Some(1), 1).await.unwrap();
    assert_eq!(first.len(), 1);
    let rest = ship(&[first[0].clone(), several(2)], None, 1).await.unwrap();
    assert_eq!((rest.len(), rest[0].seller), (1, several(2).seller));
    let again = refusal(ship(&[first[0].clone(), rest[0].clone()], None, 0).await);
    assert!(is_impossible(&again, Reason::AlreadyShipped), "{again}");
    let unknown = refusal(ship(&[several(1)], Some(7), 0).await);
    assert_eq!(unknown, ShippingRefusal::NoSuchOrder);
}

#[tokio::test]
async fn the_marketplaces_shipment_is_checked_before_a_carrier_is_asked() {
    let check = async |parts: &[SellerOrder], seller| {
        let (mut directory, parts) = (MockOrderDirectory::new(), parts.to_vec());
        directory.expect_parts().returning(move |_| Ok(parts.clone()));
        check_marketplace_shipment(&directory, &marketplace(seller)).await
    };
    let both = [paid(1), paid(2)];
    assert_eq!(check(&both, Some(2)).await.unwrap(), [paid(2)]);
    assert_eq!(check(&both, None).await.unwrap().len(), 2);
    let unpaid = refusal(check(&[part(1, 1)], None).await);
    assert!(is_impossible(&unpaid, Reason::Unpaid), "{unpaid}");
    for (parts, seller) in [(&[][..], None), (&both, Some(7))] {
        assert_eq!(refusal(check(parts, seller).await), ShippingRefusal::NoSuchOrder);
    }
}
