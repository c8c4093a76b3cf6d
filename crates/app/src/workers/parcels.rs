//! Asks carriers about parcels that are due, within each carrier's daily limit. Each carrier has its own
//! worker. Requests also ask the carriers, within a part of that limit: see `daily_limits`.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use kernel::{Randomness, TransactionError};
use orders::{Carrier, CarrierLookup, PollSchedule, TrackingQueue};
use usecases::UnitOfWork;
use usecases::track_parcels::{LEASE, Tracking, track_parcel};

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
        let fence = self.randomness.uuid();
        let Some(parcel) = self.queue.lease_parcel(self.carrier, fence, LEASE).await? else {
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
