//! Parts of orders as rows, and tracked parcels.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use futures_util::future::join_all;
use kernel::SellerId;
use orders::{
    Buyer, CORRECTIONS, Carrier, Cause, Correction, DueParcel, Invoice, OrderFilter, OrderRef, OrderState,
    SellerOrder, TrackingQueue, TrackingStatus,
};
use testkit::TestClock;
use usecases::Transaction;
use usecases::transition_order::Transition;

use crate::support::{
    CorrectShipment, Fixture, SCHEDULE, TransitionOrder, changed, each_once, id, instant, is_rolled_back,
    paid, part, shipment, shipped, take_all, tracking_report,
};

/// A part in each state, with all distinguishable facts.
pub(crate) fn parts_of_every_state(seller: SellerId) -> Vec<SellerOrder> {
    let new = || part(seller, instant());
    let at = instant() + TimeDelta::hours(1);
    let seen = |status| tracking_report(status, Some(instant() + TimeDelta::minutes(30)));
    let mut delivered_already = shipment(Carrier::PocztaPolska);
    delivered_already.tracking_report = Some(seen(TrackingStatus::Delivered));
    let delivered = paid(new()).ship(delivered_already, Cause::Seller, at);
    let apply_tracking = |carrier, status| shipped(new(), carrier).apply_tracking(&seen(status), at).after;
    let correction = Correction {
        carrier: Some(Carrier::Other),
        tracking_number: None,
    };
    let correctable = paid(new()).ship(shipment(Carrier::Dpd), Cause::Seller, at);
    let corrected = correctable.unwrap().after.correct(correction, at);
    vec![
        new(),
        paid(new()),
        shipped(new(), Carrier::Other),
        apply_tracking(Carrier::Inpost, TrackingStatus::OutForDelivery),
        apply_tracking(Carrier::Gls, TrackingStatus::Delivered),
        delivered.unwrap().after,
        corrected.unwrap().after,
        paid(new()).deliver(at).unwrap().after,
        new().cancel(at).unwrap().after,
        paid(new()).cancel(at).unwrap().after,
        paid(new()).erase_buyer(at).after,
        SellerOrder {
            several_sellers: true,
            payment_method: None,
            delivery_method: Some("paczkomat".to_owned()),
            ..new()
        },
        SellerOrder {
            buyer: Some(Buyer::default()),
            shipping_address: None,
            delivery_point: None,
            invoice: None,
            ..new()
        },
        SellerOrder {
            buyer: None,
            shipping_address: None,
            invoice: None,
            ..paid(new())
        },
        SellerOrder {
            buyer: None,
            shipping_address: None,
            delivery_point: None,
            invoice: Some(Invoice::default()),
            ..paid(new())
        },
        SellerOrder {
            is_test: true,
            ..shipped(new(), Carrier::Dhl)
        },
    ]
}

#[tokio::test]
async fn a_part_of_every_state_reads_back_by_id_and_number() {
    let fixture = Fixture::new().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let parts = parts_of_every_state(seller);
    let reader = fixture.database.order_reader();
    for after in &parts {
        // All that a change writes is otherwise before it.
        let full = part(seller, instant());
        let before = SellerOrder {
            state: OrderState::Pending,
            updated_at: after.updated_at + TimeDelta::hours(1),
            buyer: full.buyer.filter(|_| after.buyer.is_none()),
            shipping_address: full.shipping_address.filter(|_| after.shipping_address.is_none()),
            delivery_point: full.delivery_point.filter(|_| after.delivery_point.is_none()),
            invoice: full.invoice.filter(|_| after.invoice.is_none()),
            ..after.clone()
        };
        fixture.save(&[before]).await;
        let tx = fixture.begin().await;
        tx.lock_part(seller, &OrderRef::Id(after.id)).await.unwrap();
        tx.save_parts(vec![changed(after.clone())]).await.unwrap();
        for by in [OrderRef::Id(after.id), OrderRef::Number(after.number.clone())] {
            // A read in the same transaction sees what was saved before it.
            assert_eq!(tx.lock_part(seller, &by).await.unwrap().as_ref(), Some(after));
            assert_eq!(tx.lock_part(other, &by).await.unwrap(), None);
            assert_eq!(tx.lock_order(&by).await.unwrap(), std::slice::from_ref(after));
        }
        tx.commit().await.unwrap();
        for by in [OrderRef::Id(after.id), OrderRef::Number(after.number.clone())] {
            assert_eq!(
                reader.order(seller.into(), &by).await.unwrap().as_ref(),
                Some(after)
            );
            assert_eq!(reader.order(other.into(), &by).await.unwrap(), None);
        }
    }
    let sql = "select count(*) from seller_orders where items_length = octet_length(items::text)";
    assert_eq!(fixture.count(sql).await, i64::try_from(parts.len()).unwrap());
    let size = kernel::PageSize::clamped(200);
    let page = reader
        .orders(seller.into(), OrderFilter::default(), None, size)
        .await;
    let page = page.unwrap();
    let mut listed: Vec<_> = parts.into_iter().filter(|part| !part.is_test).collect();
    listed.sort_by_key(|part| std::cmp::Reverse(part.id));
    assert_eq!((page.items, page.next), (listed, None));
}

