//! Mails handed to an SMTP server (RFC 5321).

mod cautious;
mod dialer;
mod dialogue;
mod failure;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use deadpool::managed::{Object, Pool, PoolError};
use kernel::{Clock, Mailer, SendError};
use oauth::AccountMail;
use orders::ShipmentMail;
use tokio::time::{Instant, timeout, timeout_at};

use self::{
    dialer::Dialer,
    failure::{SmtpFailure, Stage},
};
use crate::{
    SenderSettings, SettingsError, SmtpSettings,
    letter::{Letter, LetterWriter, Told},
};

/// How long a refused dialogue's `QUIT` may take, beyond the time of the sending.
const FAREWELL: Duration = Duration::from_millis(250);

/// Hands mails to one SMTP server, over a few connections that are kept for the next ones.
///
/// Each sending ends within [`SmtpSettings::timeout`] and a quarter of a second, however the server behaves. One that failed
/// or was abandoned takes its connection out of use, so that late answers are never taken for those to another mail.
pub struct SmtpMailer {
    writer: LetterWriter,
    pool: Pool<Dialer>,
    timeout: Duration,
}

impl SmtpMailer {
    /// Mails of `sender` over the server of `smtp`. Reads the machine's trusted certificates from its disk; connects when
    /// the first mail comes.
    pub fn new(
        sender: &SenderSettings,
        smtp: &SmtpSettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SettingsError> {
        smtp.check()?;
        let pool = Pool::builder(Dialer::new(smtp)?).max_size(smtp.max_connections.get().into());
        Ok(Self {
            writer: LetterWriter::new(sender, clock)?,
            // Fails only for time-outs that lack a runtime, and none is given.
            pool: pool.build().map_err(|why| SettingsError::Tls(why.into()))?,
            timeout: smtp.timeout,
        })
    }

    async fn hand_over(&self, letter: &Letter) -> Result<(), SmtpFailure> {
        let deadline = Instant::now() + self.timeout;
        let mut session = match timeout_at(deadline, self.pool.get()).await {
            Ok(Ok(session)) => session,
            Ok(Err(PoolError::Backend(failure))) => return Err(failure),
            Ok(Err(_)) | Err(_) => return Err(SmtpFailure::TimedOut(Stage::Opening)),
        };
        session.in_step = false;
        let outcome = dialogue::hand_over(&mut session.connection, letter, deadline).await;
        session.in_step = outcome.is_ok();
        if let Err(failure) = &outcome {
            let mut session = Object::take(session);
            if failure.leaves_server_listening() {
                // Whether it answers makes no difference.
                let _ = timeout(FAREWELL, session.connection.quit()).await;
            }
        }
        outcome
    }

    async fn deliver(&self, mail: &impl Told) -> Result<(), SendError> {
        let letter = self.writer.write(mail)?;
        self.hand_over(&letter).await.map_err(SendError::from)
    }
}

#[async_trait]
impl Mailer<ShipmentMail> for SmtpMailer {
    async fn send(&self, mail: &ShipmentMail) -> Result<(), SendError> {
        self.deliver(mail).await
    }
}

#[async_trait]
impl Mailer<AccountMail> for SmtpMailer {
    async fn send(&self, mail: &AccountMail) -> Result<(), SendError> {
        self.deliver(mail).await
    }
}
