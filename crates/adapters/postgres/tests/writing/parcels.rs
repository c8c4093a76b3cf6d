//! Parcels that are followed: which ones, by whom, and that no carrier keeps the others waiting.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::join_all;
use kernel::SellerId;
use orders::{
    Carrier, Cause, Delivery, DueParcel, OrderRef, SellerOrder, Sighting, TrackingQueue, TrackingStatus,
};

use crate::support::{Fixture, POLL, database, id, instant, paid, part, shipment};

const LEASE: TimeDelta = TimeDelta::minutes(5);

/// Saves the part as paid and ships it, in a transaction of its own.
async fn ship(
    fixture: &Fixture,
    part: SellerOrder,
    carrier: Carrier,
    seen: Option<TrackingStatus>,
) -> SellerOrder {
    let part = paid(part);
    fixture.save(std::slice::from_ref(&part)).await;
    let mut new = shipment(carrier);
    new.sighting = seen.map(|status| Sighting {
        status,
        at: None,
        raw_code: String::new(),
    });
    let tx = fixture.begin().await;
    let locked = tx
        .lock_part(part.seller, &OrderRef::Id(part.id))
        .await
        .unwrap()
        .unwrap();
    let change = locked.ship(new, Cause::Seller, tx.now()).unwrap();
    let after = change.after.clone();
    tx.save_parts(vec![change]).await.unwrap();
    tx.commit().await.unwrap();
    after
}

fn due(part: &SellerOrder, fence: uuid::Uuid) -> DueParcel {
    let parcel = part.parcel().unwrap();
    DueParcel {
        seller: part.seller,
        order: part.id,
        carrier: parcel.carrier,
        tracking_number: parcel.tracking_number.clone(),
        shipped_at: part.shipped_at().unwrap(),
        fence,
    }
}

async fn lease(queue: &dyn TrackingQueue, limit: u16) -> Vec<DueParcel> {
    queue.lease_parcels(id(), limit, LEASE).await.unwrap()
}

async fn frozen() -> (Fixture, testkit::TestClock, SellerId) {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant() + TimeDelta::hours(1)).await;
    let seller = fixture.seller().await;
    (fixture, clock, seller)
}

#[tokio::test]
async fn only_what_is_on_its_way_for_real_is_followed() {
    let (fixture, clock, seller) = frozen().await;
    let new = || part(seller, instant());
    let followed = ship(&fixture, new(), Carrier::Inpost, None).await;
    let arrives = ship(
        &fixture,
        new(),
        Carrier::Gls,
        Some(TrackingStatus::OutForDelivery),
    )
    .await;
    ship(
        &fixture,
        SellerOrder {
            is_test: true,
            ..new()
        },
        Carrier::Inpost,
        None,
    )
    .await;
    ship(&fixture, new(), Carrier::Other, None).await;
    ship(&fixture, new(), Carrier::Ups, Some(TrackingStatus::Delivered)).await;
    let queue = fixture.database.tracking_queue();
    assert_eq!(
        lease(&*queue, 10).await,
        [],
        "the carrier has only just been asked"
    );
    clock.advance(POLL).await;
    let fence = id();
    assert_eq!(
        queue.lease_parcels(fence, 10, LEASE).await.unwrap(),
        [due(&arrives, fence)]
    );
    clock.advance(POLL).await;
    let due_now = lease(&*queue, 10).await;
    assert!(
        due_now
            .iter()
            .any(|parcel| *parcel == due(&followed, parcel.fence)),
        "{due_now:?}"
    );
    assert_eq!(due_now.len(), 2, "the other's lease has run out");
}

#[tokio::test]
async fn a_delivery_by_any_way_ends_the_following() {
    let (fixture, clock, seller) = frozen().await;
    for by_carrier in [true, false] {
        let part = ship(&fixture, part(seller, instant()), Carrier::Fedex, None).await;
        let tx = fixture.begin().await;
        let locked = tx
            .lock_part(seller, &OrderRef::Id(part.id))
            .await
            .unwrap()
            .unwrap();
        let change = if by_carrier {
            let sighting = |status| Sighting {
                status,
                at: None,
                raw_code: String::new(),
            };
            let seen = locked.sighted(&sighting(TrackingStatus::InTransit), tx.now());
            tx.save_parts(vec![seen.clone()]).await.unwrap();
            seen.after.sighted(&sighting(TrackingStatus::Delivered), tx.now())
        } else {
            locked.deliver(Delivery { at: None }, tx.now()).unwrap()
        };
        tx.save_parts(vec![change]).await.unwrap();
        tx.commit().await.unwrap();
    }
    clock.advance(TimeDelta::days(1)).await;
    assert_eq!(lease(&*fixture.database.tracking_queue(), 10).await, []);
    assert_eq!(fixture.count("select count(*) from parcels").await, 0);
}

