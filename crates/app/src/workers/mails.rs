//! Sends mails that are due. Each kind has its own worker, so that an account link does not wait behind a day's shipment mails.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use accounts::AccountMail;
use async_trait::async_trait;
use kernel::{
    Mail, MailId, MailQueue, MailStep, Mailer, Randomness, SPANS, SendError, TransactionError, error_chain,
};
use orders::ShipmentMail;
use tracing::{Instrument, Span, field::Empty};
use usecases::send_mails::{MailSending, send_mails};

use super::routine::Routine;

/// The interval between two polls of an empty queue.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The names of a kind of mail in logs and metrics.
pub(super) trait Kind: Mail {
    /// The worker's name.
    const WORKER: &'static str;
    /// The kind of mail.
    const ABOUT: &'static str;
}

impl Kind for ShipmentMail {
    const WORKER: &'static str = "mails";
    const ABOUT: &'static str = "shipment";
}

impl Kind for AccountMail {
    const WORKER: &'static str = "account_mails";
    const ABOUT: &'static str = "account";
}

/// The worker. A mail that is interrupted by the end of the process is sent again when its lease expires.
pub(super) struct Mails<M> {
    pub(super) queue: Arc<dyn MailQueue<M>>,
    pub(super) mailer: Arc<dyn Mailer<M>>,
    pub(super) randomness: Arc<dyn Randomness>,
    /// Whether the last mail could not be sent.
    pub(super) is_failing: AtomicBool,
}

#[async_trait]
impl<M: Kind> Routine for Mails<M> {
    const NAME: &'static str = M::WORKER;

    async fn batch(&self) -> Result<Duration, TransactionError> {
        let sending = MailSending {
            queue: &*self.queue,
            mailer: self,
            randomness: &*self.randomness,
        };
        let recorded = send_mails(sending).await?;
        let mut outcome = Ok(if recorded.is_empty() {
            POLL_INTERVAL
        } else {
            Duration::ZERO
        });
        for mail in recorded {
            match mail {
                Ok((mail, next)) => {
                    metrics::counter!("mails_total", "about" => M::ABOUT, "fate" => name(next)).increment(1);
                    if next == MailStep::Dead {
                        tracing::error!(%mail, about = M::ABOUT, "a mail was given up");
                    }
                }
                Err(error) => outcome = Err(error.into()),
            }
        }
        outcome
    }
}

const fn name(next: MailStep) -> &'static str {
    match next {
        MailStep::Sent => "sent",
        MailStep::Retry(_) => "put_off",
        MailStep::Dead => "given_up",
    }
}

/// Logs failures: each permanent refusal, and the first of temporary failures in a row.
#[async_trait]
impl<M: Kind> Mailer<M> for Mails<M> {
    async fn send(&self, mail: &M) -> Result<(), SendError> {
        let span = mail_span(M::ABOUT, mail.id());
        let outcome = self.mailer.send(mail).instrument(span.clone()).await;
        if outcome.is_err() {
            span.record("otel.status_code", "ERROR");
        }
        match &outcome {
            Ok(()) => {
                span.record("outcome", "sent");
                if self.is_failing.swap(false, Ordering::Relaxed) {
                    tracing::info!("mails can be sent again");
                }
            }
            Err(error @ SendError::Permanent(_)) => {
                span.record("outcome", "refused");
                tracing::warn!(mail = %mail.id(), about = M::ABOUT, cause = error_chain(error), "a mail was refused");
            }
            Err(error @ SendError::Transient(_)) => {
                span.record("outcome", "put_off");
                let cause = error_chain(error);
                if self.is_failing.swap(true, Ordering::Relaxed) {
                    tracing::debug!(mail = %mail.id(), cause, "a mail cannot be sent now either");
                } else {
                    tracing::warn!(mail = %mail.id(), cause, "a mail cannot be sent now and is retried");
                }
            }
        }
        outcome
    }
}

/// The span of sending a mail. It starts a trace, because a queued mail does not know the request that caused it.
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
