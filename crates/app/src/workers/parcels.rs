//! Asks carriers about the parcels that are due.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use kernel::Randomness;
use orders::{CarrierLookup, PollSchedule, TrackingQueue};
use usecases::{
    UnitOfWork, UnitOfWorkError,
    track_parcels::{Tracking, track_parcels},
};

use super::routine::Routine;

/// The worker.
pub(super) struct Parcels {
    pub(super) queue: Arc<dyn TrackingQueue>,
    pub(super) carriers: Arc<dyn CarrierLookup>,
    pub(super) units: Arc<dyn UnitOfWork>,
    pub(super) randomness: Arc<dyn Randomness>,
    pub(super) schedule: PollSchedule,
}

impl Parcels {
    /// How often to look: often enough beside the shortest time between two questions.
    fn look_every(&self) -> Duration {
        let shortest = self.schedule.interval.to_std().unwrap_or_default();
        (shortest / 4).clamp(Duration::from_millis(100), Duration::from_secs(10))
    }
}

#[async_trait]
impl Routine for Parcels {
    const NAME: &'static str = "parcels";

    async fn batch(&self) -> Result<Duration, UnitOfWorkError> {
        let asked = track_parcels(Tracking {
            queue: &*self.queue,
            carriers: &*self.carriers,
            units: &*self.units,
            randomness: &*self.randomness,
            schedule: self.schedule,
        })
        .await?;
        let count = u64::try_from(asked).unwrap_or_default();
        metrics::counter!("parcels_followed_total").increment(count);
        Ok(if asked == 0 {
            self.look_every()
        } else {
            Duration::ZERO
        })
    }
}
