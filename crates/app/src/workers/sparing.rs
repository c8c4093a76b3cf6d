//! Carriers, asked sparingly on behalf of the worker that follows parcels: sellers' requests ask them too, and go first.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use kernel::Clock;
use orders::{Carrier, CarrierLookup, Lookup, TrackingNumber};
use tokio::sync::Semaphore;

/// Look-ups with one carrier at a time: half of what a carrier is asked at once.
const IN_FLIGHT: usize = 2;
/// DHL lets each parcel be asked about ten times a day. Once is the seller's, when the shipment is reported.
const DHL_BETWEEN: TimeDelta = TimeDelta::minutes(24 * 60 / 9);

/// Looks up within each carrier's daily limit, counted in this process alone.
pub(super) struct Sparing {
    carriers: Arc<dyn CarrierLookup>,
    clock: Arc<dyn Clock>,
    desks: BTreeMap<Carrier, Desk>,
}

/// The way to one carrier.
struct Desk {
    in_flight: Semaphore,
    thrift: Mutex<Thrift>,
}

impl Sparing {
    /// `daily_limit` tells how often a day a carrier may be asked in all; none where no limit is known.
    pub(super) fn new(
        carriers: Arc<dyn CarrierLookup>,
        clock: Arc<dyn Clock>,
        daily_limit: impl Fn(Carrier) -> Option<u32>,
    ) -> Self {
        let desk = |carrier| {
            let thrift = Thrift {
                allowance: daily_limit(carrier).map(Allowance::new),
                between: (carrier == Carrier::Dhl).then_some(DHL_BETWEEN),
                asked: HashMap::new(),
            };
            let desk = Desk {
                in_flight: Semaphore::new(IN_FLIGHT),
                thrift: Mutex::new(thrift),
            };
            (carrier, desk)
        };
        Self {
            carriers,
            clock,
            desks: Carrier::ALL.into_iter().map(desk).collect(),
        }
    }
}

#[async_trait]
impl CarrierLookup for Sparing {
    async fn look_up(&self, carrier: Carrier, number: &TrackingNumber) -> Lookup {
        let Some(desk) = self.desks.get(&carrier) else {
            return Lookup::Unavailable("not asked: nobody knows this carrier".to_owned());
        };
        // Nobody closes the semaphore, so the wait ends with a place.
        let _place = desk.in_flight.acquire().await;
        if !desk.thrift().allows(number, self.clock.now()) {
            return Lookup::Unavailable("not asked: the carrier's limit leaves no room now".to_owned());
        }
        self.carriers.look_up(carrier, number).await
    }
}

impl Desk {
    fn thrift(&self) -> MutexGuard<'_, Thrift> {
        self.thrift.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one carrier allows.
struct Thrift {
    allowance: Option<Allowance>,
    /// The shortest time between two questions about one parcel.
    between: Option<TimeDelta>,
    /// When parcels were asked about, as long as it matters.
    asked: HashMap<TrackingNumber, DateTime<Utc>>,
}

impl Thrift {
    /// Whether to ask now; counts the question then.
    fn allows(&mut self, number: &TrackingNumber, now: DateTime<Utc>) -> bool {
        if let Some(between) = self.between {
            self.asked.retain(|_, at| now - *at < between);
            if self.asked.contains_key(number) {
                return false;
            }
        }
        let allowed = self
            .allowance
            .as_mut()
            .is_none_or(|allowance| allowance.take(now));
        if allowed && self.between.is_some() {
            self.asked.insert(number.clone(), now);
        }
        allowed
    }
}

/// Four fifths of a carrier's daily limit, given out evenly over the day so that every parcel has its turn; what is left is
/// for sellers' requests. A tenth of it may be used at once.
struct Allowance {
    /// From one question to the next.
    spacing: TimeDelta,
    /// How far questions may run ahead of their time.
    ahead: TimeDelta,
    /// When the next question would be due were they asked evenly.
    next: DateTime<Utc>,
    none_at_all: bool,
}

impl Allowance {
    fn new(daily_limit: u32) -> Self {
        let share = i32::try_from(u64::from(daily_limit) * 4 / 5)
            .unwrap_or(i32::MAX)
            .max(1);
        let at_once = (share / 10).max(1);
        let spacing = TimeDelta::days(1) / (share - at_once).max(1);
        Self {
            spacing,
            ahead: spacing * (at_once - 1),
            next: DateTime::UNIX_EPOCH,
            none_at_all: daily_limit == 0,
        }
    }

    fn take(&mut self, now: DateTime<Utc>) -> bool {
        // A clock that was set back must not stop everything until it has caught up.
        self.next = self.next.clamp(now, now + self.ahead + self.spacing);
        let allowed = !self.none_at_all && self.next <= now + self.ahead;
        if allowed {
            self.next += self.spacing;
        }
        allowed
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

    fn number(n: i64) -> TrackingNumber {
        TrackingNumber::new(format!("NUMBER{n}")).unwrap()
    }

    fn asked_in_a_day(allowance: &mut Allowance, day: i64) -> i64 {
        (0..24 * 60)
            .map(|minute| i64::from(allowance.take(at(day * 24 * 60 + minute))))
            .sum()
    }

    #[test]
    fn a_day_holds_its_share_of_the_limit_and_little_less() {
        for limit in [10_u32, 250, 500] {
            let share = i64::from(limit) * 4 / 5;
            let mut allowance = Allowance::new(limit);
            for day in 0..3 {
                let asked = asked_in_a_day(&mut allowance, day);
                assert!(
                    (share * 8 / 10..=share).contains(&asked),
                    "{limit}: {asked} on day {day}"
                );
            }
        }
    }

    #[test]
    fn a_limit_of_nothing_means_that_nobody_is_asked() {
        assert_eq!(asked_in_a_day(&mut Allowance::new(0), 0), 0);
    }

    #[test]
    fn a_clock_that_is_set_back_stops_nobody_for_long() {
        let mut allowance = Allowance::new(250);
        assert!(allowance.take(at(60 * 24 * 365)));
        let asked = asked_in_a_day(&mut allowance, 0);
        assert!(asked > 150, "{asked}");
    }

    #[test]
    fn a_parcel_with_dhl_is_asked_about_nine_times_a_day() {
        let mut thrift = Thrift {
            allowance: None,
            between: Some(DHL_BETWEEN),
            asked: HashMap::new(),
        };
        let asked = (0..24 * 60)
            .filter(|minute| thrift.allows(&number(1), at(*minute)))
            .count();
        assert_eq!(asked, 9);
        assert!((2..500).all(|n| thrift.allows(&number(n), at(24 * 60))));
        assert!(thrift.allows(&number(1), at(3 * 24 * 60)));
        assert_eq!(thrift.asked.len(), 1);
    }

    #[tokio::test]
    async fn who_has_no_room_left_is_not_asked() {
        let (mut carriers, mut clock) = (MockCarrierLookup::new(), MockClock::new());
        carriers
            .expect_look_up()
            .times(2)
            .returning(|_, _| Lookup::NotFound);
        clock.expect_now().returning(|| at(0));
        let limit = |carrier| (carrier == Carrier::Gls).then_some(1);
        let sparing = Sparing::new(Arc::new(carriers), Arc::new(clock), limit);
        assert_eq!(sparing.look_up(Carrier::Gls, &number(1)).await, Lookup::NotFound);
        let refused = sparing.look_up(Carrier::Gls, &number(1)).await;
        assert!(matches!(refused, Lookup::Unavailable(_)), "{refused:?}");
        assert_eq!(sparing.look_up(Carrier::Ups, &number(1)).await, Lookup::NotFound);
    }
}
