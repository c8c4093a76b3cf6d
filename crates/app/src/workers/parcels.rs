//! Asks carriers about parcels that are due, within each carrier's daily limit. Each carrier has its own
//! worker. Sellers' requests also ask the carriers and have priority.

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
            share: daily_limit.map(EvenShare::new),
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
        let is_used_up = |share: &mut EvenShare| share.is_used_up(now);
        self.quota.lock().share.as_mut().is_some_and(is_used_up) || self.carriers.is_paused(carrier)
    }
}

struct DailyQuota {
    share: Option<EvenShare>,
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

/// Four fifths of a carrier's daily limit, spread evenly over the day (GCRA), with bursts of up to a tenth.
/// The rest is for sellers' requests.
struct EvenShare {
    spacing: TimeDelta,
    /// How far look-ups may run ahead of the even spacing.
    burst: TimeDelta,
    /// When the next look-up would be due at even spacing.
    next: DateTime<Utc>,
    is_zero: bool,
}

impl EvenShare {
    fn new(daily_limit: u32) -> Self {
        let share = i32::try_from(u64::from(daily_limit) * 4 / 5)
            .unwrap_or(i32::MAX)
            .max(1);
        let burst = (share / 10).max(1);
        let spacing = TimeDelta::days(1) / (share - burst).max(1);
        Self {
            spacing,
            burst: spacing * (burst - 1),
            next: DateTime::UNIX_EPOCH,
            is_zero: daily_limit == 0,
        }
    }

    /// Whether look-ups have to wait. A limit of zero is never worth a wait.
    fn is_used_up(&mut self, now: DateTime<Utc>) -> bool {
        // The upper bound keeps a clock that was set back from stopping all look-ups until it has caught up.
        self.next = self.next.clamp(now, now + self.burst + self.spacing);
        !self.is_zero && self.next > now + self.burst
    }

    fn take(&mut self, now: DateTime<Utc>) -> bool {
        let is_allowed = !self.is_zero && !self.is_used_up(now);
        if is_allowed {
            self.next += self.spacing;
        }
        is_allowed
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

    fn taken_in_a_day(share: &mut EvenShare, day: i64) -> i64 {
        (0..24 * 60)
            .map(|minute| i64::from(share.take(at(day * 24 * 60 + minute))))
            .sum()
    }

    #[test]
    fn look_ups_use_four_fifths_of_the_daily_limit() {
        for limit in [0, 10_u32, 250, 500] {
            let most = i64::from(limit) * 4 / 5;
            let mut share = EvenShare::new(limit);
            for day in 0..3 {
                let taken = taken_in_a_day(&mut share, day);
                assert!((most * 8 / 10..=most).contains(&taken), "{limit}: {taken}");
            }
        }
        // A clock that is set back does not stop look-ups for long.
        let mut share = EvenShare::new(250);
        assert!(share.take(at(60 * 24 * 365)));
        let taken = taken_in_a_day(&mut share, 0);
        assert!(taken > 150, "{taken}");
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
