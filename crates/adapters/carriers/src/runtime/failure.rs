//! The ways in which a look-up comes to nothing.

use std::{error::Error, fmt::Write};

use chrono::TimeDelta;

/// Why a carrier could not be asked or understood. Its text goes into logs: it holds no credential and no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// No answer within the deadline.
    #[error("no answer in time")]
    Timeout,
    /// No connection within its share of the deadline.
    #[error("no connection in time")]
    ConnectTimeout,
    /// No connection at all.
    #[error("no connection: {0}")]
    Connect(String),
    /// The exchange broke off.
    #[error("the exchange broke off: {0}")]
    Broken(String),
    /// An HTTP status that carries no answer.
    #[error("HTTP status {0}")]
    Status(u16),
    /// More than the carrier allows; with the pause that it asks for.
    #[error("HTTP status 429")]
    Throttled(Option<TimeDelta>),
    /// The carrier does not take the token (any more).
    #[error("HTTP status 401")]
    Unauthorized,
    /// The carrier does not take the credentials.
    #[error("the carrier refuses the credentials")]
    Credentials,
    /// The answer is larger than anything a carrier has to say.
    #[error("the answer is too large")]
    TooLarge,
    /// The answer is not of the carrier's form.
    #[error("unreadable answer: {0}")]
    Unreadable(&'static str),
    /// The carrier is well, and refuses this question.
    #[error("the carrier refuses the question: {0}")]
    Refused(String),
}

impl Failure {
    /// Whether a second try right away may succeed.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Connect(_) | Self::ConnectTimeout | Self::Status(502..=504)
        )
    }
}

impl From<reqwest::Error> for Failure {
    fn from(error: reqwest::Error) -> Self {
        match (error.is_timeout(), error.is_connect()) {
            (true, true) => Self::ConnectTimeout,
            (true, false) => Self::Timeout,
            (false, true) => Self::Connect(in_full(error)),
            (false, false) => Self::Broken(in_full(error)),
        }
    }
}

/// An error and its causes, without the address, which holds the number.
fn in_full(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        // Writing to a string cannot fail.
        let _ = write!(text, ": {next}");
        cause = next.source();
    }
    text
}
