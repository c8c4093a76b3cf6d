//! Asks carriers about parcels that are due, within each carrier's daily limit. Each carrier has its own
//! worker. Requests also ask the carriers, within a part of that limit: see `daily_limits`.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Randomness as _, TransactionError};
use orders::{Carrier, TrackingQueue};
use usecases::track_parcels::{LEASE, Tracking, track_parcel};

use super::routine::TaskSlots;
use crate::wiring::Shared;

/// The worker's concurrent look-ups with one carrier: one less than the carrier's client allows.
pub(super) const SLOTS: usize = 3;
/// How long the worker leaves a carrier alone that cannot be asked now.
const PAUSE: Duration = Duration::from_secs(1);

/// The worker of one carrier.
pub(super) struct Parcels {
    pub(super) shared: Shared,
    /// It remembers where its last look-up ended.
    pub(super) queue: Arc<dyn TrackingQueue>,
    pub(super) carrier: Carrier,
    pub(super) slots: TaskSlots,
}

impl Parcels {
    pub(super) async fn batch(self: Arc<Self>) -> Result<Duration, TransactionError> {
        let Some(slot) = self.slots.free().await? else {
            return Ok(PAUSE);
        };
        if self.shared.external.tracking.is_paused(self.carrier) {
            return Ok(PAUSE);
        }
        let schedule = self.shared.config.poll_schedule();
        let fence = self.shared.randomness.uuid();
        let Some(parcel) = self.queue.lease_parcel(self.carrier, fence, LEASE).await? else {
            // Short compared to the shortest time between two look-ups.
            let shortest = schedule.interval.to_std().unwrap_or_default();
            return Ok((shortest / 4).clamp(Duration::from_millis(100), Duration::from_secs(10)));
        };
        let worker = Arc::clone(&self);
        self.slots.begin(slot, async move {
            let external = &worker.shared.external;
            let tracking = Tracking {
                queue: &*worker.queue,
                carriers: &*external.tracking,
                units: &*worker.shared.database.units(),
                schedule,
                least: (external.least)(worker.carrier),
            };
            track_parcel(tracking, &parcel).await?;
            metrics::counter!("parcel_lookups_total").increment(1);
            Ok(())
        });
        Ok(Duration::ZERO)
    }
}
