//! Background workers: deliver webhooks, send mails, track parcels, delete expired rows, refresh statistics.
//!
//! Any number of processes may run them at once. Work is leased in the database, so none of it is done twice; if a process dies, another
//! one takes over its work when the lease expires.

mod deliveries;
mod housekeeping;
mod mails;
mod parcels;
mod routine;

use std::sync::{Arc, atomic::AtomicBool};

use accounts::AccountMail;
use kernel::error_chain;
use orders::ShipmentMail;
use tokio::select;

use self::{
    deliveries::{Deliveries, Reconciliation},
    housekeeping::{Cleaning, Statistics, Usage},
    mails::Mails,
    parcels::{Parcels, QuotaLimitedCarriers},
    routine::{Routine, run_routine},
};
use crate::{
    config::Period,
    external_services::{ExternalServices, Mailers},
    wiring::{Shared, poll_schedule},
};

/// Concurrent batches of parcels, so that slow carriers delay few others.
const PARCEL_WORKERS: usize = 3;

/// Starts all workers. They wait for the schema, and end when the tasks are stopped.
pub(crate) fn start(shared: &Shared) {
    let workers = shared.clone();
    drop(shared.tasks.run(async move {
        select! {
            biased;
            () = workers.tasks.stopping() => {}
            () = workers.readiness.reached() => workers.start_all(),
        }
    }));
}

/// Starts to store the counts of calls; every serving process does so, with or without workers.
pub(crate) fn start_counting(shared: &Shared) {
    shared.run_routine(shared.usage_counts());
}

/// Stores the last counts of a process that no longer serves.
pub(crate) async fn end_counting(shared: &Shared) {
    if let Err(error) = shared.usage_counts().store().await {
        let cause = error_chain(&error);
        tracing::warn!(cause, "the last seconds' calls are missing from what sellers see");
    }
}

impl Shared {
    fn usage_counts(&self) -> Usage {
        Usage {
            meter: self.usage.clone(),
            log: self.database.usage(),
        }
    }

    fn start_all(&self) {
        let ExternalServices {
            carriers,
            mailer,
            clock,
            are_simulated,
            ..
        } = &self.external;
        if let Some(mailer) = mailer {
            self.send_mails(mailer);
        } else {
            tracing::warn!("mails wait until a server is configured: `mail.host`");
        }
        let carriers = if *are_simulated {
            Arc::clone(carriers)
        } else {
            let (config, clock) = (Arc::clone(&self.config), Arc::clone(clock));
            let limit = |carrier| config.carriers.daily_limit(carrier);
            Arc::new(QuotaLimitedCarriers::new(Arc::clone(carriers), clock, limit))
        };
        for _ in 0..PARCEL_WORKERS {
            self.run_routine(Parcels {
                queue: self.database.tracking_queue(),
                carriers: Arc::clone(&carriers),
                units: self.database.units(),
                randomness: self.randomness.clone(),
                schedule: poll_schedule(&self.config),
            });
        }
        self.deliver_webhooks();
        self.run_routine(Cleaning {
            database: self.database.clone(),
            buyers_after: self.config.retention.buyer_data.map(Period::time_delta),
        });
        self.run_routine(Statistics(self.database.clone()));
        tracing::info!("workers started");
    }

    fn send_mails(&self, mailer: &Arc<dyn Mailers>) {
        self.run_routine(Mails::<ShipmentMail> {
            queue: self.database.mail_queue(),
            mailer: mailer.clone(),
            randomness: self.randomness.clone(),
            is_failing: AtomicBool::default(),
        });
        self.run_routine(Mails::<AccountMail> {
            queue: self.database.account_mail_queue(),
            mailer: mailer.clone(),
            randomness: self.randomness.clone(),
            is_failing: AtomicBool::default(),
        });
    }

    fn deliver_webhooks(&self) {
        let (config, external) = (&self.config.webhooks, &self.external);
        self.run_routine(Deliveries {
            queues: self.database.subscription_queues(),
            sender: external.receivers.clone(),
            randomness: self.randomness.clone(),
            clock: Arc::clone(&external.clock),
            queued: self.database.queued(),
            schedule: config.retry_schedule(),
            slots: config.slots(),
            tasks: self.tasks.clone(),
            ready: self.readiness.flag(),
        });
        self.run_routine(Reconciliation {
            queues: self.database.subscription_queues(),
        });
    }

    fn run_routine<R: Routine>(&self, routine: R) {
        let (tasks, ready) = (self.tasks.clone(), self.readiness.flag());
        let running = run_routine(Arc::new(routine), tasks, self.randomness.clone(), ready);
        drop(self.tasks.run(running));
    }
}
