//! A worker asks carriers for the status of parcels in transit. Unlike other use cases it commits: each
//! parcel is recorded in a transaction that begins after its carrier has answered.

use std::collections::HashSet;

use chrono::{DateTime, TimeDelta, Utc};
use kernel::{StoreError, TransactionError};
use orders::{
    CarrierLookup, DueParcel, Lookup, OrderRef, PollSchedule, Shipment, TrackingQueue, TrackingReport,
};

use crate::{Announcement, LockSet, Row, Transaction, UnitOfWork, transact};

/// How long a lease lasts: longer than a look-up and its record can take.
pub const LEASE: TimeDelta = TimeDelta::minutes(5);

/// The pause of a parcel whose carrier is not configured. It may be, later.
const UNTIL_CONFIGURED: TimeDelta = TimeDelta::days(1);

#[derive(Clone, Copy)]
pub struct Tracking<'a> {
    pub queue: &'a dyn TrackingQueue,
    pub carriers: &'a dyn CarrierLookup,
    pub units: &'a dyn UnitOfWork,
    pub schedule: PollSchedule,
    /// The shortest time from a carrier's answer to the next look-up, whichever process makes it.
    pub least: TimeDelta,
}

/// Looks up a leased parcel, and records the answer and when to ask again. No database connection is held
/// while the carrier is asked.
pub async fn track_parcel(tracking: Tracking<'_>, parcel: &DueParcel) -> Result<(), TransactionError> {
    let look_up = tracking.carriers.look_up(parcel.carrier, &parcel.tracking_number);
    let (tracking_report, least) = match look_up.await {
        Lookup::Found(tracking_report) => (Some(tracking_report), tracking.least),
        Lookup::NotFound => (None, tracking.least),
        Lookup::NotConfigured => (None, UNTIL_CONFIGURED),
        // Perhaps the carrier was not asked at all.
        Lookup::Unavailable(_) => (None, TimeDelta::zero()),
    };
    let input = (parcel, tracking_report, tracking.schedule, least);
    let locks = LockSet {
        sellers: HashSet::from([parcel.seller]),
        ..LockSet::of_row(Row::Order(OrderRef::Id(parcel.order)))
    };
    let next = transact(
        tracking.units,
        &locks,
        &input,
        |tx, (parcel, tracking_report, schedule, least)| {
            Box::pin(record(tx, parcel, tracking_report.as_ref(), *schedule, *least))
        },
    );
    let next = next.await?;
    tracking.queue.schedule_parcel(parcel, next).await?;
    Ok(())
}

/// Records the carrier's answer, and returns when to ask again: without an answer, by the latest status
/// known.
async fn record(
    tx: &dyn Transaction,
    parcel: &DueParcel,
    tracking_report: Option<&TrackingReport>,
    schedule: PollSchedule,
    least: TimeDelta,
) -> Result<Option<DateTime<Utc>>, TransactionError> {
    let now = tx.now();
    let order = OrderRef::Id(parcel.order);
    let Some(part) = tx.lock_part(parcel.seller, &order).await? else {
        let why = "a parcel without its order";
        return Err(StoreError::corrupt("seller_orders", parcel.order, why).into());
    };
    // Corrected meanwhile: the answer is about another parcel, and the correction has scheduled the new one.
    let is_other = |shipment: &Shipment| {
        shipment.carrier != parcel.carrier || shipment.tracking_number != parcel.tracking_number
    };
    if part.shipment().is_some_and(is_other) {
        return Ok(None);
    }
    let mut status = part.shipment().and_then(|shipment| shipment.tracking_status);
    if let Some(tracking_report) = tracking_report {
        status = Some(tracking_report.status);
        let change = part.clone().apply_tracking(tracking_report, now);
        if change.after != part {
            let is_delivered = change.after.delivered_at().is_some();
            tx.save_parts(vec![Announcement::of_order(change, now)]).await?;
            if is_delivered {
                tx.end_tracking(parcel.seller, parcel.order).await?;
            }
        }
    }
    let next = schedule.next(parcel.shipped_at, status, now);
    Ok(next.map(|next| next.max(now + least)))
}

#[cfg(test)]
mod tests {
    use orders::{
        Carrier, Cause, MockCarrierLookup, MockTrackingQueue, NewShipment, OrderStatus, SellerOrder,
        TrackingNumber, TrackingStatus,
    };
    use uuid::Uuid;

