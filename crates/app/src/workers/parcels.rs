//! Asks carriers about parcels that are due, within each carrier's daily limit. Each carrier has its own
//! worker. Requests also ask the carriers, within a part of that limit: see `daily_limits`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{Clock, Randomness, TransactionError};
use orders::{Carrier, CarrierLookup, Lookup, PollSchedule, TrackingNumber, TrackingQueue};
use parking_lot::Mutex;
use usecases::UnitOfWork;
use usecases::track_parcels::{Tracking, lease_parcel, track_parcel};

use super::routine::TaskSlots;
use crate::daily_limits::DailyShare;

/// The worker's concurrent look-ups with one carrier: one less than the carrier's client allows.
pub(super) const SLOTS: usize = 3;
/// How long the worker leaves a carrier alone that cannot be asked now.
const PAUSE: Duration = Duration::from_secs(1);

/// The worker of one carrier.
pub(super) struct Parcels {
    pub(super) carrier: Carrier,
    pub(super) carriers: Arc<dyn CarrierLookup>,
    pub(super) queue: Arc<dyn TrackingQueue>,
    pub(super) units: Arc<dyn UnitOfWork>,
    pub(super) randomness: Arc<dyn Randomness>,
    pub(super) schedule: PollSchedule,
    pub(super) least: TimeDelta,
    pub(super) slots: TaskSlots,
}

impl Parcels {
    pub(super) async fn batch(self: Arc<Self>) -> Result<Duration, TransactionError> {
        let Some(slot) = self.slots.free().await? else {
            return Ok(PAUSE);
        };
        if self.carriers.is_paused(self.carrier) {
            return Ok(PAUSE);
        }
        let Some(parcel) = lease_parcel(&*self.queue, self.carrier, &*self.randomness).await? else {
            // Short compared to the shortest time between two look-ups.
            let shortest = self.schedule.interval.to_std().unwrap_or_default();
            return Ok((shortest / 4).clamp(Duration::from_millis(100), Duration::from_secs(10)));
        };
        let worker = Arc::clone(&self);
        self.slots.begin(slot, async move {
            let tracking = Tracking {
                queue: &*worker.queue,
                carriers: &*worker.carriers,
                units: &*worker.units,
                schedule: worker.schedule,
                least: worker.least,
            };
            track_parcel(tracking, &parcel).await?;
            metrics::counter!("parcel_lookups_total").increment(1);
            Ok(())
        });
        Ok(Duration::ZERO)
    }
}

/// The shortest time between two look-ups of a parcel by workers. DHL allows ten a day. One is left for the seller's
/// request that reports the shipment.
pub(super) fn least_interval(carrier: Carrier) -> TimeDelta {
    match carrier {
        Carrier::Dhl => TimeDelta::minutes(24 * 60 / 9),
        _ => TimeDelta::zero(),
    }
}

/// How long what was found is an answer for other orders in the same parcel. No order is polled sooner after its report
/// by default, so that none goes back to what was before that.
const DHL_SHARED: TimeDelta = TimeDelta::minutes(15);

/// Asks a carrier within its daily limit, counted in this process alone.
pub(super) struct QuotaLimitedCarrier {
    carriers: Arc<dyn CarrierLookup>,
    clock: Arc<dyn Clock>,
    /// The look-ups that the worker may still send.
    quota: Mutex<DailyQuota>,
}

impl QuotaLimitedCarrier {
    /// `daily_limit`: look-ups per day that the account allows; `None` if no limit is known.
    pub(super) fn new(
        carriers: Arc<dyn CarrierLookup>,
        clock: Arc<dyn Clock>,
        daily_limit: Option<u32>,
        least: TimeDelta,
    ) -> Self {
        let quota = DailyQuota {
            share: daily_limit.map(DailyShare::of_tracking),
            interval: Some(least).filter(|least| *least > TimeDelta::zero()),
            last_lookup: HashMap::new(),
            pruned_at: 0,
        };
        Self {
            carriers,
            clock,
            quota: Mutex::new(quota),
        }
    }
}

#[async_trait]
impl CarrierLookup for QuotaLimitedCarrier {
    async fn look_up(&self, carrier: Carrier, number: &TrackingNumber) -> Lookup {
        let taken = self.quota.lock().take(number, self.clock.now());
        match taken {
            Taken::Known(found) => return found,
            Taken::Asks => {}
            Taken::Waits => {
                let reason = "not asked: the carrier's daily limit is used up for now";
                return Lookup::Unavailable(reason.to_owned());
            }
        }
        let found = self.carriers.look_up(carrier, number).await;
        self.quota.lock().answered(number, &found);
        found
    }

    fn is_paused(&self, carrier: Carrier) -> bool {
        let now = self.clock.now();
        let is_used_up = |share: &mut DailyShare| share.is_used_up(now);
        self.quota.lock().share.as_mut().is_some_and(is_used_up) || self.carriers.is_paused(carrier)
    }
}

