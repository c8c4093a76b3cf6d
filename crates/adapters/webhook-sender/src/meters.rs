//! What is measured of sending.

use webhooks::{Attempted, Outcome};

const ATTEMPTS: &str = "webhook_attempts_total";
const POSTPONED: &str = "webhook_attempts_postponed_total";
const SECONDS: &str = "webhook_attempt_duration_seconds";
const KEPT: &str = "webhook_kept_connections";

/// Counts an attempt that has ended.
pub(crate) fn attempted(attempted: &Attempted) {
    metrics::counter!(ATTEMPTS, "outcome" => label(&attempted.outcome)).increment(1);
    metrics::histogram!(SECONDS).record(attempted.duration.as_secs_f64());
}

/// Counts an attempt that could not begin.
pub(crate) fn postponed() {
    metrics::counter!(POSTPONED).increment(1);
}

/// Tells how many connections are kept now.
pub(crate) fn kept(connections: usize) {
    metrics::gauge!(KEPT).set(f64::from(u32::try_from(connections).unwrap_or(u32::MAX)));
}

/// Receivers choose the status, so that it is counted by its class.
fn label(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Answered(..200) => "1xx",
        Outcome::Answered(200..300) => "2xx",
        Outcome::Answered(300..400) => "3xx",
        Outcome::Answered(400..500) => "4xx",
        Outcome::Answered(500..600) => "5xx",
        Outcome::Answered(_) => "other",
        Outcome::Failed(failure) => failure.as_code(),
    }
}
