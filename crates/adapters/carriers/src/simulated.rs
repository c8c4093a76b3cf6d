//! The sandbox's carriers. A parcel's tracking number determines its state.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use kernel::Clock;
use orders::{Carrier, CarrierLookup, Lookup, TrackingNumber, TrackingReport, TrackingStatus};
use parking_lot::Mutex;

use crate::DEADLINE;

/// How many numbers are remembered for each purpose; at this number all are forgotten.
const REMEMBERED: usize = 10_000;

/// Carriers whose answers depend on the tracking number. A number that contains `DELIVERED` is delivered,
/// `TRANSIT` is in transit, `LATER` is in transit at its first look-up and delivered from the second on,
/// `TIMEOUT` gets no answer, `ERROR` an error of the carrier, and any other number is unknown. If a number
/// contains several of these words, the first in this order decides. There is no breaker and no quota, and
/// look-ups do not delay each other (D122).
pub struct SimulatedCarriers {
    clock: Arc<dyn Clock>,
    seen: Mutex<HashSet<(Carrier, TrackingNumber)>>,
    set: Mutex<HashMap<TrackingNumber, TrackingStatus>>,
}

impl SimulatedCarriers {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            seen: Mutex::default(),
            set: Mutex::default(),
        }
    }

    /// From now on every carrier says this of parcels with this number.
    pub fn set(&self, number: TrackingNumber, status: TrackingStatus) {
        let mut set = self.set.lock();
        if set.len() >= REMEMBERED {
            set.clear();
        }
        set.insert(number, status);
    }

    fn found(&self, status: TrackingStatus, code: &str) -> Lookup {
        Lookup::Found(TrackingReport {
            status,
            at: Some(self.clock.now()),
            raw_code: code.to_owned(),
        })
    }

    fn is_first(&self, carrier: Carrier, number: &TrackingNumber) -> bool {
        let mut seen = self.seen.lock();
        if seen.len() >= REMEMBERED {
            seen.clear();
        }
        seen.insert((carrier, number.clone()))
    }
}

#[async_trait]
impl CarrierLookup for SimulatedCarriers {
    async fn look_up(&self, carrier: Carrier, number: &TrackingNumber) -> Lookup {
        let text = number.as_str();
        let set = self.set.lock().get(number).copied();
        if carrier == Carrier::Other {
            Lookup::NotConfigured
        } else if let Some(status) = set {
            self.found(status, status.as_str())
        } else if text.contains("DELIVERED") {
            self.found(TrackingStatus::Delivered, "DELIVERED")
        } else if text.contains("TRANSIT") || text.contains("LATER") && self.is_first(carrier, number) {
            self.found(TrackingStatus::InTransit, "TRANSIT")
        } else if text.contains("LATER") {
            self.found(TrackingStatus::Delivered, "DELIVERED")
        } else if text.contains("TIMEOUT") {
            tokio::time::sleep(DEADLINE).await;
            Lookup::Unavailable("no answer in time".to_owned())
        } else if text.contains("ERROR") {
            Lookup::Unavailable("HTTP status 500".to_owned())
        } else {
            Lookup::NotFound
        }
    }

    fn is_paused(&self, _: Carrier) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use testkit::ManualClock;
    use tokio::time::Instant;

    use super::*;

    fn carriers() -> SimulatedCarriers {
        let clock = ManualClock::at("2026-01-06T22:00:00Z");
        SimulatedCarriers::new(Arc::new(clock))
    }

    async fn look_up(carriers: &SimulatedCarriers, number: &str) -> String {
        let number = TrackingNumber::new(number.to_owned()).unwrap();
        match carriers.look_up(Carrier::Gls, &number).await {
            Lookup::Found(tracking_report) => {
                assert_eq!(tracking_report.at, Some(carriers.clock.now()));
                tracking_report.status.as_str().to_owned()
            }
            Lookup::NotFound => "not found".to_owned(),
            Lookup::NotConfigured => "not configured".to_owned(),
            Lookup::Unavailable(reason) => reason,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_decides() {
        let (carriers, began) = (carriers(), Instant::now());
        for (number, expected) in [
            ("PL-DELIVERED-1", "delivered"),
            ("TRANSIT-1", "in_transit"),
            ("LATER-1", "in_transit"),
            ("LATER-2", "in_transit"),
            ("LATER-1", "delivered"),
            ("PL-0001", "not found"),
            ("ERROR", "HTTP status 500"),
            ("TIMEOUT", "no answer in time"),
        ] {
            assert_eq!(look_up(&carriers, number).await, expected, "{number}");
        }
        assert_eq!(began.elapsed(), DEADLINE, "only the last one takes time");
        let number = TrackingNumber::new("DELIVERED".to_owned()).unwrap();
        let other = carriers.look_up(Carrier::Other, &number).await;
        assert_eq!(other, Lookup::NotConfigured);
    }

    #[tokio::test]
    async fn what_was_set_comes_before_the_number() {
        let carriers = carriers();
        let number = TrackingNumber::new("LATER-1".to_owned()).unwrap();
        carriers.set(number, TrackingStatus::Exception);
        assert_eq!(look_up(&carriers, "LATER-1").await, "exception");
        assert_eq!(look_up(&carriers, "LATER-2").await, "in_transit");
    }

    #[tokio::test]
    async fn memory_is_bounded() {
        let carriers = carriers();
        for n in 0..=REMEMBERED {
            look_up(&carriers, &format!("LATER-{n}")).await;
        }
        assert_eq!(carriers.seen.lock().len(), 1);
    }
}
