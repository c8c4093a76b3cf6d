//! Single transitions, and properties over any sequence of commands, compared with a model of statuses
//! only.

use chrono::TimeDelta;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::{
    Buyer, Carrier, DeliveryPoint, Invoice, OrderNumber, OrderStatus, PaymentStatus, ShippingAddress,
    TrackingNumber,
};

pub(crate) fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_700_000_000 + second, 0).unwrap()
}

pub(crate) fn order() -> SellerOrder {
    let address = ShippingAddress {
        line1: None,
        line2: None,
        postal_code: None,
        city: None,
        country: "PL".to_owned(),
    };
    let locker = DeliveryPoint {
        id: "WAW01M".to_owned(),
        name: None,
        line1: None,
        line2: None,
        postal_code: None,
        city: None,
        country: None,
    };
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
        shipping_address: Some(address),
        delivery_point: Some(locker),
        invoice: Some(Invoice::default()),
        items: Vec::new(),
        state: OrderState::Pending,
        updated_at: at(0),
    }
}

pub(crate) fn shipment(tracking_report: Option<TrackingReport>) -> NewShipment {
    NewShipment {
        id: Uuid::from_u128(4).into(),
        carrier: Carrier::Inpost,
        tracking_number: TrackingNumber::new("ABC-123".to_owned()).unwrap(),
        tracking_report,
    }
}

fn tracking_report(status: TrackingStatus, at: Option<DateTime<Utc>>) -> TrackingReport {
    TrackingReport {
        status,
        at,
        raw_code: "x".to_owned(),
    }
}

fn kinds(change: &Change<SellerOrder, OrderEvent>) -> Vec<OrderEventKind> {
    change.events.iter().map(|event| event.kind).collect()
}

fn paid() -> SellerOrder {
    order().pay(at(1)).unwrap().after
}

#[test]
fn the_usual_sequence() {
    let placed = order().placed();
    assert_eq!(kinds(&placed), [OrderEventKind::Created]);
    let paid = placed.after.pay(at(1)).unwrap();
    assert_eq!(kinds(&paid), [OrderEventKind::Paid]);
    let shipped = paid.after.ship(shipment(None), Cause::Seller, at(2)).unwrap();
    assert_eq!(kinds(&shipped), [OrderEventKind::Shipped]);
    assert!(shipped.after.shipment().unwrap().buyer_notified);
    let report = tracking_report(TrackingStatus::Delivered, Some(at(3)));
    let delivered = shipped.after.apply_tracking(&report, at(9));
    assert_eq!(kinds(&delivered), [OrderEventKind::Delivered]);
    assert_eq!(delivered.after.delivered_at(), Some(at(3)));
    assert_eq!(delivered.after.updated_at, at(9));
}

#[test]
fn a_delivery_reported_at_shipment_is_clamped_between_payment_and_now() {
    for (reported, recorded) in [
        (Some(at(5)), at(10)),
        (Some(at(12)), at(12)),
        (Some(at(99)), at(20)),
        (None, at(20)),
    ] {
        let new = shipment(Some(tracking_report(TrackingStatus::Delivered, reported)));
        let paid = order().pay(at(10)).unwrap().after;
        let change = paid.ship(new, Cause::Seller, at(20)).unwrap();
        let both = [OrderEventKind::Shipped, OrderEventKind::Delivered];
        assert_eq!(kinds(&change), both);
        let times = (change.after.shipped_at(), change.after.delivered_at());
        assert_eq!(times, (Some(recorded), Some(recorded)));
        let shipment = change.after.shipment().unwrap();
        assert!(shipment.delivered_already && !shipment.buyer_notified);
    }
}

#[test]
fn test_orders_and_buyers_without_an_address_get_no_mail() {
    let unnotified: [fn(&mut SellerOrder); 4] = [
        |order| order.is_test = true,
        |order| order.buyer = Some(Buyer::default()),
        |order| order.buyer = None,
        // No mail server takes it.
        |order| order.buyer.as_mut().unwrap().email = Some("jan.@buyer.example".to_owned()),
    ];
    for change in unnotified {
        let mut paid = paid();
        change(&mut paid);
        let shipped = paid.ship(shipment(None), Cause::Seller, at(2)).unwrap();
        assert!(!shipped.after.shipment().unwrap().buyer_notified);
    }
}

#[test]
fn a_cancelled_order_stays_as_paid_as_it_was() {
    let unpaid = order().cancel(at(1)).unwrap().after;
    assert_eq!(unpaid.payment_status(), PaymentStatus::Cancelled);
    assert!(!unpaid.shows_buyer());
    let refusal = unpaid.pay(at(2)).unwrap_err();
    assert_eq!(refusal.reason, Reason::Cancelled);
    assert_eq!(refusal.to_string(), "the order is cancelled: it cannot be paid");
    let paid = paid().cancel(at(2)).unwrap().after;
    assert_eq!(paid.payment_status(), PaymentStatus::Paid);
    assert!(paid.shows_buyer());
    assert_eq!(paid.clone().pay(at(3)).unwrap().after, paid);
}

fn correction(carrier: Option<Carrier>, number: Option<&str>) -> Correction {
    Correction {
        carrier,
        tracking_number: number.map(|number| TrackingNumber::new(number.to_owned()).unwrap()),
    }
}

/// The part with those of its buyer's data that are kept: buyer, address, delivery point, invoice.
fn holding(kept: [bool; 4], part: SellerOrder) -> SellerOrder {
    let [buyer, address, point, invoice] = kept;
    SellerOrder {
        buyer: part.buyer.filter(|_| buyer),
        shipping_address: part.shipping_address.filter(|_| address),
        delivery_point: part.delivery_point.filter(|_| point),
        invoice: part.invoice.filter(|_| invoice),
        ..part
    }
}

