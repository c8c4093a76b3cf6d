//! What is counted beside requests.

use std::time::Duration;

use usecases::sign_in::Pace;

/// Counts an attempt to sign in, or to change a password, by what its limits make of it.
pub(crate) fn paced(pace: &Pace) {
    let decision = match pace {
        Pace::Refused(_) => "refused",
        Pace::After(Duration::ZERO) => "admitted",
        Pace::After(_) => "delayed",
    };
    metrics::counter!("rate_limit_decisions_total", "limit" => "sign_in", "decision" => decision)
        .increment(1);
}

/// Counts a request that found as many passwords waiting to be compared as may.
pub(crate) fn crowded() {
    metrics::counter!("rate_limit_decisions_total", "limit" => "password_hashes", "decision" => "refused")
        .increment(1);
}
