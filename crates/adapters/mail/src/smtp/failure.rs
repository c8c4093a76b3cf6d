//! What goes wrong in an SMTP dialogue, and whether another attempt may mend it.

use std::{error::Error as _, fmt, io};

use kernel::SendError;
use lettre::transport::smtp::Error as SmtpError;

/// How far a dialogue had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Connection, greeting, TLS, `EHLO`.
    Opening,
    /// `AUTH`.
    SigningIn,
    /// `MAIL FROM`.
    Sender,
    /// `RCPT TO`.
    Recipient,
    /// `DATA` and what follows it.
    Content,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Opening => "opening the connection",
            Self::SigningIn => "signing in",
            Self::Sender => "naming the sender",
            Self::Recipient => "naming the recipient",
            Self::Content => "handing over the content",
        })
    }
}

/// Why a mail was not handed over. Never repeats what the server wrote, since that often holds the buyer's address.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SmtpFailure {
    /// A 4xx or 5xx reply.
    #[error("the server answered {code} while {stage}")]
    Refused {
        stage: Stage,
        /// The reply code, and the enhanced status code (RFC 3463) where the server gives one.
        code: ReplyCode,
    },
    /// None of the server's addresses accepted a connection, or its name has none.
    #[error("the server could not be reached")]
    Unreachable(#[source] io::Error),
    /// The connection could not be made or broke, TLS included, or the server lacks what is asked of it.
    #[error("the connection failed while {stage}")]
    Broken {
        stage: Stage,
        #[source]
        source: SmtpError,
    },
    /// The server ended the connection without an answer, or its answer makes no sense.
    #[error("the server's answer was missing or unreadable while {0}")]
    Unreadable(Stage),
    /// The time for the sending was over.
    #[error("the server did not answer in time while {0}")]
    TimedOut(Stage),
    /// The recipient's address needs SMTPUTF8 (RFC 6531), which the server does not offer.
    #[error("the server takes no addresses beyond ASCII")]
    AddressBeyondAscii,
}

/// A reply's code: `550`, or `550 5.1.1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReplyCode {
    basic: u16,
    enhanced: Option<String>,
}

impl fmt::Display for ReplyCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.enhanced {
            Some(enhanced) => write!(f, "{} {enhanced}", self.basic),
            None => write!(f, "{}", self.basic),
        }
    }
}

impl SmtpFailure {
    /// Keeps of the client's error what may be logged.
    pub(crate) fn at(stage: Stage, source: SmtpError) -> Self {
        if let Some(code) = source.status() {
            let text = source.source().map(ToString::to_string).unwrap_or_default();
            let code = ReplyCode {
                basic: code.into(),
                enhanced: enhanced_status(&text),
            };
            return Self::Refused { stage, code };
        }
        if source.is_response() {
            return Self::Unreadable(stage);
        }
        Self::Broken { stage, source }
    }

    /// Whether the server waits for the next command, so that a `QUIT` makes sense.
    pub(crate) fn leaves_server_listening(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::AddressBeyondAscii)
    }

    /// Whether the refusal is about this mail and for good. The crate's documentation has the whole table.
    fn is_permanent(&self) -> bool {
        match self {
            Self::Refused {
                stage: Stage::Recipient | Stage::Content,
                code,
            } => (500..600).contains(&code.basic) && !matches!(code.basic, 530 | 534 | 535 | 538),
            Self::AddressBeyondAscii => true,
            _ => false,
        }
    }
}

impl From<SmtpFailure> for SendError {
    fn from(failure: SmtpFailure) -> Self {
        if failure.is_permanent() {
            Self::Permanent(Box::new(failure))
        } else {
            Self::Transient(Box::new(failure))
        }
    }
}

/// The enhanced status code that opens a reply's text: class, subject and detail, the latter two of up to three digits.
fn enhanced_status(text: &str) -> Option<String> {
    let word = text.split_whitespace().next()?;
    let mut parts = word.split('.');
    let class = parts.next().is_some_and(|class| matches!(class, "4" | "5"));
    let mut number = || {
        let number = parts.next().unwrap_or_default();
        (1..=3).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit())
    };
    (class && number() && number() && parts.next().is_none()).then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_status_is_taken_from_the_servers_words() {
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
