//! The worker of a process that delivers webhooks.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use chrono::TimeDelta;
use kernel::StoreError;
use usecases::deliver_webhooks::{Dispatch, Observer, Pulse, Slots, deliver_webhooks};
use webhooks::{Conclusion, RetrySchedule};

use super::receivers::Receivers;
use crate::{Chance, Database, Link, Simulator, executor::Signal};

/// Short delays, so that repeated attempts meet the trouble too.
const SCHEDULE: RetrySchedule = RetrySchedule([
    TimeDelta::seconds(1),
    TimeDelta::seconds(2),
    TimeDelta::seconds(5),
    TimeDelta::seconds(10),
    TimeDelta::seconds(20),
]);

/// When a worker looks for work: now and then; once all is calm, when there will be some.
struct Beats {
    simulator: Simulator,
    database: Database,
    calm: Arc<AtomicBool>,
}

#[async_trait]
impl Pulse for Beats {
    async fn beat(&self) {
        self.simulator.pause(100, 1_500).await;
        if self.calm.load(Ordering::Relaxed)
            && let Some(due) = self.database.next_lane_due()
        {
            self.simulator.sleep_until(due).await;
        }
    }
}

struct Nobody;

impl Observer for Nobody {
    fn ended(&self, _: &Conclusion) {}
    fn failed(&self, _: StoreError) {}
}

/// What a worker needs.
#[derive(Clone)]
pub(crate) struct Delivering {
    pub(crate) simulator: Simulator,
    pub(crate) database: Database,
    pub(crate) link: Link,
    pub(crate) receivers: Receivers,
    pub(crate) calm: Arc<AtomicBool>,
    pub(crate) slots: Slots,
}

impl Delivering {
    /// Delivers until the process is asked to stop, or dies.
    pub(crate) async fn work(self, stop: Signal) {
        let beats = Beats {
            simulator: self.simulator.clone(),
            database: self.database,
            calm: self.calm,
        };
        let dispatch = Dispatch {
            lanes: &self.link,
            sender: &self.receivers,
            randomness: &Chance(self.simulator),
            pulse: &beats,
            observer: &Nobody,
            schedule: SCHEDULE,
            slots: self.slots,
        };
        deliver_webhooks(dispatch, stop.given()).await;
    }
}
