//! A worker asks carriers about parcels on their way.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::join_all;
use kernel::{Randomness, StoreError};
use orders::{CarrierLookup, DueParcel, Lookup, OrderRef, PollSchedule, Sighting, TrackingQueue};

use crate::{Transaction, UnitOfWork, UnitOfWorkError, Work, transact};

/// How many parcels are leased at a time.
const BATCH: u16 = 20;
/// How long a lease lasts: longer than asking about a batch can take.
const LEASE: TimeDelta = TimeDelta::minutes(5);

/// The ports that tracking needs.
#[derive(Clone, Copy)]
pub struct Tracking<'a> {
    /// Which parcels are due.
    pub queue: &'a dyn TrackingQueue,
    /// Who is asked.
    pub carriers: &'a dyn CarrierLookup,
    /// Where what they say is recorded.
    pub units: &'a dyn UnitOfWork,
    /// For the lease's fence.
    pub randomness: &'a dyn Randomness,
    /// When to ask again.
    pub schedule: PollSchedule,
}

/// Asks about a batch of parcels, all at once so that one carrier never delays another, and returns how many there were; none when nothing is due. No connection is held while a
/// carrier is asked.
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

/// Records what a carrier said, and returns when to ask again.
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