struct DailyQuota {
    share: Option<DailyShare>,
    /// The shortest time between two look-ups of one parcel.
    interval: Option<TimeDelta>,
    /// When each parcel was last looked up, and what was found; those beyond the interval are pruned when it has
    /// `pruned_at` of them.
    last_lookup: HashMap<TrackingNumber, (DateTime<Utc>, Option<Lookup>)>,
    pruned_at: usize,
}

/// Whether to ask a carrier about a parcel.
#[derive(Debug, PartialEq, Eq)]
enum Taken {
    Asks,
    Waits,
    /// It was found lately, for another order with the same number.
    Known(Lookup),
}

impl DailyQuota {
    /// Whether to ask now. Counts the look-up if so.
    fn take(&mut self, number: &TrackingNumber, now: DateTime<Utc>) -> Taken {
        if let Some(interval) = self.interval {
            // What lies ahead is from before the clock was set back.
            let is_within = |at: DateTime<Utc>, time| (TimeDelta::zero()..time).contains(&(now - at));
            let is_recent = |at: DateTime<Utc>| is_within(at, interval);
            match self.last_lookup.get(number) {
                Some((at, Some(found))) if is_within(*at, DHL_SHARED) => return Taken::Known(found.clone()),
                Some((at, _)) if is_recent(*at) => return Taken::Waits,
                _ => {}
            }
            // The walk over all is rare: it begins once there are twice as many as the last one left.
            if self.last_lookup.len() >= self.pruned_at {
                self.last_lookup.retain(|_, (at, _)| is_recent(*at));
                self.pruned_at = 2 * self.last_lookup.len() + 1;
            }
        }
        if !self.share.as_mut().is_none_or(|share| share.take(now)) {
            return Taken::Waits;
        }
        if self.interval.is_some() {
            self.last_lookup.insert(number.clone(), (now, None));
        }
        Taken::Asks
    }

    fn answered(&mut self, number: &TrackingNumber, found: &Lookup) {
        if let (Some((_, last)), Lookup::Found(_)) = (self.last_lookup.get_mut(number), found) {
            *last = Some(found.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use kernel::MockClock;
    use orders::{MockCarrierLookup, TrackingReport, TrackingStatus};

    use super::*;

    fn at(minutes: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::days(20_000) + TimeDelta::minutes(minutes)
    }

    fn number(n: i64) -> TrackingNumber {
        TrackingNumber::new(format!("NUMBER{n}")).unwrap()
    }

    #[test]
    fn a_dhl_parcel_is_looked_up_nine_times_a_day() {
        let mut quota = DailyQuota {
            share: None,
            interval: Some(least_interval(Carrier::Dhl)),
            last_lookup: HashMap::new(),
            pruned_at: 0,
        };
        let mut asks = |n, minute| quota.take(&number(n), at(minute)) == Taken::Asks;
        let taken = (0..24 * 60).filter(|minute| asks(1, *minute)).count();
        assert_eq!(taken, 9);
        for day in 1..20 {
            assert!((0..500).all(|n| asks(500 * day + n, day * 24 * 60)));
        }
        assert!(asks(1, 20 * 24 * 60));
        // The clock is set back.
        assert!(asks(1, 19 * 24 * 60));
        assert!(quota.last_lookup.len() < 3 * 500, "{}", quota.last_lookup.len());
    }

    #[tokio::test]
    async fn orders_in_one_dhl_parcel_share_what_was_found() {
        let (mut carriers, mut clock) = (MockCarrierLookup::new(), MockClock::new());
        let found = Lookup::Found(TrackingReport {
            status: TrackingStatus::Delivered,
            at: None,
            raw_code: "delivered".to_owned(),
        });
        let answer = found.clone();
        carriers
            .expect_look_up()
            .times(2)
            .returning(move |_, _| answer.clone());
        // The carrier is asked at the first and the last of these minutes.
        let mut minutes = [0, 14, 15, 160].into_iter();
        clock.expect_now().returning(move || at(minutes.next().unwrap()));
        let least = least_interval(Carrier::Dhl);
        let carrier = QuotaLimitedCarrier::new(Arc::new(carriers), Arc::new(clock), None, least);
        for is_found in [true, true, false, true] {
            let answer = carrier.look_up(Carrier::Dhl, &number(1)).await;
            assert_eq!(answer == found, is_found, "{answer:?}");
        }
    }

    #[tokio::test]
    async fn a_carrier_over_its_limit_gets_no_look_up() {
        let (mut carriers, mut clock) = (MockCarrierLookup::new(), MockClock::new());
        carriers.expect_look_up().return_once(|_, _| Lookup::NotFound);
        carriers.expect_is_paused().returning(|_| false);
        clock.expect_now().returning(|| at(0));
        let (carriers, least) = (Arc::new(carriers), TimeDelta::zero());
        let gls = QuotaLimitedCarrier::new(carriers, Arc::new(clock), Some(1), least);
        assert!(!gls.is_paused(Carrier::Gls));
        assert_eq!(gls.look_up(Carrier::Gls, &number(1)).await, Lookup::NotFound);
        assert!(gls.is_paused(Carrier::Gls));
        let refused = gls.look_up(Carrier::Gls, &number(1)).await;
        assert!(matches!(refused, Lookup::Unavailable(_)), "{refused:?}");
    }
}
