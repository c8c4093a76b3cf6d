//! Counters and durations of requests, by route template, method and status.

use std::time::Duration;

use actix_web::http::{Method, StatusCode};

/// The listener's name in logs and metrics.
pub(crate) const LISTENER: &str = "backoffice";

/// Counts a request. `route` is a template or `-`, so that the number of meters is bounded.
pub(crate) fn count(route: &'static str, method: &Method, status: StatusCode, took: Duration) {
    let labels = [
        ("listener", LISTENER.to_owned()),
        ("route", route.to_owned()),
        ("method", label(method).to_owned()),
        ("status", status.as_u16().to_string()),
    ];
    metrics::counter!("http_requests_total", &labels).increment(1);
    metrics::histogram!("http_request_duration_seconds", &labels).record(took.as_secs_f64());
}

/// Counts what became of an idempotency key: `run`, `in_progress`, `reused`, `replayed`; after a run that failed one more,
/// `released`, `recovered`, `unanswered` or `lost`.
pub(crate) fn count_claim(outcome: &'static str) {
    metrics::counter!("idempotency_claims_total", "listener" => LISTENER, "outcome" => outcome).increment(1);
}

/// The method, if some route has it: a client can make others up.
fn label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}
