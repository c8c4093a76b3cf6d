//! One mail's part of an SMTP dialogue: sender, recipient, content.

use std::fmt::Display;

use lettre::transport::smtp::{
    Error as SmtpError,
    client::AsyncSmtpConnection,
    commands::{Data, Mail, Rcpt},
    extension::{Extension, MailBodyParameter, MailParameter},
    response::{Response, Severity},
};
use tokio::time::{Instant, timeout_at};

use super::failure::{SmtpFailure, Stage};
use crate::letter::Letter;

/// Hands one letter over. Succeeds when the server has taken charge of it.
pub(super) async fn hand_over(
    connection: &mut AsyncSmtpConnection,
    letter: &Letter,
    deadline: Instant,
) -> Result<(), SmtpFailure> {
    let parameters = parameters(connection, letter)?;
    let mail = Mail::new(Some(letter.from.clone()), parameters);
    let recipient = Rcpt::new(letter.to.clone(), Vec::new());
    let mut step = Step { connection, deadline };
    step.command(Stage::Sender, mail, Severity::PositiveCompletion)
        .await?;
    step.command(Stage::Recipient, recipient, Severity::PositiveCompletion)
        .await?;
    step.command(Stage::Content, Data, Severity::PositiveIntermediate)
        .await?;
    step.content(&letter.bytes).await
}

/// What `MAIL FROM` announces: nothing for an ASCII address, and with it an ASCII letter.
fn parameters(connection: &AsyncSmtpConnection, letter: &Letter) -> Result<Vec<MailParameter>, SmtpFailure> {
    if letter.bytes.is_ascii() {
        return Ok(Vec::new());
    }
    let server = connection.server_info();
    if !server.supports_feature(Extension::SmtpUtfEight) {
        return Err(SmtpFailure::AddressBeyondAscii);
    }
    // Who offers SMTPUTF8 offers 8BITMIME (RFC 6531 §3.1).
    let eight_bit = MailParameter::Body(MailBodyParameter::EightBitMime);
    Ok(vec![MailParameter::SmtpUtfEight, eight_bit])
}

struct Step<'a> {
    connection: &'a mut AsyncSmtpConnection,
    deadline: Instant,
}

impl Step<'_> {
    async fn command(
        &mut self,
        stage: Stage,
        command: impl Display,
        wanted: Severity,
    ) -> Result<(), SmtpFailure> {
        let answer = timeout_at(self.deadline, self.connection.command(command)).await;
        judge(stage, answer.ok(), wanted)
    }

    async fn content(&mut self, bytes: &[u8]) -> Result<(), SmtpFailure> {
        let answer = timeout_at(self.deadline, self.connection.message(bytes)).await;
        judge(Stage::Content, answer.ok(), Severity::PositiveCompletion)
    }
}

/// A positive answer of the wrong kind is as bad as none: nobody knows what the server has understood.
fn judge(
    stage: Stage,
    answer: Option<Result<Response, SmtpError>>,
    wanted: Severity,
) -> Result<(), SmtpFailure> {
    match answer {
        Some(Ok(reply)) if reply.code().severity == wanted => Ok(()),
        Some(Ok(_)) => Err(SmtpFailure::Unreadable(stage)),
        Some(Err(error)) => Err(SmtpFailure::at(stage, error)),
        None => Err(SmtpFailure::TimedOut(stage)),
    }
}
