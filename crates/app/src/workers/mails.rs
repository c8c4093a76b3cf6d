//! Sends the mails that are due, a worker for each kind: a link to an account must not wait behind a day's parcels.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use kernel::{Mail, MailFate, MailQueue, Mailer, Randomness, SendError};
use oauth::AccountMail;
use orders::ShipmentMail;
use tracing::Instrument;
use usecases::{
    UnitOfWorkError,
    send_mails::{Post, send_mails},
};

use super::{routine::Routine, spans};
use crate::error_chain;

/// How long a mail waits at most before somebody looks, on average half of it.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How logs and metrics speak of a kind of mail.
pub(super) trait Kind: Mail {
    /// The worker that sends it.
    const WORKER: &'static str;
    /// What it is about.
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

/// The worker. A mail that the process's end interrupts is sent again, once its lease has run out.
pub(super) struct Mails<M> {
    pub(super) queue: Arc<dyn MailQueue<M>>,
    pub(super) mailer: Watched<M>,
    pub(super) randomness: Arc<dyn Randomness>,
}

#[async_trait]
impl<M: Kind> Routine for Mails<M> {
    const NAME: &'static str = M::WORKER;

    async fn batch(&self) -> Result<Duration, UnitOfWorkError> {
        let post = Post {
            queue: &*self.queue,
            mailer: &self.mailer,
            randomness: &*self.randomness,
        };
        let fates = send_mails(post).await?;
        for fate in &fates {
            metrics::counter!("mails_total", "about" => M::ABOUT, "fate" => name(*fate)).increment(1);
        }
        let given_up = fates.iter().filter(|fate| **fate == MailFate::Dead).count();
        if given_up > 0 {
            tracing::error!(mails = given_up, about = M::ABOUT, "mails were given up");
        }
        Ok(if fates.is_empty() {
            LOOK_EVERY
        } else {
            Duration::ZERO
        })
    }
}

const fn name(fate: MailFate) -> &'static str {
    match fate {
        MailFate::Sent => "sent",
        MailFate::Retry(_) => "put_off",
        MailFate::Dead => "given_up",
    }
}

/// A mailer whose failures are logged: each refusal for good, and the first of failures in a row that may pass.
pub(super) struct Watched<M> {
    mailer: Arc<dyn Mailer<M>>,
    in_trouble: AtomicBool,
}

impl<M: Kind> Watched<M> {
    pub(super) fn new(mailer: Arc<dyn Mailer<M>>) -> Self {
        Self {
            mailer,
            in_trouble: AtomicBool::new(false),
        }
    }
}

#[async_trait]
impl<M: Kind> Mailer<M> for Watched<M> {
    async fn send(&self, mail: &M) -> Result<(), SendError> {
        let span = spans::mail(M::ABOUT, mail.id());
        let outcome = self.mailer.send(mail).instrument(span.clone()).await;
        spans::mailed(&span, &outcome);
        match &outcome {
            Ok(()) => {
                if self.in_trouble.swap(false, Ordering::Relaxed) {
                    tracing::info!("mails can be sent again");
                }
            }
            Err(error @ SendError::Permanent(_)) => {
                tracing::warn!(mail = %mail.id(), about = M::ABOUT, cause = error_chain::describe(error), "a mail was refused");
            }
            Err(error @ SendError::Transient(_)) => {
                let cause = error_chain::describe(error);
                if self.in_trouble.swap(true, Ordering::Relaxed) {
                    tracing::debug!(mail = %mail.id(), cause, "a mail cannot be sent for now either");
                } else {
                    tracing::warn!(mail = %mail.id(), cause, "a mail cannot be sent for now and is tried again");
                }
            }
        }
        outcome
    }
}
