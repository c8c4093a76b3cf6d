//! Sends mails to an SMTP server (RFC 5321).

mod dialer;
mod failure;
mod starttls_guard;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use deadpool::managed::{Object, Pool, PoolError};
use kernel::{Clock, Mailer, SendError};
use lettre::transport::smtp::{
    Error as SmtpError,
    client::AsyncSmtpConnection,
    commands::{Data, Mail, Rcpt},
    extension::{Extension, MailBodyParameter, MailParameter},
    response::{Response, Severity},
};
use tokio::time::{Instant, timeout, timeout_at};

use self::{
    dialer::Dialer,
    failure::{SmtpFailure, Stage},
};
use crate::{
    SenderSettings, SettingsError, SmtpSettings,
    message::{Content, Rendered, Renderer},
};

/// Time for `QUIT` after a refusal, in addition to the mail's timeout.
const QUIT_TIMEOUT: Duration = Duration::from_millis(250);

/// Sends mails over a few pooled connections.
///
/// Each mail ends within [`SmtpSettings::timeout`] plus a quarter of a second, whatever the server does. A connection is not reused
/// after a failed or cancelled mail, so that a late answer is never taken for the answer to another mail.
pub struct SmtpMailer {
    renderer: Renderer,
    pool: Pool<Dialer>,
    timeout: Duration,
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
        let pool = Pool::builder(Dialer::new(smtp)?).max_size(smtp.max_connections.get().into());
        Ok(Self {
            renderer: Renderer::new(sender, clock)?,
            // Fails only for timeouts without a runtime, and the pool has no timeouts.
            pool: pool.build().map_err(|error| SettingsError::Tls(error.into()))?,
            timeout: smtp.timeout,
            host: smtp.host.clone(),
        })
    }

    async fn deliver(&self, message: &Rendered) -> Result<(), SmtpFailure> {
        let deadline = Instant::now() + self.timeout;
        let mut session = match timeout_at(deadline, self.pool.get()).await {
            Ok(Ok(session)) => session,
            Ok(Err(PoolError::Backend(failure))) => return Err(failure),
            Ok(Err(_)) | Err(_) => return Err(SmtpFailure::TimedOut(Stage::Connect)),
        };
        session.is_reusable = false;
        let mut stage = Stage::Sender;
        let dialogue = dialogue(&mut session.connection, message, &mut stage);
        let outcome = timeout_at(deadline, dialogue).await;
        let outcome = outcome.unwrap_or(Err(SmtpFailure::TimedOut(stage)));
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
}

#[async_trait]
impl<M: Content> Mailer<M> for SmtpMailer {
    async fn send(&self, mail: &M) -> Result<(), SendError> {
        let message = self.renderer.render(mail)?;
        let failed = |failure: SmtpFailure| failure.of_server(&self.host);
        self.deliver(&message).await.map_err(failed)
    }
}

/// One mail transaction; `Ok` once the server has accepted the mail. `stage` is kept current, for the report of a timeout.
async fn dialogue(
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
    expect(*stage, answer, Severity::PositiveIntermediate)?;
    let answer = connection.message(&message.bytes).await;
    expect(*stage, answer, Severity::PositiveCompletion)
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