#[tokio::test]
async fn asking_again_is_put_off_or_ends_and_a_lost_lease_changes_nothing() {
    let (fixture, clock, seller) = frozen().await;
    let part = ship(&fixture, part(seller, instant()), Carrier::Dhl, None).await;
    let queue = fixture.database.tracking_queue();
    clock.advance(TimeDelta::hours(1)).await;
    let now: DateTime<Utc> = clock.now().await;
    let first = lease(&*queue, 10).await.remove(0);
    assert_eq!(first, due(&part, first.fence));
    clock.advance(LEASE).await;
    let second = lease(&*queue, 10).await.remove(0);
    queue.schedule_parcel(&first, None).await.unwrap();
    queue.schedule_parcel(&first, Some(now)).await.unwrap();
    assert_eq!(lease(&*queue, 10).await, [], "a lost lease changed something");
    queue
        .schedule_parcel(&second, Some(now + TimeDelta::hours(2)))
        .await
        .unwrap();
    assert_eq!(lease(&*queue, 10).await, []);
    clock.advance(TimeDelta::hours(2)).await;
    let third = lease(&*queue, 10).await.remove(0);
    queue.schedule_parcel(&third, None).await.unwrap();
    assert_eq!(fixture.count("select count(*) from parcels").await, 0);
}

/// Parcels that are due, so many of each carrier, the first carrier's longest.
async fn fill(fixture: &Fixture, counts: &[(Carrier, i64)]) {
    fixture
        .tamper("alter table parcels drop constraint parcels_seller_id_order_id_fkey")
        .await;
    for (n, (carrier, count)) in counts.iter().enumerate() {
        let carrier = carrier.as_str();
        fixture
            .tamper(&format!("insert into parcels (seller_id, order_id, shipped_at, due_at, carrier, tracking_number) \
                select gen_random_uuid(), gen_random_uuid(), api_now(), api_now() - interval '1 day' + interval '{n} hours' \
                  + i * interval '1 ms', '{carrier}', 'TN-' || i from generate_series(1, {count}) i"))
            .await;
    }
}

#[tokio::test]
async fn carriers_take_turns() {
    let fixture = Fixture::new().await;
    fill(
        &fixture,
        &[(Carrier::Inpost, 500), (Carrier::Dpd, 3), (Carrier::Ups, 40)],
    )
    .await;
    let queue = fixture.database.tracking_queue();
    let mut batches = Vec::new();
    for _ in 0..2 {
        let mut of = BTreeMap::new();
        for parcel in lease(&*queue, 20).await {
            *of.entry(parcel.carrier).or_insert(0) += 1;
        }
        batches.push(of);
    }
    let first = [(Carrier::Inpost, 9), (Carrier::Dpd, 3), (Carrier::Ups, 8)];
    let turns = |of: &BTreeMap<Carrier, i32>| {
        [Carrier::Inpost, Carrier::Dpd, Carrier::Ups].map(|carrier| of.get(&carrier).copied().unwrap_or(0))
    };
    assert_eq!(turns(&batches[0]), first.map(|(_, count)| count));
    assert_eq!(turns(&batches[1]), [10, 0, 10]);
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_at_once_take_each_parcel_once() {
    let fixture = Fixture::new().await;
    fill(
        &fixture,
        &[(Carrier::Inpost, 150), (Carrier::Dpd, 30), (Carrier::Ups, 60)],
    )
    .await;
    let workers = (0..8).map(|_| {
        let queue = database(fixture.place.url(), 2).tracking_queue();
        async move {
            let (mut taken, mut nothing) = (Vec::new(), 0);
            while nothing < 3 {
                let due = lease(&*queue, 6).await;
                assert!(due.len() <= 6);
                nothing = if due.is_empty() { nothing + 1 } else { 0 };
                taken.extend(due.iter().map(|parcel| parcel.order.uuid()));
            }
            taken
        }
    });
    let mut taken = join_all(workers).await.concat();
    let all = taken.len();
    taken.sort_unstable();
    taken.dedup();
    assert_eq!((all, taken.len()), (240, 240));
}
