//! Sends mails that are due. Each kind has its own worker, so that an account link does not wait behind a
//! day's shipment mails.

use std::sync::Arc;
use std::time::Duration;

use accounts::AccountMail;
use async_trait::async_trait;
use kernel::{
    Mail, MailId, MailQueue, MailStep, Mailer, Randomness, SPANS, SellerId, SendError, TransactionError,
    error_chain,
};
use orders::{OrderId, ShipmentMail};
use parking_lot::Mutex;
use tokio::select;
use tokio::time::{Instant, sleep};
use tracing::{
    Instrument, Span,
    field::{Empty, display},
};
use usecases::send_mails::{LEASE, send_mail};

use super::routine::TaskSlots;
use crate::wiring::Shared;

/// The interval between two polls of an empty queue.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The pause before something is recorded again.
const RECORD_PAUSE: Duration = Duration::from_millis(500);
/// For how long recording is retried.
const RECORD_FOR: Duration = Duration::from_mins(5);

/// The names of a kind of mail in logs and metrics.
pub(super) trait Kind: Mail {
    /// The worker's name.
    const WORKER: &'static str;
    const ABOUT: &'static str;

    /// Which order it is about; or which seller's account, and the kind of mail: no command lists those that were given
    /// up.
    fn subject(&self) -> (Option<OrderId>, Option<SellerId>, Option<&'static str>);
}

impl Kind for ShipmentMail {
    const WORKER: &'static str = "mails";
    const ABOUT: &'static str = "shipment";

    fn subject(&self) -> (Option<OrderId>, Option<SellerId>, Option<&'static str>) {
        (Some(self.order), None, None)
    }
}

impl Kind for AccountMail {
    const WORKER: &'static str = "account_mails";
    const ABOUT: &'static str = "account";

    fn subject(&self) -> (Option<OrderId>, Option<SellerId>, Option<&'static str>) {
        (None, Some(self.seller), Some(self.kind.as_str()))
    }
}

/// The worker. A stop ends attempts in time to record them; a process that dies leaves its mails to others, once their
/// leases expire.
pub(super) struct Mails<M> {
    pub(super) shared: Shared,
    pub(super) queue: Arc<dyn MailQueue<M>>,
    pub(super) mailer: Arc<dyn Mailer<M>>,
    /// As many as there are connections to the mail server; all kinds share them.
    pub(super) slots: TaskSlots,
    /// Why the last mail could not be sent, if it could not.
    pub(super) failing: Mutex<Option<String>>,
}

impl<M: Kind> Mails<M> {
    pub(super) async fn batch(self: Arc<Self>) -> Result<Duration, TransactionError> {
        let Some(slot) = self.slots.free().await? else {
            return Ok(POLL_INTERVAL);
        };
        let Some(due) = self
            .queue
            .lease_mail(self.shared.randomness.uuid(), LEASE)
            .await?
        else {
            return Ok(POLL_INTERVAL);
        };
        let worker = Arc::clone(&self);
        self.slots.begin(slot, async move {
            let tasks = &worker.shared.tasks;
            let patience = || {
                let given_up = Instant::now() + RECORD_FOR;
                move || async move {
                    select! {
                        biased;
                        () = tasks.stopping() => false,
                        () = sleep(RECORD_PAUSE) => Instant::now() < given_up,
                    }
                }
            };
            let Some((next, failure)) = send_mail(&*worker.queue, &*worker, &due, patience).await? else {
                return Ok(());
            };
            let outcome = name(next);
            metrics::counter!("mail_outcomes_total", "about" => M::ABOUT, "outcome" => outcome).increment(1);
            if next == MailStep::Dead {
                let (order, seller, kind) = due.mail.subject();
                let (order_id, seller_id) = (order.map(display), seller.map(display));
                let cause = failure.map(|error| error_chain(&error));
                tracing::error!(
                    mail = %due.mail.id(), about = M::ABOUT, order_id, seller_id, kind, cause, "a mail was given up"
                );
            }
            Ok(())
        });
        Ok(Duration::ZERO)
    }
}

/// The outcome of an attempt in metrics.
const fn name(next: MailStep) -> &'static str {
    match next {
        MailStep::Sent => "sent",
        MailStep::Retry(_) => "retry",
        MailStep::Dead => "given_up",
    }
}

/// Ends attempts when the process stops. Logs, of temporary failures in a row, the first with another cause.
#[async_trait]
impl<M: Kind> Mailer<M> for Mails<M> {
    async fn send(&self, mail: &M) -> Result<(), SendError> {
        let span = mail_span(M::ABOUT, mail.id());
        let server = &self.shared.config.server;
        // How long an attempt goes on once the process is asked to stop: one that is aborted, as at an end without a
        // signal, which has no drain, keeps its mail for the rest of its lease.
        let rest = server.drain.0.saturating_add(server.shutdown_timeout.0 / 2);
        let stopped = async {
            self.shared.tasks.stopping().await;
            sleep(rest).await;
        };
        let outcome = select! {
            biased;
            outcome = self.mailer.send(mail).instrument(span.clone()) => outcome,
            () = stopped => Err(SendError::Interrupted),
        };
        if outcome.is_err() {
            span.record("otel.status_code", "ERROR");
        }
        let (order, seller, kind) = mail.subject();
        let (order_id, seller_id) = (order.map(display), seller.map(display));
        match &outcome {
            Ok(()) => {
                span.record("outcome", "sent");
                tracing::info!(mail = %mail.id(), about = M::ABOUT, order_id, seller_id, kind, "a mail was sent");
                if self.failing.lock().take().is_some() {
                    tracing::info!("mails can be sent again");
                }
            }
            Err(SendError::Permanent(_)) => {
                span.record("outcome", "refused");
            }
            Err(error @ (SendError::Transient(_) | SendError::Interrupted)) => {
                span.record("outcome", "retry");
                let cause = error_chain(error);
                if self.failing.lock().replace(cause.clone()).as_ref() == Some(&cause) {
                    tracing::debug!(mail = %mail.id(), order_id, seller_id, cause, "a mail cannot be sent now either");
                } else {
                    tracing::warn!(
                        mail = %mail.id(), order_id, seller_id, cause, "a mail cannot be sent now and is retried"
                    );
                }
            }
        }
        outcome
    }
}

/// The span of sending a mail. It starts a trace, because a queued mail does not know the request that caused
/// it.
fn mail_span(about: &'static str, id: MailId) -> Span {
    tracing::info_span!(
        target: SPANS,
        "mail",
        otel.name = format!("mail {about}"),
        otel.kind = "client",
        otel.status_code = Empty,
        about,
        mail = %id,
        outcome = Empty,
    )
}
