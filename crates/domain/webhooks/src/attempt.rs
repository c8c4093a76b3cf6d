//! One attempt of a delivery: its outcome, and the outcome's stored and displayed forms.

use std::time::Duration;

use kernel::Invalid;

/// Maximum length of a failure's reason in characters.
const MAX_REASON: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempted {
    pub outcome: Outcome,
    /// Its duration, beginning with the DNS look-up.
    pub duration: Duration,
}

impl Attempted {
    /// The response's status, if there was a response.
    pub const fn response_status(&self) -> Option<u16> {
        match self.outcome {
            Outcome::Answered(status) => Some(status),
            Outcome::Failed(_) => None,
        }
    }

    /// The duration in whole milliseconds.
    pub fn duration_ms(&self) -> i32 {
        i32::try_from(self.duration.as_millis()).unwrap_or(i32::MAX)
    }
}

/// The result of sending a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// An attempt was made.
    Attempted(Attempted),
    /// Nothing was sent, because the host has its maximum of concurrent attempts. It does not count as an
    /// attempt: the delivery is unchanged and is retried soon.
    Postponed,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver responded with this status (100 to 999); everything after the response head is ignored.
    Answered(u16),
    /// There was no response.
    Failed(AttemptFailure),
}

impl Outcome {
    /// True only for a 2xx status (contract: Delivery).
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Answered(200..=299))
    }

    /// The kind of the failure, if it is one.
    pub const fn failure(&self) -> Option<FailureKind> {
        match self {
            Self::Answered(200..=299) => None,
            Self::Answered(_) => Some(FailureKind::Status),
            Self::Failed(failure) => Some(failure.names().1),
        }
    }
}

kernel::words! {
    /// Why an attempt failed, as integrators see it (contract: `WebhookDelivery`).
    pub enum FailureKind {
        /// There was no answer in time.
        Timeout = "timeout",
        /// The host's name does not resolve, or not to public addresses only. As at the subscription, the two
        /// are indistinguishable.
        Address = "address",
        /// There is no connection to the host.
        Connect = "connect",
        Tls = "tls",
        /// The answer is not HTTP, or the connection was closed before it.
        Protocol = "protocol",
        /// The receiver answered with another status than 2xx.
        Status = "status",
        /// The worker was lost during the attempt.
        SenderLost = "sender_lost",
    }
}

/// Why there was no response. Reasons are in English, for developers, at most 200 characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttemptFailure {
    #[error("the host's name does not resolve")]
    Dns,
    #[error("the host resolves to a forbidden address")]
    AddressRefused,
    /// The connection failed with a network error.
    #[error("the host cannot be reached")]
    Connect,
    #[error("the host refused the connection")]
    Refused,
    #[error("there was no answer in time")]
    TimedOut,
    #[error("TLS failed: {0}")]
    Tls(String),
    #[error("invalid HTTP response: {0}")]
    Protocol(String),
    /// The connection was closed before the response head was complete.
    #[error("the connection was closed before the answer")]
    Closed,
    /// The worker was lost during the attempt, and the allowed number of losses is used up.
    #[error("the worker was lost during the attempt")]
    WorkerLost,
}

impl AttemptFailure {
    /// A TLS failure. Longer reasons are truncated.
    pub fn tls(reason: &str) -> Self {
        Self::Tls(cut(reason))
    }

    /// An HTTP failure. Longer reasons are truncated.
    pub fn protocol(reason: &str) -> Self {
        Self::Protocol(cut(reason))
    }

    /// The failure's name in logs and metrics.
    pub const fn as_code(&self) -> &'static str {
        self.names().0
    }

    /// What operators and integrators call it.
    const fn names(&self) -> (&'static str, FailureKind) {
        match self {
            Self::Dns => ("dns", FailureKind::Address),
            Self::AddressRefused => ("address_refused", FailureKind::Address),
            Self::Connect => ("connect", FailureKind::Connect),
            Self::Refused => ("refused", FailureKind::Connect),
            Self::TimedOut => ("timed_out", FailureKind::Timeout),
            Self::Tls(_) => ("tls", FailureKind::Tls),
            Self::Protocol(_) => ("protocol", FailureKind::Protocol),
            Self::Closed => ("closed", FailureKind::Protocol),
            Self::WorkerLost => ("worker_lost", FailureKind::SenderLost),
        }
    }

    /// The reason, if the failure has one.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Tls(reason) | Self::Protocol(reason) => Some(reason),
            _ => None,
        }
    }

    /// The stored form: the name, then a colon and the reason.
    pub fn to_text(&self) -> String {
        match self.reason() {
            Some(reason) => format!("{}:{reason}", self.as_code()),
            None => self.as_code().to_owned(),
        }
    }

    /// Parses the stored form.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let failure = match text.split_once(':') {
            Some(("tls", reason)) => Some(Self::tls(reason)),
            Some(("protocol", reason)) => Some(Self::protocol(reason)),
            Some(_) => None,
            None => PLAIN.into_iter().find(|failure| failure.as_code() == text),
        };
        failure.ok_or_else(|| Invalid::new("is not an attempt's failure"))
    }
}

/// The failures without a reason.
const PLAIN: [AttemptFailure; 7] = [
    AttemptFailure::Dns,
    AttemptFailure::AddressRefused,
    AttemptFailure::Connect,
    AttemptFailure::Refused,
    AttemptFailure::TimedOut,
    AttemptFailure::Closed,
    AttemptFailure::WorkerLost,
];

/// Truncates the reason and replaces control characters, which a store or a page may not accept.
fn cut(reason: &str) -> String {
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    reason.chars().take(MAX_REASON).map(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_2xx_is_success_and_nothing_else_is() {
        for status in 100..=999 {
            let success = (200..300).contains(&status);
            let outcome = Outcome::Answered(status);
            let failure = (!success).then_some(FailureKind::Status);
            assert_eq!(
                (outcome.is_success(), outcome.failure()),
                (success, failure),
                "{status}"
            );
        }
        let closed = Outcome::Failed(AttemptFailure::Closed);
        assert_eq!(
            (closed.is_success(), closed.failure()),
            (false, Some(FailureKind::Protocol))
        );
    }

    #[test]
    fn an_attempt_has_a_status_and_a_duration() {
        let after = |outcome, duration| Attempted { outcome, duration };
        let answered = after(Outcome::Answered(418), Duration::from_micros(1_500_999));
        let failed = after(Outcome::Failed(AttemptFailure::TimedOut), Duration::MAX);
        let stored = |attempted: Attempted| (attempted.response_status(), attempted.duration_ms());
        assert_eq!(stored(answered), (Some(418), 1_500));
        assert_eq!(stored(failed), (None, i32::MAX));
    }

    #[test]
    fn failures_are_parsed_back() {
        let with_reason = [
            AttemptFailure::tls("certificate: expired"),
            AttemptFailure::protocol(""),
        ];
        for failure in PLAIN.into_iter().chain(with_reason) {
            assert_eq!(AttemptFailure::parse(&failure.to_text()), Ok(failure));
        }
        for other in ["", "DNS", "dns:", "tls", "late"] {
            assert!(AttemptFailure::parse(other).is_err(), "{other}");
        }
    }

    #[test]
    fn reasons_are_short_and_printable() {
        let reason = format!("a\0b\n{}", "ż".repeat(300));
        let failure = AttemptFailure::tls(&reason);
        let stored = failure.reason().unwrap();
        assert_eq!((stored.chars().count(), stored.get(..4)), (200, Some("a b ")));
    }
}
