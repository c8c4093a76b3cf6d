//! Background workers: deliver webhooks, send mails, track parcels, delete expired rows, refresh statistics.
//!
//! Any number of processes may run them at once. Work is leased in the database, so none of it is done twice;
//! if a process dies, another one takes over its work when the lease expires.

mod deliveries;
mod housekeeping;
mod mails;
mod parcels;
mod routine;

use std::sync::{Arc, atomic::AtomicBool};

use accounts::AccountMail;
use adapter_postgres::Expired;
use kernel::{MailQueue, Mailer, StoreError, error_chain};
use orders::{Carrier, ShipmentMail};
use tokio::{select, sync::Semaphore};

use self::deliveries::{Deliveries, Reconciliation};
use self::housekeeping::{Cleaning, FollowUps, Statistics, Usage};
use self::mails::{Kind, LoggedMailer, Mails};
use self::parcels::{Parcels, QuotaLimitedCarriers};
use self::routine::{Routine, TaskSlots, run_routine};
use crate::external_services::ExternalServices;
use crate::wiring::Shared;

/// Starts all workers. They wait for the schema, and end when the tasks are stopped.
pub(crate) fn start(shared: &Shared) {
    let mut workers = shared.clone();
    workers.database = shared.database.for_workers();
    drop(shared.tasks.run(async move {
        select! {
            biased;
            () = workers.tasks.stopping() => {}
            () = workers.readiness.wait_until_ready() => workers.start_all(),
        }
    }));
}

/// Starts to store the counts of calls; every serving process does so, with or without workers.
pub(crate) fn start_counting(shared: &Shared) {
    shared.run_routine(shared.usage_counts());
}

/// Stores the last counts of a process that no longer serves.
pub(crate) async fn end_counting(shared: &Shared) {
    let usage = shared.usage_counts();
    // A pooled connection may have ended with the requests that it served: the next one is new.
    let stored = match usage.store().await {
        Err(StoreError::Unavailable(_)) => usage.store().await,
        stored => stored,
    };
    if let Err(error) = stored {
        let cause = error_chain(&error);
        tracing::warn!(
            cause,
            "the calls of this process's last seconds are missing from the panel's usage pages; nothing else counts by them, \
             and nothing has to be done"
        );
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
            let slots = Arc::new(Semaphore::new(self.config.mail.max_connections.get().into()));
            self.send_mails::<ShipmentMail>(self.database.mail_queue(), mailer.clone(), &slots);
            self.send_mails::<AccountMail>(self.database.account_mail_queue(), mailer.clone(), &slots);
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
        for carrier in Carrier::ALL.into_iter().filter(|one| *one != Carrier::Other) {
            self.run_routine(Parcels {
                carrier,
                carriers: Arc::clone(&carriers),
                queue: self.database.tracking_queue(),
                units: self.database.units(),
                randomness: self.randomness.clone(),
                schedule: self.config.poll_schedule(),
                slots: TaskSlots::of(&Arc::new(Semaphore::new(parcels::SLOTS)), &self.tasks),
            });
        }
        self.run_routine(Deliveries(self.clone()));
        self.run_routine(Reconciliation(self.clone()));
        let retention = &self.config.retention;
        let configured = [
            Some(Expired::AuditLog(retention.audit.time_delta())),
            Some(Expired::Events(retention.events.time_delta())),
            retention.buyer_data.map(|age| Expired::Buyers(age.time_delta())),
            retention
                .closed_sellers
                .map(|age| Expired::ClosedSellers(age.time_delta())),
        ];
        let turn = Arc::default();
        for expired in Expired::FIXED.into_iter().chain(configured.into_iter().flatten()) {
            self.run_routine(Cleaning {
                shared: self.clone(),
                expired,
                turn: Arc::clone(&turn),
            });
        }
        self.run_routine(FollowUps(self.clone()));
        self.run_routine(Statistics {
            shared: self.clone(),
            lacks_right: AtomicBool::default(),
        });
        tracing::info!("workers started");
    }

    fn send_mails<M: Kind>(
        &self,
        queue: Arc<dyn MailQueue<M>>,
        mailer: Arc<dyn Mailer<M>>,
        slots: &Arc<Semaphore>,
    ) {
        self.run_routine(Mails {
            queue,
            mailer: Arc::new(LoggedMailer::new(mailer)),
            randomness: self.randomness.clone(),
            slots: TaskSlots::of(slots, &self.tasks),
            tasks: self.tasks.clone(),
        });
    }

    fn run_routine<R: Routine>(&self, routine: R) {
        let (tasks, ready) = (self.tasks.clone(), self.readiness.ready_flag());
        let running = run_routine(Arc::new(routine), tasks, self.randomness.clone(), ready);
        drop(self.tasks.run(running));
    }
}
