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
use std::time::Duration;

use accounts::AccountMail;
use adapter_postgres::Expired;
use kernel::{MailQueue, Mailer, StoreError, TransactionError, error_chain};
use orders::{Carrier, ShipmentMail};
use tokio::select;
use tokio::sync::{Mutex, Semaphore};

use self::deliveries::{deliver, reconcile};
use self::housekeeping::{clean, follow_up, refresh_statistics, store_counts, store_usage};
use self::mails::{Kind, Mails};
use self::parcels::Parcels;
use self::routine::{FailureStreak, TaskSlots, run_routine};
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
    shared.run_routine("usage", None, shared.clone(), store_usage);
}

/// Stores the last counts of a process that no longer serves.
pub(crate) async fn end_counting(shared: &Shared) {
    let (meter, log) = (&shared.usage, shared.database.usage());
    // A pooled connection may have ended with the requests that it served: the next one is new.
    let stored = match store_counts(meter, &*log).await {
        Err(StoreError::Unavailable(_)) => store_counts(meter, &*log).await,
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
    fn start_all(&self) {
        if let Some(mailer) = &self.external.mailer {
            let slots = Arc::new(Semaphore::new(self.config.mail.max_connections.get().into()));
            self.send_mails::<ShipmentMail>(self.database.mail_queue(), mailer.clone(), &slots);
            self.send_mails::<AccountMail>(self.database.account_mail_queue(), mailer.clone(), &slots);
        } else {
            tracing::warn!("mails wait until a server is configured: `mail.host`");
        }
        for carrier in Carrier::ALL.into_iter().filter(|one| *one != Carrier::Other) {
            let parcels = Parcels {
                shared: self.clone(),
                queue: self.database.tracking_queue(),
                carrier,
                slots: TaskSlots::of(&Arc::new(Semaphore::new(parcels::SLOTS)), &self.tasks),
            };
            let step = Some(carrier.as_str().to_owned());
            self.run_routine("parcels", step, Arc::new(parcels), Parcels::batch);
        }
        self.run_routine(deliveries::WORKER, None, self.clone(), deliver);
        self.run_routine("reconciliation", None, self.clone(), reconcile);
        let retention = &self.config.retention;
        let configured = [
            Some(Expired::AuditLog(retention.audit.time_delta())),
            Some(Expired::Events(retention.events.time_delta())),
            retention.buyer_data.map(|age| Expired::Buyers(age.time_delta())),
            retention
                .closed_sellers
                .map(|age| Expired::ClosedSellers(age.time_delta())),
        ];
        let turn = Arc::<Mutex<()>>::default();
        for expired in Expired::FIXED.into_iter().chain(configured.into_iter().flatten()) {
            let name = format!("{expired:?}");
            let step = name.split('(').next().map(str::to_owned);
            let state = (self.clone(), expired, Arc::clone(&turn));
            self.run_routine("cleaning", step, state, clean);
        }
        self.run_routine("follow_ups", None, self.clone(), follow_up);
        let state = (self.clone(), Arc::<AtomicBool>::default());
        self.run_routine("statistics", None, state, refresh_statistics);
        tracing::info!("workers started");
    }

    fn send_mails<M: Kind>(
        &self,
        queue: Arc<dyn MailQueue<M>>,
        mailer: Arc<dyn Mailer<M>>,
        slots: &Arc<Semaphore>,
    ) {
        let mails = Mails {
            shared: self.clone(),
            queue,
            mailer,
            slots: TaskSlots::of(slots, &self.tasks),
            failing: parking_lot::Mutex::default(),
        };
        self.run_routine(M::WORKER, None, Arc::new(mails), Mails::batch);
    }

    /// Runs the batches of a worker. `step` says, for the log, which of several workers of this name it is.
    pub(crate) fn run_routine<S, F>(
        &self,
        worker: &'static str,
        step: Option<String>,
        state: S,
        batch: impl Fn(S) -> F + Send + 'static,
    ) where
        S: Clone + Send + Sync + 'static,
        F: Future<Output = Result<Duration, TransactionError>> + Send + 'static,
    {
        let streak = FailureStreak::new(worker, step, self.readiness.ready_flag());
        let running = run_routine(streak, state, batch, self.tasks.clone(), self.randomness.clone());
        drop(self.tasks.run(running));
    }
}
