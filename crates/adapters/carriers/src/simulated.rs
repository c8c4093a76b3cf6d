//! The sandbox's carriers, which read a parcel's fate from its number.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use kernel::Clock;
use orders::{Carrier, CarrierLookup, Lookup, Sighting, TrackingNumber, TrackingStatus};

/// How many numbers with `LATER` are remembered at a time; the oldest is forgotten first.
const REMEMBERED: usize = 10_000;

/// Carriers that answer by tracking number. A number that contains `DELIVERED` is delivered, `TRANSIT` is in transit,
/// `LATER` is in transit at its first look-up and delivered from the second on, `TIMEOUT` is never answered, `ERROR` is
/// a broken carrier, and any other is not known. The first of these words decides. They know neither breaker nor quota,
/// and one look-up never delays another.
pub struct SimulatedCarriers {
    deadline: Duration,
    clock: Arc<dyn Clock>,
    seen: Mutex<Seen>,
}

impl std::fmt::Debug for SimulatedCarriers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimulatedCarriers")
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

impl SimulatedCarriers {
    /// Carriers whose silence is cut at `deadline`.
    pub fn new(deadline: Duration, clock: Arc<dyn Clock>) -> Self {
        Self {
            deadline,
            clock,
            seen: Mutex::default(),
        }
    }

    fn found(&self, status: TrackingStatus, code: &str) -> Lookup {
        Lookup::Found(Sighting {
            status,
            at: Some(self.clock.now()),
            raw_code: code.to_owned(),
        })
    }

    fn is_first(&self, carrier: Carrier, number: &TrackingNumber) -> bool {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_new((carrier, number.clone()))
    }
}

#[async_trait]
impl CarrierLookup for SimulatedCarriers {
    async fn look_up(&self, carrier: Carrier, number: &TrackingNumber) -> Lookup {
        let text = number.as_str();
        if carrier == Carrier::Other {
            Lookup::Unavailable("not asked: nobody knows who carries it".to_owned())
        } else if text.contains("DELIVERED") {
            self.found(TrackingStatus::Delivered, "DELIVERED")
        } else if text.contains("TRANSIT") {
            self.found(TrackingStatus::InTransit, "TRANSIT")
        } else if text.contains("LATER") {
            if self.is_first(carrier, number) {
                self.found(TrackingStatus::InTransit, "TRANSIT")
            } else {
                self.found(TrackingStatus::Delivered, "DELIVERED")
            }
        } else if text.contains("TIMEOUT") {
            tokio::time::sleep(self.deadline).await;
            Lookup::Unavailable("no answer in time".to_owned())
        } else if text.contains("ERROR") {
            Lookup::Unavailable("HTTP status 500".to_owned())
        } else {
            Lookup::NotFound
        }
    }
}

/// Which numbers were looked up before.
#[derive(Default)]
struct Seen {
    parcels: HashSet<(Carrier, TrackingNumber)>,
    in_order: VecDeque<(Carrier, TrackingNumber)>,
}

impl Seen {
    fn is_new(&mut self, parcel: (Carrier, TrackingNumber)) -> bool {
        if !self.parcels.insert(parcel.clone()) {
            return false;
        }
        self.in_order.push_back(parcel);
        if self.in_order.len() > REMEMBERED
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.parcels.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};

    use super::*;

    struct Stopped;

    impl Clock for Stopped {
        fn now(&self) -> DateTime<Utc> {
            DateTime::from_timestamp(1_700_000_000, 0).unwrap()
        }
    }

    fn carriers() -> SimulatedCarriers {
        SimulatedCarriers::new(Duration::from_millis(2_500), Arc::new(Stopped))
    }

    async fn ask(carriers: &SimulatedCarriers, number: &str) -> Lookup {
        carriers
            .look_up(Carrier::Gls, &TrackingNumber::new(number.to_owned()).unwrap())
            .await
    }

    fn status(lookup: &Lookup) -> Option<TrackingStatus> {
        match lookup {
            Lookup::Found(sighting) => {
                assert_eq!(sighting.at, Some(Stopped.now()));
                Some(sighting.status)
            }
            _ => None,
        }
    }

    #[tokio::test]
    async fn the_number_tells_the_fate() {
        let carriers = carriers();
        assert_eq!(
            status(&ask(&carriers, "PL-DELIVERED-1").await),
            Some(TrackingStatus::Delivered)
        );
        assert_eq!(
            status(&ask(&carriers, "TRANSIT-1").await),
            Some(TrackingStatus::InTransit)
        );
        assert_eq!(ask(&carriers, "PL-0001").await, Lookup::NotFound);
        assert!(
            matches!(ask(&carriers, "ERROR").await, Lookup::Unavailable(reason) if reason.contains("500"))
        );
    }

    #[tokio::test]
    async fn later_is_in_transit_once() {
        let carriers = carriers();
        for number in ["LATER-1", "LATER-2"] {
            assert_eq!(
                status(&ask(&carriers, number).await),
                Some(TrackingStatus::InTransit)
            );
        }
        for number in ["LATER-1", "LATER-1", "LATER-2"] {
            assert_eq!(
                status(&ask(&carriers, number).await),
                Some(TrackingStatus::Delivered)
            );
        }
    }

    #[tokio::test]
    async fn what_is_remembered_is_bounded() {
        let carriers = carriers();
        for n in 0..=REMEMBERED {
            ask(&carriers, &format!("LATER-{n}")).await;
        }
        assert_eq!(carriers.seen.lock().unwrap().parcels.len(), REMEMBERED);
        assert_eq!(
            status(&ask(&carriers, "LATER-0").await),
            Some(TrackingStatus::InTransit)
        );
    }

    #[tokio::test]
    async fn an_unnamed_carrier_is_never_asked() {
        let number = TrackingNumber::new("DELIVERED".to_owned()).unwrap();
        let lookup = carriers().look_up(Carrier::Other, &number).await;
        assert!(matches!(lookup, Lookup::Unavailable(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_at_the_deadline_and_delays_nobody() {
        let carriers = carriers();
        let began = tokio::time::Instant::now();
        let silent = futures_util::future::join_all((0..100).map(|n| {
            let carriers = &carriers;
            async move { ask(carriers, &format!("TIMEOUT-{n}")).await }
        }));
        let other = async {
            let lookup = ask(&carriers, "DELIVERED").await;
            assert_eq!(status(&lookup), Some(TrackingStatus::Delivered));
            assert_eq!(began.elapsed(), Duration::ZERO);
        };
        let (silent, ()) = tokio::join!(silent, other);
        assert!(
            silent
                .iter()
                .all(|lookup| matches!(lookup, Lookup::Unavailable(_)))
        );
        assert_eq!(began.elapsed(), Duration::from_millis(2_500));
    }
}
