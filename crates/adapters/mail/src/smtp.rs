//! Sends mails to an SMTP server (RFC 5321).

mod dialer;
mod failure;
mod reply_limit;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use deadpool::Runtime;
use deadpool::managed::{Object, Pool, PoolError};
use kernel::{Clock, Mailer, SendError};
use lettre::transport::smtp::Error as SmtpError;
use lettre::transport::smtp::client::AsyncSmtpConnection;
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::{Extension, MailBodyParameter, MailParameter};
use lettre::transport::smtp::response::{Response, Severity};
use tokio::time::timeout;

use self::dialer::Dialer;
use self::failure::{SmtpFailure, Stage};
use crate::message::{Content, Rendered, Renderer};
use crate::{SenderSettings, SettingsError, SmtpSettings};

/// Time for `QUIT` after a refusal, in addition to the mail's timeouts.
const QUIT_TIMEOUT: Duration = Duration::from_millis(250);

/// Sends mails over a few pooled connections.
///
/// A mail first waits for a free connection, without a limit. From then on it ends within
/// [`SmtpSettings::timeout`] plus [`SmtpSettings::acceptance_timeout`], whatever the server does. A
/// connection is not reused after a failed or cancelled mail, so that a late reply is never taken for the
/// reply to another mail.
pub struct SmtpMailer {
    renderer: Renderer,
    pool: Pool<Dialer>,
    timeout: Duration,
    acceptance_timeout: Duration,
    /// The server's name, for the log.
    host: String,
}

impl SmtpMailer {
    /// Loads the machine's trusted certificates. The first mail opens the first connection.
    pub fn new(
        sender: &SenderSettings,
        smtp: &SmtpSettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SettingsError> {
        smtp.check()?;
        let pool = Pool::builder(Dialer::new(smtp)?)
            .max_size(smtp.max_connections.get().into())
            .create_timeout(Some(smtp.timeout))
            .runtime(Runtime::Tokio1);
        Ok(Self {
            renderer: Renderer::new(sender, clock)?,
            // Fails only for timeouts without a runtime.
            pool: pool.build().map_err(|error| SettingsError::Tls(error.into()))?,
            timeout: smtp.timeout,
            acceptance_timeout: smtp.acceptance_timeout,
            host: smtp.host.clone(),
        })
    }

    async fn deliver(&self, message: &Rendered) -> Result<(), SmtpFailure> {
        let mut session = match self.pool.get().await {
            Ok(session) => session,
            Err(PoolError::Backend(failure)) => return Err(failure),
            Err(_) => return Err(SmtpFailure::TimedOut(Stage::Connect)),
        };
        session.is_reusable = false;
        let outcome = self.hand_over(&mut session.connection, message).await;
        session.is_reusable = outcome.is_ok();
        if let Err(failure) = &outcome {
            let mut session = Object::take(session);
            if failure.leaves_server_listening() {
                // The connection is dropped in any case.
                let _ = timeout(QUIT_TIMEOUT, session.connection.quit()).await;
            }
        }
        outcome
    }

    /// One mail transaction; `Ok` once the server has accepted the mail. The reply to the content has a
    /// longer timeout: a client that gives up before it sends an accepted mail twice (RFC 5321 §4.5.3.2.6).
    async fn hand_over(
        &self,
        connection: &mut AsyncSmtpConnection,
        message: &Rendered,
    ) -> Result<(), SmtpFailure> {
        let mut stage = Stage::Sender;
        let announced = timeout(self.timeout, announce(connection, message, &mut stage)).await;
        announced.unwrap_or(Err(SmtpFailure::TimedOut(stage)))?;
        let answer = timeout(self.acceptance_timeout, connection.message(&message.bytes)).await;
        let answer = answer.map_err(|_| SmtpFailure::TimedOut(Stage::Content))?;
        expect(Stage::Content, answer, Severity::PositiveCompletion)
    }
}

#[async_trait]
impl<M: Content> Mailer<M> for SmtpMailer {
    async fn send(&self, mail: &M) -> Result<(), SendError> {
        let message = self.renderer.render(mail)?;
        let failed = |failure: SmtpFailure| failure.of_server(&self.host);
        self.deliver(&message).await.map_err(failed)
    }
}

/// A mail transaction up to its content. `stage` is kept current, for the report of a timeout.
async fn announce(
    connection: &mut AsyncSmtpConnection,
    message: &Rendered,
    stage: &mut Stage,
) -> Result<(), SmtpFailure> {
    let mail = Mail::new(Some(message.from.clone()), parameters(connection, message)?);
    let answer = connection.command(mail).await;
    expect(*stage, answer, Severity::PositiveCompletion)?;
    *stage = Stage::Recipient;
    let answer = connection
        .command(Rcpt::new(message.to.clone(), Vec::new()))
        .await;
    expect(*stage, answer, Severity::PositiveCompletion)?;
    *stage = Stage::Content;
    let answer = connection.command(Data).await;
    expect(*stage, answer, Severity::PositiveIntermediate)
}

/// Parameters of `MAIL FROM`. A message in ASCII needs none.
fn parameters(
    connection: &AsyncSmtpConnection,
    message: &Rendered,
) -> Result<Vec<MailParameter>, SmtpFailure> {
    if message.bytes.is_ascii() {
        return Ok(Vec::new());
    }
    if !connection.server_info().supports_feature(Extension::SmtpUtfEight) {
        return Err(SmtpFailure::NonAsciiAddress);
    }
    // A server with SMTPUTF8 has 8BITMIME (RFC 6531 §3.1).
    let eight_bit = MailParameter::Body(MailBodyParameter::EightBitMime);
    Ok(vec![MailParameter::SmtpUtfEight, eight_bit])
}

/// A positive reply with another severity is a failure: client and server are out of step.
fn expect(stage: Stage, answer: Result<Response, SmtpError>, severity: Severity) -> Result<(), SmtpFailure> {
    match answer {
        Ok(reply) if reply.code().severity == severity => Ok(()),
        Ok(_) => Err(SmtpFailure::Unreadable(stage)),
        Err(error) => Err(SmtpFailure::at(stage, error)),
    }
}