    use super::*;
    use crate::test_support::{now, part};
    use crate::{MockTransaction, MockUnitOfWork};

    const INTERVAL: TimeDelta = TimeDelta::minutes(30);

    fn tracking_number() -> TrackingNumber {
        TrackingNumber::new("ABCD".to_owned()).unwrap()
    }

    fn shipped() -> SellerOrder {
        let new = NewShipment {
            id: Uuid::nil().into(),
            carrier: Carrier::Dpd,
            tracking_number: tracking_number(),
            tracking_report: Some(report(TrackingStatus::OutForDelivery)),
        };
        let paid = part(1, 1).pay(now()).unwrap().after;
        paid.ship(new, Cause::Seller, now()).unwrap().after
    }

    fn report(status: TrackingStatus) -> TrackingReport {
        TrackingReport {
            status,
            at: None,
            raw_code: String::new(),
        }
    }

    async fn track(lookup: Lookup, expected: Option<OrderStatus>, next_in: Option<TimeDelta>) {
        track_as(tracking_number(), lookup, expected, next_in).await;
    }

    /// Looks up a parcel with this number, and expects the order's next status, if it is saved, and when the
    /// parcel is looked up next.
    async fn track_as(
        tracking_number: TrackingNumber,
        lookup: Lookup,
        expected: Option<OrderStatus>,
        next_in: Option<TimeDelta>,
    ) {
        let mut queue = MockTrackingQueue::new();
        let parcel = DueParcel {
            seller: Uuid::from_u128(1).into(),
            order: Uuid::from_u128(9).into(),
            carrier: Carrier::Dpd,
            tracking_number,
            shipped_at: now(),
            fence: Uuid::nil(),
        };
        let schedule = queue.expect_schedule_parcel().once();
        schedule
            .withf(move |_, next| *next == next_in.map(|delay| now() + delay))
            .returning(|_, _| Ok(()));
        let mut carriers = MockCarrierLookup::new();
        let expected_call = carriers.expect_look_up().once();
        expected_call.returning(move |_, _| lookup.clone());
        let mut units = MockUnitOfWork::new();
        units.expect_begin().once().returning(move |_| {
            let mut tx = MockTransaction::new();
            tx.expect_now().returning(now);
            tx.expect_lock_part().returning(|_, _| Ok(Some(shipped())));
            tx.expect_save_parts()
                .times(usize::from(expected.is_some()))
                .withf(move |changes| Some(changes[0].after.status()) == expected)
                .returning(|_| Ok(()));
            tx.expect_end_tracking()
                .times(usize::from(expected == Some(OrderStatus::Delivered)))
                .returning(|_, _| Ok(()));
            tx.expect_commit().once().returning(|| Ok(()));
            Ok(Box::new(tx))
        });
        let tracking = Tracking {
            queue: &queue,
            carriers: &carriers,
            units: &units,
            schedule: PollSchedule { interval: INTERVAL },
            least: INTERVAL * 3 / 2,
        };
        track_parcel(tracking, &parcel).await.unwrap();
    }

    #[tokio::test]
    async fn a_delivery_changes_the_order_and_ends_its_tracking() {
        let found = |status| Lookup::Found(report(status));
        let delivered = found(TrackingStatus::Delivered);
        track(delivered, Some(OrderStatus::Delivered), None).await;
        let in_transit = found(TrackingStatus::InTransit);
        track(in_transit, Some(OrderStatus::Shipped), Some(INTERVAL * 2)).await;
    }

    #[tokio::test]
    async fn an_answer_about_a_number_that_was_corrected_is_discarded() {
        let former = TrackingNumber::new("FORMER".to_owned()).unwrap();
        let delivered = Lookup::Found(report(TrackingStatus::Delivered));
        track_as(former, delivered, None, None).await;
    }

    #[tokio::test]
    async fn without_an_answer_the_latest_status_decides_when_to_ask_again() {
        // A carrier that has answered is left alone for a while.
        track(Lookup::NotFound, None, Some(INTERVAL * 3 / 2)).await;
        track(Lookup::Unavailable("busy".to_owned()), None, Some(INTERVAL)).await;
        track(Lookup::NotConfigured, None, Some(UNTIL_CONFIGURED)).await;
    }
}
