//! What becomes of idempotency keys, counted.

use crate::listener::LISTENER;

const CLAIMS: &str = "idempotency_claims_total";

/// What became of a request with a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    /// Its claim was granted. A run that is not counted again below did its work.
    Run,
    /// The first request with the key was still running.
    InProgress,
    /// The key belonged to another request.
    Reused,
    /// It was answered with what was remembered.
    Replayed,
    /// It ran and failed without changing anything: the key was given back.
    Released,
    /// The answer to its COMMIT was lost, and the row told that the work was done.
    Recovered,
    /// The answer to its COMMIT was lost, and the row did not tell that the work was done.
    Unanswered,
    /// It was too slow: somebody else took the claim over, and it changed nothing.
    Lost,
}

impl Outcome {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::InProgress => "in_progress",
            Self::Reused => "reused",
            Self::Replayed => "replayed",
            Self::Released => "released",
            Self::Recovered => "recovered",
            Self::Unanswered => "unanswered",
            Self::Lost => "lost",
        }
    }

    pub(super) fn count(self) {
        metrics::counter!(CLAIMS, "listener" => LISTENER, "outcome" => self.as_str()).increment(1);
    }
}