#[derive(Debug, Clone)]
enum Step {
    Pay,
    Cancel,
    Ship(Cause, Option<TrackingReport>),
    Deliver,
    Sight(TrackingReport),
    Correct(Correction),
    Erase,
}

fn steps() -> impl Strategy<Value = Vec<(Step, i64)>> {
    let instant = || prop::option::of((-50_i64..50).prop_map(at));
    let status = prop::sample::select(TrackingStatus::ALL.to_vec());
    let seen = || (prop::sample::select(TrackingStatus::ALL.to_vec()), instant());
    let carrier = prop::option::of(prop::sample::select(Carrier::ALL.to_vec()));
    let number = prop::sample::select(vec![None, Some("ABC-123"), Some("NEW-1")]);
    let shipper = prop_oneof![Just(Cause::Seller), Just(Cause::Marketplace)];
    let step = prop_oneof![
        Just(Step::Pay),
        Just(Step::Cancel),
        (shipper, prop::option::of(seen()))
            .prop_map(|(who, seen)| Step::Ship(who, seen.map(|(s, at)| tracking_report(s, at)))),
        Just(Step::Deliver),
        (status, instant()).prop_map(|(s, at)| Step::Sight(tracking_report(s, at))),
        (carrier, number).prop_map(|(carrier, number)| Step::Correct(correction(carrier, number))),
        Just(Step::Erase),
    ];
    // The clock may step back slightly: no timestamp may follow it.
    prop::collection::vec((step, -3_i64..10), 1..25)
}

fn apply(step: &Step, order: SellerOrder, now: DateTime<Utc>) -> Option<Change<SellerOrder, OrderEvent>> {
    match step {
        Step::Pay => order.pay(now).ok(),
        Step::Cancel => order.cancel(now).ok(),
        Step::Ship(cause, seen) => order.ship(shipment(seen.clone()), *cause, now).ok(),
        Step::Deliver => order.deliver(now).ok(),
        Step::Sight(seen) => Some(order.apply_tracking(seen, now)),
        Step::Correct(correction) => order.correct(correction.clone(), now).ok(),
        Step::Erase => Some(order.erase_buyer(now)),
    }
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
    fn any_sequence_of_commands_keeps_the_invariants(
        steps in steps(), several_sellers: bool, is_test: bool, kept: [bool; 4],
    ) {
        let mut order = SellerOrder { is_test, several_sellers, ..holding(kept, order()) };
        let mut now = at(0);
        for (step, seconds) in steps {
            now += TimeDelta::seconds(seconds);
            let before = order.clone();
            let Some(change) = apply(&step, order, now) else {
                order = before;
                continue;
            };
            if !matches!(step, Step::Ship(..)) {
                let repeated = apply(&step, change.after.clone(), now + TimeDelta::seconds(1)).unwrap();
                prop_assert_eq!((&repeated.after, repeated.events.len()), (&change.after, 0));
            }
            let corrections = |order: &SellerOrder| order.shipment().map(|shipment| shipment.corrections_left);
            if matches!(step, Step::Correct(_)) && corrections(&change.after) != corrections(&before) {
                prop_assert_eq!(kinds(&change), [OrderEventKind::ShipmentCorrected]);
                prop_assert_eq!((before.status(), change.after.status()), (OrderStatus::Shipped, OrderStatus::Shipped));
                let [was, is] = [&before, &change.after].map(|order| order.shipment().unwrap());
                prop_assert_eq!(is.corrections_left + 1, was.corrections_left);
                prop_assert_eq!(is.tracking_status, None);
            } else {
                prop_assert_eq!(kinds(&change), announced(before.status(), change.after.status()));
            }
            if let (Step::Correct(new), Some(sent)) = (&step, change.after.shipment()) {
                prop_assert_eq!(new.carrier.unwrap_or(sent.carrier), sent.carrier);
                prop_assert_eq!(new.tracking_number.as_ref().unwrap_or(&sent.tracking_number), &sent.tracking_number);
            }
            let after = change.after;
            let times = [Some(after.placed_at), after.paid_at(), after.shipped_at(), after.delivered_at()];
            let times = times.into_iter().flatten().collect::<Vec<_>>();
            prop_assert!(times.is_sorted(), "{:?}", times);
            let held = |order: &SellerOrder| {
                (order.buyer.clone(), order.shipping_address.clone(), order.delivery_point.clone(), order.invoice.clone())
            };
            let shown = |order: &SellerOrder| (order.state.clone(), order.shows_buyer().then(|| held(order)));
            let expected = if matches!(step, Step::Erase) { (None, None, None, None) } else { held(&before) };
            prop_assert_eq!(held(&after), expected);
            prop_assert_eq!(after.updated_at > before.updated_at, shown(&after) != shown(&before));
            prop_assert!(before.paid_at().is_none() || after.paid_at() == before.paid_at());
            prop_assert!(before.shipped_at().is_none() || after.shipped_at() == before.shipped_at());
            let paid = after.payment_status() == PaymentStatus::Paid;
            prop_assert_eq!(paid, after.paid_at().is_some());
            prop_assert_eq!(paid, after.shows_buyer());
            if let (None, Some(made)) = (before.shipment(), after.shipment()) {
                let by_seller = matches!(step, Step::Ship(Cause::Seller, _));
                prop_assert!(!(by_seller && several_sellers));
                prop_assert_eq!(made.corrections_left, if by_seller { CORRECTIONS } else { 0 });
            }
            order = after;
        }
    }
}
