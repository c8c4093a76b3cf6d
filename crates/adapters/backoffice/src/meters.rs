//! What is counted of idempotency keys.

/// The listener's name in logs and metrics.
pub(crate) const LISTENER: &str = "backoffice";

/// Counts what became of an idempotency key: `run`, `in_progress`, `reused`, `replayed`; after a run that failed one more,
/// `released`, `recovered`, `unanswered` or `lost`.
pub(crate) fn count_claim(outcome: &'static str) {
    metrics::counter!("idempotency_claims_total", "listener" => LISTENER, "outcome" => outcome).increment(1);
}
