//! The transition table, and properties over any sequence of commands, compared with a model of statuses only.

use chrono::TimeDelta;
use kernel::OfferId;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::{
    Buyer, Carrier, OrderItem, OrderNumber, OrderStatus, PaymentStatus, ShippingAddress, TrackingNumber,
};

fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_700_000_000 + second, 0).unwrap()
}

fn order() -> SellerOrder {
    SellerOrder {
        seller: Uuid::from_u128(1).into(),
        id: Uuid::from_u128(2).into(),
        number: OrderNumber::new("2026-1".to_owned()).unwrap(),
        is_test: false,
        several_sellers: false,
        payment_method: None,
        delivery_method: None,
        placed_at: at(0),
        buyer: Some(Buyer {
            email: Some("buyer@example.com".to_owned()),
            ..Buyer::default()
        }),
        shipping_address: Some(ShippingAddress {
            line1: None,
            line2: None,
            postal_code: None,
            city: None,
            country: "PL".to_owned(),
        }),
        items: vec![OrderItem {
            offer: OfferId::from(Uuid::from_u128(3)),
            title: None,
            handle: None,
            sku: None,
            quantity: 1,
            taken: 1,
            unit_price: None,
        }],
        state: OrderState::Pending,
        updated_at: at(0),
    }
}

fn shipment(sighting: Option<Sighting>) -> NewShipment {
    NewShipment {
        id: Uuid::from_u128(4).into(),
        carrier: Carrier::Inpost,
        tracking_number: TrackingNumber::new("ABC-123".to_owned()).unwrap(),
        sighting,
    }
}

fn sighting(status: TrackingStatus, at: Option<DateTime<Utc>>) -> Sighting {
    Sighting {
        status,
        at,
        raw_code: "x".to_owned(),
    }
}

fn kinds(change: &Change<SellerOrder, OrderEvent>) -> Vec<OrderEventKind> {
    change.events.iter().map(|event| event.kind).collect()
}

fn reason(outcome: Outcome) -> Reason {
    outcome.unwrap_err().reason
}

#[test]
fn the_usual_way() {
    let placed = order().placed();
    assert_eq!(kinds(&placed), [OrderEventKind::Created]);
    let paid = placed.after.pay(at(1)).unwrap();
    assert_eq!(kinds(&paid), [OrderEventKind::Paid]);
    let shipped = paid.after.ship(shipment(None), Cause::Seller, at(2)).unwrap();
    assert_eq!(kinds(&shipped), [OrderEventKind::Shipped]);
    assert!(shipped.after.parcel().unwrap().buyer_notified);
    let report = sighting(TrackingStatus::Delivered, Some(at(3)));
    let delivered = shipped.after.sighted(&report, at(9));
    assert_eq!(kinds(&delivered), [OrderEventKind::Delivered]);
    assert_eq!(delivered.after.delivered_at(), Some(at(3)));
    assert_eq!(delivered.after.updated_at, at(9));
}

#[test]
fn the_order_of_refusals() {
    let several = SellerOrder {
        several_sellers: true,
        ..order()
    };
    assert_eq!(
        reason(several.clone().ship(shipment(None), Cause::Seller, at(1))),
        Reason::Unpaid
    );
    let cancelled = several.clone().cancel(at(1)).unwrap().after;
    assert_eq!(
        reason(cancelled.ship(shipment(None), Cause::Seller, at(2))),
        Reason::Cancelled
    );
    let paid = several.pay(at(1)).unwrap().after;
    assert_eq!(
        reason(paid.clone().ship(shipment(None), Cause::Seller, at(2))),
        Reason::SeveralSellers
    );
    let shipped = paid
        .ship(shipment(None), Cause::Marketplace, at(2))
        .unwrap()
        .after;
    assert_eq!(
        reason(shipped.clone().ship(shipment(None), Cause::Seller, at(3))),
        Reason::AlreadyShipped
    );
    assert_eq!(reason(shipped.clone().cancel(at(3))), Reason::AlreadyShipped);
    let delivered = shipped.deliver(Delivery { at: None }, at(4)).unwrap().after;
    let refusal = delivered.ship(shipment(None), Cause::Seller, at(5)).unwrap_err();
    assert_eq!(refusal.reason, Reason::AlreadyShipped);
    assert_eq!(
        refusal.to_string(),
        "the order is delivered: it cannot be shipped"
    );
}

