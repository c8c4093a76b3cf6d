//! Carriers' daily limits, shared out between tracking and requests. Each process counts for itself.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use kernel::Clock;
use orders::{Carrier, CarrierLookup, Lookup, TrackingNumber};
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};

/// How long an answer is reused for other orders in the same parcel. By default no order is polled sooner after its
/// report, so that none gets an answer from before that.
const DHL_SHARED: TimeDelta = TimeDelta::minutes(15);

/// The shortest time between two look-ups of a parcel by workers. DHL allows ten a day. One is left for the seller's
/// request that reports the shipment.
pub(crate) fn least_interval(carrier: Carrier) -> TimeDelta {
    match carrier {
        Carrier::Dhl => TimeDelta::minutes(24 * 60 / 9),
        _ => TimeDelta::zero(),
    }
}

/// Asks each carrier within a quota.
pub(crate) struct LimitedLookups {
    carriers: Arc<dyn CarrierLookup>,
    clock: Arc<dyn Clock>,
    quotas: Mutex<HashMap<Carrier, DailyQuota>>,
}

impl LimitedLookups {
    pub(crate) fn new(
        carriers: Arc<dyn CarrierLookup>,
        clock: Arc<dyn Clock>,
        quota: impl Fn(Carrier) -> DailyQuota,
    ) -> Self {
        let quotas = Carrier::ALL.into_iter().map(|carrier| (carrier, quota(carrier)));
        Self {
            carriers,
            clock,
            quotas: Mutex::new(quotas.collect()),
        }
    }

    fn quota(&self, carrier: Carrier) -> MappedMutexGuard<'_, DailyQuota> {
        MutexGuard::map(self.quotas.lock(), |quotas| quotas.entry(carrier).or_default())
    }
}

#[async_trait]
impl CarrierLookup for LimitedLookups {
    async fn look_up(&self, carrier: Carrier, number: &TrackingNumber) -> Lookup {
        // A carrier that is paused is not asked, which costs nothing.
        if self.carriers.is_paused(carrier) {
            return self.carriers.look_up(carrier, number).await;
        }
        let taken = self.quota(carrier).take(number, self.clock.now());
        match taken {
            Taken::Known(found) => found,
            Taken::Waits => {
                let reason = "not asked: the carrier's daily limit leaves this look-up for later";
                tracing::debug!(carrier = carrier.as_str(), "{reason}");
                Lookup::Unavailable(reason.to_owned())
            }
            Taken::Asks => {
                let found = self.carriers.look_up(carrier, number).await;
                self.quota(carrier).answered(number, &found);
                found
            }
        }
    }

    fn is_paused(&self, carrier: Carrier) -> bool {
        self.quota(carrier).is_used_up(self.clock.now()) || self.carriers.is_paused(carrier)
    }
}

/// What a carrier may still be asked of the look-ups per day that the account allows, if a limit is known.
#[derive(Default)]
pub(crate) struct DailyQuota {
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
    /// A fifth, half of it at once: sellers ship in the evening. So one seller's reports leave tracking the rest. Beyond
    /// it, a shipment is reported without asking (D42).
    pub(crate) fn of_requests(daily_limit: Option<u32>) -> Self {
        Self {
            share: daily_limit.map(|limit| DailyShare::new(limit / 5, 2)),
            ..Self::default()
        }
    }

    /// The rest, with bursts of up to a tenth of it.
    pub(crate) fn of_tracking(daily_limit: Option<u32>, least: TimeDelta) -> Self {
        Self {
            share: daily_limit.map(|limit| DailyShare::new(limit - limit / 5, 10)),
            interval: Some(least).filter(|least| *least > TimeDelta::zero()),
            ..Self::default()
        }
    }

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
            // Looks through all only once there are twice as many as the last time left.
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

    fn is_used_up(&mut self, now: DateTime<Utc>) -> bool {
        self.share.as_mut().is_some_and(|share| share.is_used_up(now))
    }

    fn answered(&mut self, number: &TrackingNumber, found: &Lookup) {
        if let (Some((_, last)), Lookup::Found(_)) = (self.last_lookup.get_mut(number), found) {
            *last = Some(found.clone());
        }
    }
}

/// A part of a carrier's daily limit, spread evenly over the day (GCRA), with bursts.
struct DailyShare {
    spacing: TimeDelta,
    /// How far look-ups may run ahead of the even spacing.
    burst: TimeDelta,
    /// When the next look-up would be due at even spacing.
    next: DateTime<Utc>,
    is_empty: bool,
}

impl DailyShare {
    /// So many look-ups a day, with bursts of these divided by `burst_divisor`.
    fn new(share: u32, burst_divisor: i32) -> Self {
        let share = i32::try_from(share).unwrap_or(i32::MAX);
        let burst = (share / burst_divisor).max(1);
        let spacing = TimeDelta::days(1) / (share - burst).max(1);
        Self {
            spacing,
            burst: spacing * (burst - 1),
            next: DateTime::UNIX_EPOCH,
            is_empty: share == 0,
        }
    }

