//! Tracking of parcels in transit: when to look them up, and the queue of due look-ups.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{SellerId, StoreError};
use uuid::Uuid;

use crate::{Carrier, OrderId, OrderStatus, SellerOrder, Shipment, TrackingNumber, TrackingStatus};

/// How long a parcel is tracked after its shipment, or the last correction of that.
const TRACKED_FOR: TimeDelta = TimeDelta::days(60);

/// When to look a parcel up again: often while it is new or about to arrive, rarely later, and not at all
/// once it is 60 days old or has a final status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollSchedule {
    /// The delay of a parcel that is about to arrive; all others are multiples of it.
    pub interval: TimeDelta,
}

impl PollSchedule {
    /// The next look-up after one at `now` of a parcel with this latest status, shipped at `shipped_at`.
    pub fn next(
        self,
        shipped_at: DateTime<Utc>,
        status: Option<TrackingStatus>,
        now: DateTime<Utc>,
    ) -> Option<DateTime<Utc>> {
        use TrackingStatus::{Cancelled, Delivered, OutForDelivery, ReadyForPickup, Returned};
        let age = now - shipped_at;
        let times = match (status, age) {
            (Some(Delivered | Returned | Cancelled), _) => return None,
            (_, age) if age >= TRACKED_FOR => return None,
            (Some(OutForDelivery | ReadyForPickup), _) => 1,
            (_, age) if age < TimeDelta::days(3) => 2,
            (_, age) if age < TimeDelta::days(14) => 6,
            _ => 24,
        };
        Some(now + self.interval * times)
    }

    /// The tracking of a part whose shipment was recorded or corrected at `now`; None if it is not in transit,
    /// or its carrier is not asked.
    pub fn begin(self, part: &SellerOrder, now: DateTime<Utc>) -> Option<TrackedParcel> {
        if part.status() != OrderStatus::Shipped {
            return None;
        }
        let shipment = part.tracked_shipment()?;
        Some(TrackedParcel {
            seller: part.seller,
            order: part.id,
            carrier: shipment.carrier,
            tracking_number: shipment.tracking_number.clone(),
            shipped_at: now,
            due_at: self.next(now, shipment.tracking_status, now)?,
        })
    }
}

impl SellerOrder {
    /// The shipment, if its carrier is asked about the parcel: never for test orders and unknown carriers.
    pub fn tracked_shipment(&self) -> Option<&Shipment> {
        self.shipment()
            .filter(|shipment| !self.is_test && shipment.carrier != Carrier::Other)
    }
}

/// A parcel whose tracking begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackedParcel {
    pub seller: SellerId,
    pub order: OrderId,
    pub carrier: Carrier,
    pub tracking_number: TrackingNumber,
    /// When the shipment was recorded, or corrected.
    pub shipped_at: DateTime<Utc>,
    /// The first look-up.
    pub due_at: DateTime<Utc>,
}

/// A parcel that a worker has leased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueParcel {
    pub seller: SellerId,
    pub order: OrderId,
    pub carrier: Carrier,
    pub tracking_number: TrackingNumber,
    pub shipped_at: DateTime<Utc>,
    /// The lease's fencing token.
    pub fence: Uuid,
}

/// The queue of parcels to look up. Each call is a transaction of its own.
///
/// An adapter MUST lease a parcel to one worker at a time across all processes, so that none is looked up
/// twice, and MUST never return test orders.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait TrackingQueue: Send + Sync {
    /// Leases for `lease` the carrier's due parcel that has waited longest, whoever sells it.
    async fn lease_parcel(
        &self,
        carrier: Carrier,
        fence: Uuid,
        lease: TimeDelta,
    ) -> Result<Option<DueParcel>, StoreError>;

    /// Records the next look-up, or that there is none; does nothing if the lease was lost.
    async fn schedule_parcel(
        &self,
        parcel: &DueParcel,
        next: Option<DateTime<Utc>>,
    ) -> Result<(), StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::tests::{at, order, shipment};
    use crate::{Cause, TrackingReport};

    const SCHEDULE: PollSchedule = PollSchedule {
        interval: TimeDelta::minutes(30),
    };

    fn hour(hours: i64) -> DateTime<Utc> {
        at(0) + TimeDelta::hours(hours)
    }

    #[test]
    fn look_ups_become_rarer_with_age_and_end() {
        let arriving = Some(TrackingStatus::OutForDelivery);
        for (hours, status, minutes) in [
            (1, None, Some(60)),
            (24 * 3 - 1, None, Some(60)),
            (24 * 3, None, Some(180)),
            (24 * 14 - 1, None, Some(180)),
            (24 * 14, None, Some(720)),
            (24 * 20, None, Some(720)),
            (24 * 20, arriving, Some(30)),
            (24 * 60, arriving, None),
            (1, Some(TrackingStatus::Delivered), None),
        ] {
            let next = SCHEDULE.next(at(0), status, hour(hours));
            let delay = next.map(|next| (next - hour(hours)).num_minutes());
            assert_eq!(delay, minutes, "{hours} {status:?}");
        }
    }

    #[test]
    fn tracking_begins_with_a_shipment_in_transit() {
        let shipped = |carrier, is_test, status: Option<TrackingStatus>| {
            let mut paid = order().pay(at(0)).unwrap().after;
            paid.is_test = is_test;
            let mut new = shipment(None);
            new.carrier = carrier;
            new.tracking_report = status.map(|status| TrackingReport {
                status,
                at: None,
                raw_code: String::new(),
            });
            paid.ship(new, Cause::Seller, at(0)).unwrap().after
        };
        let due_at = |part: &SellerOrder| SCHEDULE.begin(part, at(0)).map(|parcel| parcel.due_at);
        let in_transit = shipped(Carrier::Inpost, false, None);
        assert_eq!(due_at(&in_transit), Some(hour(1)));
        for part in [
            shipped(Carrier::Inpost, true, None),
            shipped(Carrier::Other, false, None),
            shipped(Carrier::Inpost, false, Some(TrackingStatus::Delivered)),
            shipped(Carrier::Inpost, false, Some(TrackingStatus::Returned)),
            in_transit.deliver(at(0)).unwrap().after,
        ] {
            assert_eq!(due_at(&part), None, "{part:?}");
        }
    }
}