#[tokio::test]
async fn inserting_a_known_order_or_updating_a_missing_part_fails() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let known = part(seller, instant());
    fixture.save(std::slice::from_ref(&known)).await;
    let tx = fixture.begin().await;
    let taken = tx
        .open_order(id().into(), &known.number, true, &[seller].into(), instant())
        .await;
    assert_eq!(taken.unwrap_err().conflict(), Some("orders_number_key"));
    // Updates are sent with the commit, which is sent only after they succeeded.
    let tx = fixture.begin().await;
    let missing = changed(part(seller, instant()));
    tx.save_parts(vec![missing]).await.unwrap();
    let cause = is_rolled_back(tx).await;
    assert!(matches!(cause, kernel::StoreError::Unexpected(_)), "{cause:?}");
}

#[tokio::test]
async fn constraints_refuse_impossible_parts() {
    let fixture = Fixture::new().await;
    let part = shipped(part(fixture.seller().await, instant()), Carrier::Ups);
    fixture.save(&[part]).await;
    for set in [
        "status = 'pending'",
        "status = 'delivered'",
        "status = 'cancelled', cancelled_at = updated_at",
        "shipped_at = null",
        "shipped_at = placed_at - interval '1 second'",
        "updated_at = placed_at - interval '1 second'",
        "shipment_id = null",
        "tracking_number = 'x'",
        "carrier = 'pigeon'",
        "corrections_left = 4",
        "items = '[]'",
        "delivery_point = '[]'",
        "invoice = '1'",
    ] {
        let update = format!("update seller_orders set {set}");
        let error = fixture.client.execute(&update, &[]).await.unwrap_err();
        let constraint = error.as_db_error().and_then(|error| error.constraint());
        assert!(
            constraint.is_some_and(|name| name.starts_with("seller_orders_")),
            "{set}: {error:?}"
        );
    }
}

/// A program before 1.1 recorded neither who made a shipment nor its corrections.
#[tokio::test]
async fn a_shipment_of_an_older_program_can_be_corrected_if_the_seller_may_have_made_it() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let alone = shipped(part(seller, instant()), Carrier::Ups);
    let shared = SellerOrder {
        several_sellers: true,
        ..shipped(part(seller, instant()), Carrier::Ups)
    };
    fixture.save(&[alone.clone(), shared.clone()]).await;
    fixture
        .tamper("update seller_orders set corrections_left = null")
        .await;
    for (part, left) in [(alone, CORRECTIONS), (shared, 0)] {
        let order = OrderRef::Id(part.id);
        let read = fixture.database.order_reader().order(seller.into(), &order).await;
        let read = read.unwrap().unwrap();
        assert_eq!(read.shipment().unwrap().corrections_left, left);
    }
}

const LEASE: TimeDelta = TimeDelta::minutes(5);

/// Up to so many parcels.
async fn lease(queue: &dyn TrackingQueue, carrier: Carrier, most: usize) -> Vec<DueParcel> {
    let mut due = Vec::new();
    for _ in 0..most {
        due.extend(queue.lease_parcel(carrier, id(), LEASE).await.unwrap());
    }
    due
}

/// A database with the clock an hour later, and a seller.
async fn later() -> (Fixture, TestClock, SellerId) {
    let (fixture, clock) = Fixture::frozen().await;
    clock.advance(TimeDelta::hours(1)).await;
    let seller = fixture.seller().await;
    (fixture, clock, seller)
}

