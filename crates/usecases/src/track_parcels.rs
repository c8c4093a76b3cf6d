//! A worker asks carriers for the status of parcels in transit.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::join_all;
use kernel::{Randomness, StoreError};
use orders::{CarrierLookup, DueParcel, Lookup, OrderRef, PollSchedule, Sighting, TrackingQueue};

use crate::{Transaction, UnitOfWork, UnitOfWorkError, Work, transact};

/// How many parcels are leased at a time.
const BATCH: u16 = 20;
/// How long a lease lasts: longer than looking up a batch can take.
const LEASE: TimeDelta = TimeDelta::minutes(5);

#[derive(Clone, Copy)]
pub struct Tracking<'a> {
    pub queue: &'a dyn TrackingQueue,
    pub carriers: &'a dyn CarrierLookup,
    pub units: &'a dyn UnitOfWork,
    /// For the lease's fencing token.
    pub randomness: &'a dyn Randomness,
    pub schedule: PollSchedule,
}

/// Looks up a batch of due parcels concurrently, so that one carrier never delays another, and returns their number. No
/// database connection is held while a carrier is asked.
pub async fn track_parcels(tracking: Tracking<'_>) -> Result<usize, UnitOfWorkError> {
    let due = tracking
        .queue
        .lease_parcels(tracking.randomness.uuid(), BATCH, LEASE)
        .await?;
    let asked = join_all(due.iter().map(|parcel| track_one(tracking, parcel))).await;
    asked.into_iter().collect::<Result<(), _>>()?;
    Ok(due.len())
}

async fn track_one(tracking: Tracking<'_>, parcel: &DueParcel) -> Result<(), UnitOfWorkError> {
    let sighting = match tracking
        .carriers
        .look_up(parcel.carrier, &parcel.tracking_number)
        .await
    {
        Lookup::Found(sighting) => Some(sighting),
        Lookup::NotFound | Lookup::Unavailable(_) => None,
    };
    let work = Record {
        parcel,
        sighting,
        schedule: tracking.schedule,
    };
    let next = transact(tracking.units, &work).await?;
    tracking.queue.schedule_parcel(parcel, next).await?;
    Ok(())
}

/// Records the carrier's answer, and returns when to ask again.
struct Record<'a> {
    parcel: &'a DueParcel,
    sighting: Option<Sighting>,
    schedule: PollSchedule,
}

#[async_trait]
impl Work for Record<'_> {
    type Done = Option<DateTime<Utc>>;
    type Error = UnitOfWorkError;

    async fn run(&self, transaction: &dyn Transaction) -> Result<Self::Done, UnitOfWorkError> {
        let now = transaction.now();
        let again = |status| Ok(self.schedule.next(self.parcel.shipped_at, status, now));
        let Some(sighting) = &self.sighting else {
            return again(None);
        };
        let order = OrderRef::Id(self.parcel.order);
        let Some(part) = transaction.lock_part(self.parcel.seller, &order).await? else {
            return Err(StoreError::corrupt(
                "seller_orders",
                self.parcel.order,
                "a parcel without its order",
            )
            .into());
        };
        let change = part.clone().sighted(sighting, now);
        if change.after != part {
            transaction.save_parts(vec![change]).await?;
        }
        again(Some(sighting.status))
    }
}

#[cfg(test)]
mod tests {
    use orders::{
        Carrier, Cause, MockCarrierLookup, MockTrackingQueue, NewShipment, OrderStatus, TrackingNumber,
        TrackingStatus,
    };
    use uuid::Uuid;

    use super::*;
    use crate::{
        MockTransaction, MockUnitOfWork,
        test_support::{chance, now, part},
    };

    fn parcel() -> DueParcel {
        DueParcel {
            seller: Uuid::from_u128(1).into(),
            order: Uuid::from_u128(9).into(),
            carrier: Carrier::Dpd,
            tracking_number: TrackingNumber::new("ABCD".to_owned()).unwrap(),
            shipped_at: now(),
            fence: Uuid::nil(),
        }
    }

    fn shipped() -> orders::SellerOrder {
        let new = NewShipment {
            id: Uuid::nil().into(),
            carrier: Carrier::Dpd,
            tracking_number: TrackingNumber::new("ABCD".to_owned()).unwrap(),
            sighting: None,
        };
        part(1, 1)
            .pay(now())
            .unwrap()
            .after
            .ship(new, Cause::Seller, now())
            .unwrap()
            .after
    }

    async fn track(lookup: Lookup, expected: Option<OrderStatus>, again: bool) {
        let (mut queue, mut carriers, mut units) = (
            MockTrackingQueue::new(),
            MockCarrierLookup::new(),
            MockUnitOfWork::new(),
        );
        queue
            .expect_lease_parcels()
            .once()
            .returning(|_, _, _| Ok(vec![parcel()]));
        queue
            .expect_schedule_parcel()
            .once()
            .withf(move |_, next| next.is_some() == again)
            .returning(|_, _| Ok(()));
        carriers
            .expect_look_up()
            .once()
            .returning(move |_, _| lookup.clone());
        units.expect_begin().once().returning(move || {
            let mut tx = MockTransaction::new();
            tx.expect_now().returning(now);
            tx.expect_lock_part().returning(|_, _| Ok(Some(shipped())));
            if let Some(expected) = expected {
                tx.expect_save_parts()
                    .once()
                    .withf(move |changes| changes[0].after.status() == expected)
                    .returning(|_| Ok(()));
            }
            tx.expect_commit().once().returning(|| Ok(()));
            Ok(Box::new(tx))
        });
        let schedule = PollSchedule {
            interval: TimeDelta::minutes(30),
        };
        let tracking = Tracking {
            queue: &queue,
            carriers: &carriers,
            units: &units,
            randomness: &chance(),
            schedule,
        };
        assert_eq!(track_parcels(tracking).await.unwrap(), 1);
    }

    fn found(status: TrackingStatus) -> Lookup {
        Lookup::Found(Sighting {
            status,
            at: None,
            raw_code: String::new(),
        })
    }

    #[tokio::test]
    async fn a_delivery_moves_the_order_and_ends_the_asking() {
        track(
            found(TrackingStatus::Delivered),
            Some(OrderStatus::Delivered),
            false,
        )
        .await;
        track(found(TrackingStatus::InTransit), Some(OrderStatus::Shipped), true).await;
        track(Lookup::NotFound, None, true).await;
        track(Lookup::Unavailable("busy".to_owned()), None, true).await;
    }
}
