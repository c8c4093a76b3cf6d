//! Delivers webhooks, and looks now and then whether any lane was forgotten.

mod watch;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use kernel::{Clock, Randomness};
use tokio::{sync::Notify, time::timeout};
use usecases::{
    UnitOfWorkError,
    deliver_webhooks::{Dispatch, Pulse, Slots, deliver_webhooks},
};
use web::Tasks;
use webhooks::{Lanes, RetrySchedule, WebhookSender};

use self::watch::{SpreadSender, WatchedLanes};
use super::routine::Routine;

/// How long a delivery that another process has queued waits at most before this one looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How often forgotten lanes are looked for.
const RECONCILE_EVERY: Duration = Duration::from_mins(1);

/// The worker. Its batch lasts until the process stops, and ends when the attempts that were under way then have ended and
/// are recorded.
pub(super) struct Deliveries {
    pub(super) lanes: Arc<dyn Lanes>,
    pub(super) sender: Arc<dyn WebhookSender>,
    pub(super) randomness: Arc<dyn Randomness>,
    pub(super) clock: Arc<dyn Clock>,
    /// Notified when this process has queued deliveries.
    pub(super) queued: Arc<Notify>,
    pub(super) schedule: RetrySchedule,
    pub(super) slots: Slots,
    pub(super) tasks: Tasks,
}

#[async_trait]
impl Routine for Deliveries {
    const NAME: &'static str = "deliveries";

    async fn batch(&self) -> Result<Duration, UnitOfWorkError> {
        let lanes = WatchedLanes::new(Arc::clone(&self.lanes), Arc::clone(&self.clock));
        let dispatch = Dispatch {
            lanes: &lanes,
            sender: &SpreadSender(Arc::clone(&self.sender)),
            randomness: &*self.randomness,
            pulse: &Hinted(&self.queued),
            observer: &lanes,
            schedule: self.schedule,
            slots: self.slots,
        };
        deliver_webhooks(dispatch, self.tasks.stopping()).await;
        Ok(Duration::ZERO)
    }
}

/// Beats at an interval, and at once when this process has queued something.
struct Hinted<'a>(&'a Notify);

#[async_trait]
impl Pulse for Hinted<'_> {
    async fn beat(&self) {
        // A hint or the time: either way it is the moment to look.
        let _ = timeout(LOOK_EVERY, self.0.notified()).await;
    }
}

/// Wakes lanes that sleep though something is due in them.
pub(super) struct Reconciliation {
    pub(super) lanes: Arc<dyn Lanes>,
}

#[async_trait]
impl Routine for Reconciliation {
    const NAME: &'static str = "reconciliation";

    async fn batch(&self) -> Result<Duration, UnitOfWorkError> {
        let lanes = self.lanes.reconcile().await?;
        if lanes > 0 {
            tracing::warn!(
                lanes,
                "subscriptions slept though deliveries were due, and were woken"
            );
        }
        Ok(RECONCILE_EVERY)
    }
}