/// A part that was paid, and shipped in its own transaction.
async fn ship(fixture: &Fixture, seller: SellerId, carrier: Carrier) -> SellerOrder {
    let part = paid(part(seller, instant()));
    fixture.save(std::slice::from_ref(&part)).await;
    let ship = async |tx: &dyn Transaction| {
        let shipped = part.ship(shipment(carrier), Cause::Seller, tx.now());
        let shipped = shipped.unwrap().after;
        tx.save_parts(vec![changed(shipped.clone())]).await.unwrap();
        let parcel = SCHEDULE.begin(&shipped, tx.now()).unwrap();
        tx.begin_tracking(parcel).await.unwrap();
        shipped
    };
    fixture.tx(ship).await
}

#[tokio::test]
async fn of_an_order_of_two_sellers_the_due_parcel_alone_is_leased() {
    let (fixture, _clock, seller) = later().await;
    ship(&fixture, seller, Carrier::Dhl).await;
    let other = fixture.seller().await.uuid();
    for table in ["seller_orders", "parcels"] {
        let copy = format!(
            "insert into {table} select (jsonb_populate_record(t, jsonb_build_object('seller_id', '{other}'))).* from {table} as t"
        );
        fixture.tamper(&copy).await;
    }
    let due = format!("update parcels set due_at = api_now() where seller_id <> '{other}'");
    fixture.tamper(&due).await;
    let leased = lease(&*fixture.database.tracking_queue(), Carrier::Dhl, 1).await;
    assert_eq!(leased.len(), 1);
    assert_eq!(fixture.rows_of("parcels where fence is not null").await, 1);
}

/// The carrier's own report of the delivery ends it as well, which the contract's tests show.
#[tokio::test]
async fn a_delivery_reported_by_the_marketplace_ends_the_tracking() {
    let (fixture, clock, seller) = later().await;
    let shipped = ship(&fixture, seller, Carrier::Fedex).await;
    // Others, which stay.
    ship(&fixture, seller, Carrier::Dhl).await;
    ship(&fixture, fixture.seller().await, Carrier::Dhl).await;
    assert_eq!(fixture.rows_of("parcels").await, 3);
    let delivery = TransitionOrder(OrderRef::Id(shipped.id), Transition::Deliver);
    fixture.run(&delivery).await;
    clock.advance(TimeDelta::days(1)).await;
    let queue = fixture.database.tracking_queue();
    assert_eq!(lease(&*queue, Carrier::Fedex, 10).await, []);
    assert_eq!(fixture.rows_of("parcels").await, 2);
}

#[tokio::test]
async fn a_corrected_parcel_is_leased_anew_and_its_former_lease_changes_nothing() {
    let (fixture, clock, seller) = later().await;
    let shipped = ship(&fixture, seller, Carrier::Dhl).await;
    let queue = fixture.database.tracking_queue();
    clock.advance(TimeDelta::hours(1)).await;
    let former = lease(&*queue, Carrier::Dhl, 10).await.remove(0);
    let correction = CorrectShipment(&shipped, Carrier::Gls);
    let corrected = fixture.run(&correction).await;
    for next in [None, Some(clock.now().await)] {
        queue.schedule_parcel(&former, next).await.unwrap();
        assert_eq!(lease(&*queue, Carrier::Gls, 10).await, [], "it is due already");
    }
    clock.advance(SCHEDULE.interval * 2).await;
    let due = lease(&*queue, Carrier::Gls, 10).await.remove(0);
    let number = &corrected.shipment().unwrap().tracking_number;
    assert_eq!((due.order, &due.tracking_number), (shipped.id, number));
    assert_eq!(fixture.rows_of("parcels").await, 1);
    let mails = fixture
        .texts("select carrier from mails where is_correction")
        .await;
    assert_eq!(mails, ["gls"]);
    // A carrier that is not asked; and the mail before this one was tried in vain, and is dropped.
    fixture.tamper("update mails set attempts = 1").await;
    // Another seller's parcel of the same order stays.
    let others = "set session_replication_role = replica; insert into parcels \
        select (jsonb_populate_record(p, jsonb_build_object('seller_id', gen_random_uuid()))).* from parcels as p";
    fixture.tamper(others).await;
    fixture.run(&CorrectShipment(&corrected, Carrier::Other)).await;
    assert_eq!(fixture.rows_of("parcels").await, 1);
    assert_eq!(fixture.rows_of("mails").await, 1);
}