#[test]
fn a_delivery_that_the_carrier_knows_already_is_kept_within_payment_and_now() {
    let paid = || order().pay(at(10)).unwrap().after;
    for (reported, kept) in [
        (Some(at(5)), at(10)),
        (Some(at(12)), at(12)),
        (Some(at(99)), at(20)),
        (None, at(20)),
    ] {
        let report = sighting(TrackingStatus::Delivered, reported);
        let change = paid()
            .ship(shipment(Some(report)), Cause::Seller, at(20))
            .unwrap();
        assert_eq!(
            kinds(&change),
            [OrderEventKind::Shipped, OrderEventKind::Delivered]
        );
        assert_eq!(
            (change.after.shipped_at(), change.after.delivered_at()),
            (Some(kept), Some(kept))
        );
        let parcel = change.after.parcel().unwrap();
        assert!(parcel.delivered_already && !parcel.buyer_notified);
    }
}

#[test]
fn who_is_not_told_by_mail() {
    let ship = |order: SellerOrder| {
        let change = order
            .pay(at(1))
            .unwrap()
            .after
            .ship(shipment(None), Cause::Seller, at(2))
            .unwrap();
        change.after.parcel().unwrap().buyer_notified
    };
    assert!(ship(order()));
    assert!(!ship(SellerOrder {
        is_test: true,
        ..order()
    }));
    assert!(!ship(SellerOrder {
        buyer: Some(Buyer::default()),
        ..order()
    }));
    assert!(!ship(SellerOrder {
        buyer: None,
        ..order()
    }));
}

#[test]
fn a_paid_order_that_is_cancelled_stays_paid_and_readable() {
    let unpaid = order().cancel(at(1)).unwrap().after;
    assert_eq!(
        (unpaid.payment_status(), unpaid.shows_buyer()),
        (PaymentStatus::Cancelled, false)
    );
    let paid = order().pay(at(1)).unwrap().after.cancel(at(2)).unwrap().after;
    assert_eq!(
        (paid.payment_status(), paid.shows_buyer()),
        (PaymentStatus::Paid, true)
    );
}

#[test]
fn a_payment_that_comes_after_the_cancellation_is_refused() {
    let cancelled = order().cancel(at(1)).unwrap().after;
    let refusal = cancelled.pay(at(2)).unwrap_err();
    assert_eq!(refusal.reason, Reason::Cancelled);
    assert_eq!(refusal.to_string(), "the order is cancelled: it cannot be paid");
    let paid = order().pay(at(1)).unwrap().after.cancel(at(2)).unwrap().after;
    assert_eq!(paid.clone().pay(at(3)).unwrap().after, paid);
}

#[test]
fn what_a_carrier_says_anew_is_kept_and_what_it_repeats_changes_nothing() {
    let paid = order().pay(at(1)).unwrap().after;
    let shipped = paid.ship(shipment(None), Cause::Seller, at(2)).unwrap().after;
    let seen = shipped.sighted(&sighting(TrackingStatus::InTransit, None), at(3));
    assert_eq!(
        seen.after.parcel().unwrap().tracking_status,
        Some(TrackingStatus::InTransit)
    );
    assert_eq!((seen.after.updated_at, seen.events.len()), (at(3), 0));
    let repeated = seen
        .after
        .clone()
        .sighted(&sighting(TrackingStatus::InTransit, None), at(4));
    assert_eq!(repeated.after, seen.after);
}

#[test]
fn erasure_leaves_neither_the_buyer_nor_the_address_behind() {
    let paid = order().pay(at(1)).unwrap().after;
    for half_erased in [
        SellerOrder {
            buyer: None,
            ..paid.clone()
        },
        SellerOrder {
            shipping_address: None,
            ..paid.clone()
        },
    ] {
        let erased = half_erased.erase_buyer(at(5)).after;
        assert_eq!((erased.buyer, erased.shipping_address), (None, None));
        assert_eq!(erased.updated_at, at(5));
    }
}

#[test]
fn erasure_moves_updated_at_only_where_something_was_shown() {
    assert_eq!(order().erase_buyer(at(5)).after.updated_at, at(0));
    let erased = order().pay(at(1)).unwrap().after.erase_buyer(at(5)).after;
    assert_eq!((erased.buyer.clone(), erased.updated_at), (None, at(5)));
    assert_eq!(erased.erase_buyer(at(9)).after.updated_at, at(5));
}

