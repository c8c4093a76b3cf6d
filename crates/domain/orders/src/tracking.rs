//! Tracking of parcels in transit: when to look them up, and the queue of due look-ups.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{Change, SellerId, StoreError};
use uuid::Uuid;

use crate::{
    Carrier, OrderEvent, OrderEventKind, OrderId, OrderState, SellerOrder, TrackingNumber, TrackingStatus,
};

/// How long a parcel is tracked after its shipment.
const FOLLOWED: TimeDelta = TimeDelta::days(60);

/// When to look a parcel up again: often while it is new or about to arrive, rarely later, and not at all once it is 60
/// days old or has a final status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollSchedule {
    /// The shortest time between two look-ups of a parcel; all other delays are multiples of it.
    pub interval: TimeDelta,
}

impl PollSchedule {
    /// The next look-up after a response at `now` about a parcel shipped at `shipped_at`.
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
            (_, age) if age >= FOLLOWED => return None,
            (Some(OutForDelivery | ReadyForPickup), _) => 1,
            (_, age) if age < TimeDelta::days(3) => 2,
            (_, age) if age < TimeDelta::days(14) => 6,
            _ => 24,
        };
        Some(now + self.interval * times)
    }

    /// The effect of an order's change at `now` on the tracking of its parcel; None if there is none. Test orders and
    /// unknown carriers are not tracked.
    pub fn following(
        self,
        change: &Change<SellerOrder, OrderEvent>,
        now: DateTime<Utc>,
    ) -> Option<Following> {
        let part = &change.after;
        let parcel = part
            .parcel()
            .filter(|parcel| !part.is_test && parcel.carrier != Carrier::Other)?;
        let has = |kind| change.events.iter().any(|event| event.kind == kind);
        match &part.state {
            OrderState::Shipped { shipped_at, .. } if has(OrderEventKind::Shipped) => {
                let due_at = self.next(*shipped_at, parcel.tracking_status, now)?;
                Some(Following::Begins { due_at })
            }
            OrderState::Delivered { .. } if has(OrderEventKind::Delivered) => Some(Following::Ends),
            _ => None,
        }
    }
}

/// The effect of an order's change on the tracking of its parcel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Following {
    /// Tracking begins: the first look-up is due at this time.
    Begins { due_at: DateTime<Utc> },
    /// The parcel has arrived. Its tracking may have ended before, or never begun.
    Ends,
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
/// An adapter MUST lease a parcel to one worker at a time across all processes, so that none is looked up twice, and
/// MUST never return test orders or parcels of [`Carrier::Other`].
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait TrackingQueue: Send + Sync {
    /// Leases up to `limit` due parcels for `lease`.
    async fn lease_parcels(
        &self,
        fence: Uuid,
        limit: u16,
        lease: TimeDelta,
    ) -> Result<Vec<DueParcel>, StoreError>;

    /// Records the next look-up, or that there is none; does nothing if the lease was lost.
    async fn schedule_parcel(
        &self,
        parcel: &DueParcel,
        next: Option<DateTime<Utc>>,
    ) -> Result<(), StoreError>;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Cause, OrderNumber, Parcel};

    const SCHEDULE: PollSchedule = PollSchedule {
        interval: TimeDelta::minutes(30),
    };

    fn at(hours: i64) -> DateTime<Utc> {
        DateTime::<Utc>::UNIX_EPOCH + TimeDelta::hours(hours)
    }

    #[test]
    fn spacing_grows_with_age_and_ends() {
        let next = |hours, status| {
            SCHEDULE
                .next(at(0), status, at(hours))
                .map(|next| next - at(hours))
        };
        assert_eq!(next(1, None), Some(TimeDelta::hours(1)));
        assert_eq!(next(24 * 3 - 1, None), Some(TimeDelta::hours(1)));
        assert_eq!(next(24 * 3, None), Some(TimeDelta::hours(3)));
        assert_eq!(next(24 * 14 - 1, None), Some(TimeDelta::hours(3)));
        assert_eq!(next(24 * 14, None), Some(TimeDelta::hours(12)));
        assert_eq!(next(24 * 20, None), Some(TimeDelta::hours(12)));
        assert_eq!(
            next(24 * 20, Some(TrackingStatus::OutForDelivery)),
            Some(TimeDelta::minutes(30))
        );
        assert_eq!(next(24 * 60, Some(TrackingStatus::OutForDelivery)), None);
        assert_eq!(next(1, Some(TrackingStatus::Delivered)), None);
    }

    fn change(
        carrier: Carrier,
        is_test: bool,
        kind: OrderEventKind,
        delivered: bool,
    ) -> Change<SellerOrder, OrderEvent> {
        let (id, number) = (
            OrderId::from(Uuid::nil()),
            OrderNumber::new("A-1".to_owned()).unwrap(),
        );
        let parcel = Parcel {
            id: Uuid::nil().into(),
            carrier,
            tracking_number: TrackingNumber::new("ABC-123".to_owned()).unwrap(),
            tracking_status: None,
            delivered_already: false,
            buyer_notified: false,
            created_at: at(1),
        };
        let (paid_at, shipped_at) = (at(0), at(1));
        let state = if delivered {
            OrderState::Delivered {
                paid_at,
                shipped_at,
                delivered_at: at(2),
                parcel: Some(parcel),
            }
        } else {
            OrderState::Shipped {
                paid_at,
                shipped_at,
                parcel,
            }
        };
        let after = SellerOrder {
            seller: Uuid::nil().into(),
            id,
            number: number.clone(),
            is_test,
            several_sellers: false,
            payment_method: None,
            delivery_method: None,
            placed_at: at(0),
            buyer: None,
            shipping_address: None,
            items: Vec::new(),
            state,
            updated_at: at(1),
        };
        let event = OrderEvent {
            kind,
            order: id,
            number,
            cause: Cause::Seller,
        };
        Change::of_existing(after, vec![event])
    }

    #[test]
    fn a_parcel_is_followed_from_its_shipment_to_its_delivery() {
        use OrderEventKind::{Delivered, Paid, Shipped};
        let following = |change| SCHEDULE.following(&change, at(1));
        let due_at = at(2);
        assert_eq!(
            following(change(Carrier::Inpost, false, Shipped, false)),
            Some(Following::Begins { due_at })
        );
        assert_eq!(
            following(change(Carrier::Inpost, false, Delivered, true)),
            Some(Following::Ends)
        );
        for nothing in [
            change(Carrier::Inpost, true, Shipped, false),
            change(Carrier::Other, false, Shipped, false),
            change(Carrier::Inpost, false, Paid, false),
            change(Carrier::Inpost, false, Shipped, true),
            change(Carrier::Inpost, true, Delivered, true),
        ] {
            assert_eq!(following(nothing), None);
        }
    }

    proptest! {
        #[test]
        fn the_next_question_lies_ahead_and_there_is_a_last_one(
            status in prop::option::of(prop::sample::select(TrackingStatus::ALL.to_vec())),
            start in 0_i64..2000,
        ) {
            let (mut now, mut asked) = (at(start), 0);
            while let Some(next) = SCHEDULE.next(at(0), status, now) {
                prop_assert!(next > now);
                now = next;
                asked += 1;
                prop_assert!(asked < 4_000);
            }
        }
    }
}
