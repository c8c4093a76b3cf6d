//! Failures of an SMTP dialogue, and whether a retry may help.

use std::{error::Error as _, io};

use kernel::SendError;
use lettre::transport::smtp::Error as SmtpError;

kernel::words! {
    pub(crate) enum Stage {
        /// Connection, greeting, TLS, `EHLO`.
        Connect = "connecting",
        Auth = "signing in",
        /// `MAIL FROM`.
        Sender = "naming the sender",
        /// `RCPT TO`.
        Recipient = "naming the recipient",
        /// `DATA` and the message.
        Content = "handing over the content",
    }
}

/// Failures of a mail. They never contain the server's text, which often includes the recipient's address.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SmtpFailure {
    /// A 4xx or 5xx reply.
    #[error("the server answered {status} while {}", .stage.as_str())]
    Refused {
        stage: Stage,
        code: u16,
        /// `550`, or `550 5.1.1` if the server sends an enhanced status code (RFC 3463).
        status: String,
    },
    #[error("the server could not be reached")]
    Unreachable(#[source] io::Error),
    #[error("the server offers no STARTTLS")]
    NoStartTls,
    #[error("TLS cannot be set up with the server")]
    Tls(#[source] io::Error),
    #[error("the connection failed while {}", .stage.as_str())]
    Broken {
        stage: Stage,
        #[source]
        source: SmtpError,
    },
    #[error("the server's answer was missing or unreadable while {}", .0.as_str())]
    Unreadable(Stage),
    #[error("the server did not answer in time while {}", .0.as_str())]
    TimedOut(Stage),
    /// The recipient's address needs SMTPUTF8 (RFC 6531), which the server does not support.
    #[error("the server does not support non-ASCII addresses")]
    NonAsciiAddress,
}

impl SmtpFailure {
    pub(crate) fn at(stage: Stage, source: SmtpError) -> Self {
        if let Some(code) = source.status() {
            let code = u16::from(code);
            let text = source.source().map(ToString::to_string).unwrap_or_default();
            let status = match enhanced_status(&text) {
                Some(enhanced) => format!("{code} {enhanced}"),
                None => code.to_string(),
            };
            return Self::Refused { stage, code, status };
        }
        if source.is_response() {
            return Self::Unreadable(stage);
        }
        Self::Broken { stage, source }
    }

    /// Whether the server waits for a command, so that `QUIT` makes sense.
    pub(crate) fn leaves_server_listening(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::NonAsciiAddress)
    }

    /// The crate's documentation has the complete table.
    fn is_permanent(&self) -> bool {
        match self {
            Self::Refused {
                stage: Stage::Recipient | Stage::Content,
                code,
                ..
            } => (500..600).contains(code) && !matches!(code, 530 | 534 | 535 | 538),
            Self::NonAsciiAddress => true,
            _ => false,
        }
    }

    /// The failure of a mail at the server of this name.
    pub(crate) fn of_server(self, host: &str) -> SendError {
        let is_permanent = self.is_permanent();
        let failure = Box::new(AtServer {
            host: host.to_owned(),
            failure: self,
        });
        if is_permanent {
            SendError::Permanent(failure)
        } else {
            SendError::Transient(failure)
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the mail server is {host}")]
struct AtServer {
    host: String,
    #[source]
    failure: SmtpFailure,
}

/// The enhanced status code at the start of a reply's text: class, subject and detail, the last two with up
/// to three digits.
fn enhanced_status(text: &str) -> Option<String> {
    let word = text.split_whitespace().next()?;
    let (class, rest) = word.split_once('.')?;
    let (subject, detail) = rest.split_once('.')?;
    let is_number =
        |part: &str| (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_status = matches!(class, "4" | "5") && is_number(subject) && is_number(detail);
    is_status.then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_status_of_a_reply_is_read() {
        assert_eq!(
            enhanced_status("5.1.1 <anna@example.com>: unknown").as_deref(),
            Some("5.1.1")
        );
        assert_eq!(enhanced_status("4.7.100").as_deref(), Some("4.7.100"));
        for other in [
            "",
            "anna@example.com",
            "5.1",
            "5.1.1.1",
            "2.1.1",
            "5.1.a",
            "5.1.1234",
            "5..1",
        ] {
            assert_eq!(enhanced_status(other), None, "{other}");
        }
    }
}
