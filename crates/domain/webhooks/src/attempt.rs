//! One attempt of a delivery: how it ended, and how that is kept and told.

use std::time::Duration;

use kernel::Invalid;

/// How long the reason of a failure may be, in characters.
const REASON_MAX: usize = 200;

/// An attempt that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempted {
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took, from the look-up of the name on.
    pub duration: Duration,
}

impl Attempted {
    /// The status that the receiver answered with, if it did.
    pub const fn response_status(&self) -> Option<u16> {
        match self.outcome {
            Outcome::Answered(status) => Some(status),
            Outcome::Failed(_) => None,
        }
    }

    /// How long it took, in whole milliseconds.
    pub fn duration_ms(&self) -> i32 {
        i32::try_from(self.duration.as_millis()).unwrap_or(i32::MAX)
    }
}

/// What became of a message that was to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// An attempt was made.
    Attempted(Attempted),
    /// Nothing was begun, for as many attempts as its host is given are under way there. That is no attempt of the delivery:
    /// it stays as it was, and is tried again soon.
    Postponed,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver answered with this status (100 to 999); what follows the head is of no account.
    Answered(u16),
    /// There was no answer.
    Failed(Failure),
}

impl Outcome {
    /// True for a 2xx status and nothing else (contract: Delivery).
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Answered(200..=299))
    }
}

/// Why there was no answer. Reasons are in English, for developers, at most 200 characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The host's name does not resolve.
    #[error("the host's name does not resolve")]
    Dns,
    /// The host has an address that deliveries never go to.
    #[error("the host has an address that deliveries do not go to")]
    AddressRefused,
    /// No connection came about: the network says that there is no way.
    #[error("the host cannot be reached")]
    Connect,
    /// The host refused the connection.
    #[error("the host refused the connection")]
    Refused,
    /// The attempt's time was over.
    #[error("there was no answer in time")]
    TimedOut,
    /// TLS failed; with the reason.
    #[error("TLS failed: {0}")]
    Tls(String),
    /// What came was no HTTP answer; with the reason.
    #[error("what came was no HTTP answer: {0}")]
    Protocol(String),
    /// The connection ended before the answer's head did.
    #[error("the connection was closed before the answer")]
    Closed,
    /// The worker was lost in the midst of it, not for the first time.
    #[error("the delivery was lost together with its sender")]
    WorkerLost,
}

impl Failure {
    /// A failure of TLS. A longer reason is cut.
    pub fn tls(reason: &str) -> Self {
        Self::Tls(cut(reason))
    }

    /// A failure of HTTP. A longer reason is cut.
    pub fn protocol(reason: &str) -> Self {
        Self::Protocol(cut(reason))
    }

    /// The failure's name, in logs and meters.
    pub const fn as_code(&self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::AddressRefused => "address_refused",
            Self::Connect => "connect",
            Self::Refused => "refused",
            Self::TimedOut => "timed_out",
            Self::Tls(_) => "tls",
            Self::Protocol(_) => "protocol",
            Self::Closed => "closed",
            Self::WorkerLost => "worker_lost",
        }
    }

    /// The reason, where the failure has one.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Tls(reason) | Self::Protocol(reason) => Some(reason),
            Self::Dns
            | Self::AddressRefused
            | Self::Connect
            | Self::Refused
            | Self::TimedOut
            | Self::Closed
            | Self::WorkerLost => None,
        }
    }

    /// The stored form: the name, and the reason after a colon.
    pub fn to_text(&self) -> String {
        match self.reason() {
            Some(reason) => format!("{}:{reason}", self.as_code()),
            None => self.as_code().to_owned(),
        }
    }

    /// Reads the stored form.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        match text.split_once(':') {
            Some(("tls", reason)) => Ok(Self::tls(reason)),
            Some(("protocol", reason)) => Ok(Self::protocol(reason)),
            Some(_) => Err(Invalid::new("is not a failure of an attempt")),
            None => PLAIN
                .into_iter()
                .find(|failure| failure.as_code() == text)
                .ok_or_else(|| Invalid::new("is not a failure of an attempt")),
        }
    }
}

/// The failures that have no reason.
const PLAIN: [Failure; 7] = [
    Failure::Dns,
    Failure::AddressRefused,
    Failure::Connect,
    Failure::Refused,
    Failure::TimedOut,
    Failure::Closed,
    Failure::WorkerLost,
];

/// Cut to its length, and free of what a store or a page could stumble over.
fn cut(reason: &str) -> String {
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    reason.chars().take(REASON_MAX).map(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_2xx_is_success_and_nothing_else_is() {
        for status in 100..=999 {
            let success = (200..300).contains(&status);
            assert_eq!(Outcome::Answered(status).is_success(), success, "{status}");
        }
        assert!(!Outcome::Failed(Failure::Closed).is_success());
    }

    #[test]
    fn an_attempt_tells_what_was_answered_and_how_long_it_took() {
        let after = |outcome, duration| Attempted { outcome, duration };
        let answered = after(Outcome::Answered(418), Duration::from_micros(1_500_999));
        assert_eq!(
            (answered.response_status(), answered.duration_ms()),
            (Some(418), 1_500)
        );
        let failed = after(Outcome::Failed(Failure::TimedOut), Duration::MAX);
        assert_eq!((failed.response_status(), failed.duration_ms()), (None, i32::MAX));
    }

    #[test]
    fn failures_read_back() {
        let with_reason = [Failure::tls("certificate: expired"), Failure::protocol("")];
        for failure in PLAIN.into_iter().chain(with_reason) {
            assert_eq!(Failure::parse(&failure.to_text()), Ok(failure));
        }
        for other in ["", "DNS", "dns:", "tls", "late"] {
            assert!(Failure::parse(other).is_err(), "{other}");
        }
    }

    #[test]
    fn reasons_are_short_and_printable() {
        let reason = format!("a\0b\n{}", "ż".repeat(300));
        let failure = Failure::tls(&reason);
        let kept = failure.reason().unwrap();
        assert_eq!((kept.chars().count(), kept.get(..4)), (200, Some("a b ")));
    }
}