    /// Whether look-ups have to wait. An empty share is never worth a wait.
    fn is_used_up(&mut self, now: DateTime<Utc>) -> bool {
        // The upper bound keeps a clock that was set back from stopping all look-ups until it has caught up.
        self.next = self.next.clamp(now, now + self.burst + self.spacing);
        !self.is_empty && self.next > now + self.burst
    }

    fn take(&mut self, now: DateTime<Utc>) -> bool {
        let is_allowed = !self.is_empty && !self.is_used_up(now);
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

    fn taken_in_a_day(quota: &mut DailyQuota, day: i64) -> i64 {
        (0..24 * 60)
            .map(|minute| i64::from(quota.take(&number(1), at(day * 24 * 60 + minute)) == Taken::Asks))
            .sum()
    }

    #[test]
    fn look_ups_use_four_fifths_of_the_daily_limit() {
        for limit in [1, 10_u32, 250, 500] {
            let most = i64::from(limit - limit / 5);
            let mut quota = DailyQuota::of_tracking(Some(limit), TimeDelta::zero());
            for day in 0..3 {
                let taken = taken_in_a_day(&mut quota, day);
                assert!((most * 8 / 10..=most).contains(&taken), "{limit}: {taken}");
            }
        }
        // A clock that is set back does not stop look-ups for long.
        let mut quota = DailyQuota::of_tracking(Some(250), TimeDelta::zero());
        assert_eq!(quota.take(&number(1), at(60 * 24 * 365)), Taken::Asks);
        let taken = taken_in_a_day(&mut quota, 0);
        assert!(taken > 150, "{taken}");
    }

    #[tokio::test]
    async fn one_sellers_reports_leave_tracking_its_part_of_the_daily_limit() {
        let (mut carriers, mut clock) = (MockCarrierLookup::new(), MockClock::new());
        carriers
            .expect_look_up()
            .times(50 + 25 + 50)
            .returning(|_, _| Lookup::NotFound);
        clock.expect_now().returning(|| at(0));
        // First its breaker is open.
        let mut paused = 50;
        carriers.expect_is_paused().returning(move |carrier| {
            paused -= i32::from(carrier == Carrier::Dhl);
            carrier == Carrier::Dhl && paused >= 0
        });
        let quota = |carrier| DailyQuota::of_requests((carrier == Carrier::Dhl).then_some(250));
        let requests = LimitedLookups::new(Arc::new(carriers), Arc::new(clock), quota);
        for (carrier, most) in [(Carrier::Dhl, 50), (Carrier::Dhl, 25), (Carrier::Ups, 50)] {
            let mut asked = 0;
            for _ in 0..50 {
                asked += u32::from(requests.look_up(carrier, &number(1)).await == Lookup::NotFound);
            }
            assert_eq!(asked, most, "{carrier:?}");
        }
    }

    #[test]
    fn a_dhl_parcel_is_looked_up_nine_times_a_day() {
        let mut quota = DailyQuota::of_tracking(None, least_interval(Carrier::Dhl));
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
        carriers.expect_is_paused().returning(|_| false);
        // The carrier is asked at the first and the last of these minutes.
        let mut minutes = [0, 14, 15, 160].into_iter();
        clock.expect_now().returning(move || at(minutes.next().unwrap()));
        let quota = |carrier| DailyQuota::of_tracking(None, least_interval(carrier));
        let tracking = LimitedLookups::new(Arc::new(carriers), Arc::new(clock), quota);
        for is_found in [true, true, false, true] {
            let answer = tracking.look_up(Carrier::Dhl, &number(1)).await;
            assert_eq!(answer == found, is_found, "{answer:?}");
        }
    }

    #[tokio::test]
    async fn a_carrier_over_its_limit_gets_no_look_up() {
        let (mut carriers, mut clock) = (MockCarrierLookup::new(), MockClock::new());
        carriers.expect_look_up().return_once(|_, _| Lookup::NotFound);
        carriers.expect_is_paused().returning(|_| false);
        clock.expect_now().returning(|| at(0));
        let quota = |carrier| DailyQuota::of_tracking(Some(1), least_interval(carrier));
        let tracking = LimitedLookups::new(Arc::new(carriers), Arc::new(clock), quota);
        assert!(!tracking.is_paused(Carrier::Gls));
        assert_eq!(tracking.look_up(Carrier::Gls, &number(1)).await, Lookup::NotFound);
        assert!(tracking.is_paused(Carrier::Gls));
        let refused = tracking.look_up(Carrier::Gls, &number(1)).await;
        assert!(matches!(refused, Lookup::Unavailable(_)), "{refused:?}");
    }
}