#[tokio::test]
async fn a_parcel_is_rescheduled_or_ended_by_the_holder_of_its_lease_alone() {
    let (fixture, clock, seller) = later().await;
    ship(&fixture, seller, Carrier::Dhl).await;
    let queue = fixture.database.tracking_queue();
    clock.advance(TimeDelta::hours(1)).await;
    let now = clock.now().await;
    let first = lease(&*queue, Carrier::Dhl, 10).await.remove(0);
    clock.advance(LEASE).await;
    let second = lease(&*queue, Carrier::Dhl, 10).await.remove(0);
    for next in [None, Some(now)] {
        queue.schedule_parcel(&first, next).await.unwrap();
        let due = lease(&*queue, Carrier::Dhl, 10).await;
        assert_eq!(due, [], "a lost lease changed something");
    }
    let later = now + TimeDelta::hours(2);
    queue.schedule_parcel(&second, Some(later)).await.unwrap();
    // With that, its lease has ended.
    queue.schedule_parcel(&second, Some(now)).await.unwrap();
    for wait in [TimeDelta::zero(), LEASE] {
        clock.advance(wait).await;
        assert_eq!(lease(&*queue, Carrier::Dhl, 10).await, []);
    }
    clock.advance(TimeDelta::hours(2)).await;
    let third = lease(&*queue, Carrier::Dhl, 10).await.remove(0);
    // Another seller's parcel of the order, and another order's, as if the same worker had leased them.
    let others = "set session_replication_role = replica; insert into parcels \
        select (jsonb_populate_record(p, jsonb_build_object(other, gen_random_uuid()))).* \
        from parcels as p, unnest(array['seller_id', 'order_id']) as other";
    fixture.tamper(others).await;
    queue.schedule_parcel(&third, Some(later)).await.unwrap();
    assert_eq!(fixture.rows_of("parcels where fence is null").await, 1);
    let leased = "update parcels set fence = (select fence from parcels where fence is not null limit 1)";
    fixture.tamper(leased).await;
    queue.schedule_parcel(&third, None).await.unwrap();
    assert_eq!(fixture.rows_of("parcels").await, 2);
}

/// Due parcels, this many per carrier, the first carrier's the longest waiting.
async fn fill(fixture: &Fixture, counts: &[(Carrier, i64)]) {
    fixture
        .tamper("alter table parcels drop constraint parcels_seller_id_order_id_fkey")
        .await;
    for (n, (carrier, count)) in counts.iter().enumerate() {
        let carrier = carrier.as_str();
        let fill = format!(
            "insert into parcels (seller_id, order_id, shipped_at, due_at, carrier, tracking_number) \
             select gen_random_uuid(), gen_random_uuid(), api_now(), api_now() - interval '1 day' + interval '{n} hours' \
               + i * interval '1 ms', '{carrier}', 'TN-' || to_char(i, 'FM000') from generate_series(1, {count}) i"
        );
        fixture.tamper(&fill).await;
    }
}

#[tokio::test]
async fn a_carriers_parcels_are_leased_by_the_longest_wait() {
    let fixture = Fixture::new().await;
    let counts = [(Carrier::Inpost, 500), (Carrier::Dpd, 3), (Carrier::Ups, 40)];
    fill(&fixture, &counts).await;
    let queue = fixture.database.tracking_queue();
    for (carrier, expected) in [
        (Carrier::Inpost, 1..=20),
        (Carrier::Inpost, 21..=40),
        (Carrier::Dpd, 1..=3),
        (Carrier::Ups, 1..=20),
    ] {
        let due = lease(&*queue, carrier, 20).await;
        assert!(due.iter().all(|parcel| parcel.carrier == carrier));
        let numbers: BTreeSet<_> = due
            .iter()
            .map(|parcel| parcel.tracking_number.as_str().to_owned())
            .collect();
        assert_eq!(numbers, expected.map(|n| format!("TN-{n:03}")).collect());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_workers_lease_each_parcel_once() {
    let fixture = Fixture::new().await;
    fill(&fixture, &[(Carrier::Inpost, 240)]).await;
    let worker = async |_| {
        let queue = fixture.another(2).tracking_queue();
        take_all(async || {
            let due = lease(&*queue, Carrier::Inpost, 6).await;
            assert!(due.len() <= 6);
            due.iter().map(|parcel| parcel.order.uuid()).collect()
        })
        .await
    };
    each_once(&join_all((0..8).map(worker)).await, 240);
}