#[derive(Debug, Clone)]
enum Step {
    Pay,
    Cancel,
    Ship(Cause, Option<Sighting>),
    Deliver(Option<DateTime<Utc>>),
    Sight(Sighting),
    Erase,
}

fn steps() -> impl Strategy<Value = Vec<(Step, i64)>> {
    let instant = || prop::option::of((-50_i64..50).prop_map(at));
    let status = prop::sample::select(TrackingStatus::ALL.to_vec());
    let seen = || (prop::sample::select(TrackingStatus::ALL.to_vec()), instant());
    let shipper = prop_oneof![Just(Cause::Seller), Just(Cause::Marketplace)];
    let step = prop_oneof![
        Just(Step::Pay),
        Just(Step::Cancel),
        (shipper, prop::option::of(seen()))
            .prop_map(|(who, seen)| Step::Ship(who, seen.map(|(s, at)| sighting(s, at)))),
        instant().prop_map(Step::Deliver),
        (status, instant()).prop_map(|(s, at)| Step::Sight(sighting(s, at))),
        Just(Step::Erase),
    ];
    // The clock may step back slightly: no timestamp may follow it.
    prop::collection::vec((step, -3_i64..10), 1..25)
}

/// The events that a transition between two statuses must announce.
fn announced(from: OrderStatus, to: OrderStatus) -> Vec<OrderEventKind> {
    use OrderEventKind as E;
    use OrderStatus::{Cancelled, Delivered, Pending, Processing, Shipped};
    match (from, to) {
        (Pending, Processing) => vec![E::Paid],
        (Pending | Processing, Cancelled) => vec![E::Cancelled],
        (Processing, Shipped) => vec![E::Shipped],
        (Processing, Delivered) => vec![E::Shipped, E::Delivered],
        (Shipped, Delivered) => vec![E::Delivered],
        (from, to) if from == to => vec![],
        (from, to) => panic!("{from:?} never becomes {to:?}"),
    }
}

proptest! {
    #[test]
    fn any_sequence_of_commands_keeps_the_invariants(steps in steps(), several_sellers: bool, is_test: bool) {
        let mut order = SellerOrder { is_test, several_sellers, ..order() };
        let mut now = at(0);
        for (step, seconds) in steps {
            now += TimeDelta::seconds(seconds);
            let before = order.clone();
            let change = match step {
                Step::Pay => order.pay(now),
                Step::Cancel => order.cancel(now),
                Step::Ship(who, seen) => order.ship(shipment(seen), who, now),
                Step::Deliver(at) => order.deliver(Delivery { at }, now),
                Step::Sight(seen) => Ok(order.sighted(&seen, now)),
                Step::Erase => Ok(order.erase_buyer(now)),
            };
            let Ok(change) = change else {
                order = before;
                continue;
            };
            prop_assert_eq!(kinds(&change), announced(before.status(), change.after.status()));
            let after = change.after;
            let times = [Some(after.placed_at), after.paid_at(), after.shipped_at(), after.delivered_at()];
            let times = times.into_iter().flatten().collect::<Vec<_>>();
            prop_assert!(times.is_sorted(), "{:?}", times);
            prop_assert!(after.updated_at >= before.updated_at);
            prop_assert!(before.paid_at().is_none() || after.paid_at() == before.paid_at());
            prop_assert!(before.shipped_at().is_none() || after.shipped_at() == before.shipped_at());
            let paid = after.payment_status() == PaymentStatus::Paid;
            prop_assert_eq!(paid, after.paid_at().is_some());
            prop_assert_eq!(paid, after.shows_buyer());
            if several_sellers && after.parcel().is_some() && before.parcel().is_none() {
                prop_assert!(!after.parcel().unwrap().buyer_notified || !is_test);
            }
            order = after;
        }
    }

    #[test]
    fn repeating_what_the_marketplace_did_changes_nothing(
        paid: bool,
        command in prop::sample::select(vec![Command::Pay, Command::Cancel, Command::Deliver]),
    ) {
        let start = if paid { order().pay(at(1)).unwrap().after } else { order() };
        let run = |order: SellerOrder, second| match command {
            Command::Pay => order.pay(at(second)),
            Command::Cancel => order.cancel(at(second)),
            _ => order.deliver(Delivery { at: None }, at(second)),
        };
        if let Ok(first) = run(start, 2) {
            let again = run(first.after.clone(), 3).unwrap();
            prop_assert!(again.events.is_empty());
            prop_assert_eq!(again.after, first.after);
        }
    }
}
