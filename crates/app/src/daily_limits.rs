//! Carriers' daily limits, shared out between tracking and requests. Each process counts for itself.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use kernel::Clock;
use orders::{Carrier, CarrierLookup, Lookup, TrackingNumber};
use parking_lot::Mutex;

/// Asks carriers for requests within a fifth of their daily limits, so that one seller's reports leave tracking the
/// rest. Beyond it, a shipment is reported without asking (D42).
pub(crate) struct RequestLookups {
    carriers: Arc<dyn CarrierLookup>,
    clock: Arc<dyn Clock>,
    shares: Mutex<HashMap<Carrier, DailyShare>>,
}

impl RequestLookups {
    /// `daily_limit`: look-ups per day that the account allows; `None` if no limit is known.
    pub(crate) fn new(
        carriers: Arc<dyn CarrierLookup>,
        clock: Arc<dyn Clock>,
        daily_limit: impl Fn(Carrier) -> Option<u32>,
    ) -> Self {
        let shares = Carrier::ALL.into_iter().filter_map(|carrier| {
            let limit = daily_limit(carrier)?;
            Some((carrier, DailyShare::of_requests(limit)))
        });
        Self {
            carriers,
            clock,
            shares: Mutex::new(shares.collect()),
        }
    }
}

#[async_trait]
impl CarrierLookup for RequestLookups {
    async fn look_up(&self, carrier: Carrier, number: &TrackingNumber) -> Lookup {
        let now = self.clock.now();
        let may_ask = |share: &mut DailyShare| share.take(now);
        // A carrier that is paused is not asked, which costs nothing.
        if self.is_paused(carrier) || self.shares.lock().get_mut(&carrier).is_none_or(may_ask) {
            return self.carriers.look_up(carrier, number).await;
        }
        let reason = "not asked: requests have used up their part of the daily limit";
        tracing::debug!(carrier = carrier.as_str(), "{reason}");
        Lookup::Unavailable(reason.to_owned())
    }

    fn is_paused(&self, carrier: Carrier) -> bool {
        self.carriers.is_paused(carrier)
    }
}

/// A part of a carrier's daily limit, spread evenly over the day (GCRA), with bursts.
pub(crate) struct DailyShare {
    spacing: TimeDelta,
    /// How far look-ups may run ahead of the even spacing.
    burst: TimeDelta,
    /// When the next look-up would be due at even spacing.
    next: DateTime<Utc>,
    is_zero: bool,
}

impl DailyShare {
    /// Four fifths, with bursts of up to a tenth of them.
    pub(crate) fn of_tracking(daily_limit: u32) -> Self {
        Self::new(daily_limit, 4, 10)
    }

    /// A fifth, half of it at once: sellers ship in the evening.
    fn of_requests(daily_limit: u32) -> Self {
        Self::new(daily_limit, 1, 2)
    }

    /// `fifths` of the limit, with bursts of this share divided by `burst_divisor`.
    fn new(daily_limit: u32, fifths: u64, burst_divisor: i32) -> Self {
        let share = i32::try_from(u64::from(daily_limit) * fifths / 5)
            .unwrap_or(i32::MAX)
            .max(1);
        let burst = (share / burst_divisor).max(1);
        let spacing = TimeDelta::days(1) / (share - burst).max(1);
        Self {
            spacing,
            burst: spacing * (burst - 1),
            next: DateTime::UNIX_EPOCH,
            is_zero: daily_limit == 0,
        }
    }

    /// Whether look-ups have to wait. A limit of zero is never worth a wait.
    pub(crate) fn is_used_up(&mut self, now: DateTime<Utc>) -> bool {
        // The upper bound keeps a clock that was set back from stopping all look-ups until it has caught up.
        self.next = self.next.clamp(now, now + self.burst + self.spacing);
        !self.is_zero && self.next > now + self.burst
    }

    pub(crate) fn take(&mut self, now: DateTime<Utc>) -> bool {
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
    use orders::MockCarrierLookup;

    use super::*;

    fn at(minutes: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::days(20_000) + TimeDelta::minutes(minutes)
    }

    fn taken_in_a_day(share: &mut DailyShare, day: i64) -> i64 {
        (0..24 * 60)
            .map(|minute| i64::from(share.take(at(day * 24 * 60 + minute))))
            .sum()
    }

    #[test]
    fn look_ups_use_four_fifths_of_the_daily_limit() {
        for limit in [0, 10_u32, 250, 500] {
            let most = i64::from(limit) * 4 / 5;
            let mut share = DailyShare::of_tracking(limit);
            for day in 0..3 {
                let taken = taken_in_a_day(&mut share, day);
                assert!((most * 8 / 10..=most).contains(&taken), "{limit}: {taken}");
            }
        }
        // A clock that is set back does not stop look-ups for long.
        let mut share = DailyShare::of_tracking(250);
        assert!(share.take(at(60 * 24 * 365)));
        let taken = taken_in_a_day(&mut share, 0);
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
        let limit = |carrier| (carrier == Carrier::Dhl).then_some(250);
        let requests = RequestLookups::new(Arc::new(carriers), Arc::new(clock), limit);
        let number = TrackingNumber::new("NUMBER".to_owned()).unwrap();
        for (carrier, most) in [(Carrier::Dhl, 50), (Carrier::Dhl, 25), (Carrier::Ups, 50)] {
            let mut asked = 0;
            for _ in 0..50 {
                asked += u32::from(requests.look_up(carrier, &number).await == Lookup::NotFound);
            }
            assert_eq!(asked, most, "{carrier:?}");
        }
    }
}
