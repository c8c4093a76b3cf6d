//! How a request fails: the problem for the client and the cause for the log.

use std::borrow::Cow;
use std::error::Error as StdError;

use actix_web::HttpResponse;
use kernel::{LOST_CLAIM, RowTaken, ShareTaken, StoreError, TransactionError, error_chain};
use usecases::{Failure, Retryable};

use crate::problem::{Entry, Problem};
use crate::tasks::Panicked;
use crate::trace_id::TraceId;
use crate::violations::Violations;

/// The cause of a failure, for the log.
pub type Cause = Box<dyn StdError + Send + Sync>;

/// Why a request failed. `?` converts refusals and store errors into it.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    problem: Problem,
    cause: Option<Cause>,
    closes: bool,
    effect: EffectOutcome,
}

/// What is known about the effect of the requested change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EffectOutcome {
    /// Nothing changed.
    None,
    /// Nothing changed; a retry of the same work may succeed.
    Retryable,
    /// Nothing changed: another request had taken over the claim on the key.
    ClaimLost,
    /// The answer to the COMMIT was lost.
    Unknown,
}

impl Error {
    pub fn caused(problem: Problem, cause: impl Into<Cause>) -> Self {
        let mut error = Self::from(problem);
        error.0.cause = Some(cause.into());
        error
    }

    fn with_effect(mut self, effect: EffectOutcome) -> Self {
        self.0.effect = effect;
        self
    }

    /// 400 about the request as a whole, after which the connection is closed.
    pub fn closing(message: impl Into<Cow<'static, str>>) -> Self {
        let mut error = Self::from(Problem::from(Entry::whole(message)));
        error.0.closes = true;
        error
    }

    /// The store failed before the request was executed, so the client may retry after any failure.
    pub fn before_execution(error: StoreError) -> Self {
        match error {
            StoreError::Corrupt { .. } => error.into(),
            failed => Self::caused(Problem::unavailable(), failed),
        }
    }

    /// True if it is unknown whether the change was committed.
    pub(crate) fn is_unknown(&self) -> bool {
        self.0.effect == EffectOutcome::Unknown
    }

    pub(crate) fn has_lost_its_claim(&self) -> bool {
        self.0.effect == EffectOutcome::ClaimLost
    }

    /// Logs the cause, once.
    #[must_use]
    pub fn logged(mut self, trace_id: &TraceId, route: &str) -> Self {
        if let Some(cause) = self.0.cause.take() {
            log_failure(trace_id, route, &cause);
        }
        self
    }

    /// The problem for the client.
    pub fn problem(&self) -> &Problem {
        &self.0.problem
    }

    /// The response, and whether the connection is closed after it.
    pub fn into_response(self, trace_id: &TraceId) -> (HttpResponse, bool) {
        (self.0.problem.into_response(trace_id), self.0.closes)
    }
}

impl Retryable for Error {
    fn is_retryable(&self) -> bool {
        self.0.effect == EffectOutcome::Retryable
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self(Box::new(Inner {
            problem,
            cause: None,
            closes: false,
            effect: EffectOutcome::None,
        }))
    }
}

impl From<Violations> for Error {
    fn from(violations: Violations) -> Self {
        Problem::from(violations).into()
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        TransactionError::from(error).into()
    }
}

impl From<TransactionError> for Error {
    fn from(error: TransactionError) -> Self {
        let (problem, effect) = match &error {
            TransactionError::Unknown(_) => (Problem::unavailable(), EffectOutcome::Unknown),
            TransactionError::Store(StoreError::Retryable(_)) => {
                (Problem::unavailable(), EffectOutcome::Retryable)
            }
            // Not a failure of this service either.
            TransactionError::Store(StoreError::Unavailable(cause)) if cause.is::<ShareTaken>() => {
                return Problem::too_many_at_once().into();
            }
            TransactionError::Store(StoreError::Unavailable(cause)) if cause.is::<RowTaken>() => {
                return Problem::busy_row().into();
            }
            TransactionError::Store(StoreError::Unavailable(_)) => {
                (Problem::unavailable(), EffectOutcome::None)
            }
            // Not a failure of this service: the lease expired, and a retry of the request now holds the key.
            TransactionError::Store(store) if store.conflict() == Some(LOST_CLAIM) => {
                return Self::from(Problem::key_in_progress()).with_effect(EffectOutcome::ClaimLost);
            }
            TransactionError::Store(_) => (Problem::internal(), EffectOutcome::None),
        };
        Self::caused(problem, error).with_effect(effect)
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::caused(Problem::internal(), error)
    }
}

impl From<Panicked> for Error {
    fn from(panicked: Panicked) -> Self {
        Self::caused(Problem::internal(), panicked)
    }
}

/// Maps a use case's refusal to the problem for the client.
pub trait MapRefusal<T, R> {
    fn map_refusal(self, problem: impl FnOnce(R) -> Problem) -> Result<T, Error>;
}

impl<T, R> MapRefusal<T, R> for Result<T, Failure<R>> {
    fn map_refusal(self, problem: impl FnOnce(R) -> Problem) -> Result<T, Error> {
        self.map_err(|failure| match failure {
            Failure::Refused(refusal) => problem(refusal).into(),
            Failure::Store(error) => error.into(),
        })
    }
}

/// Logs the cause of a 500 under the trace id in the response.
pub fn log_failure(trace_id: &TraceId, route: &str, cause: &Cause) {
    let cause = error_chain(cause.as_ref());
    tracing::error!(trace_id = trace_id.as_str(), route, cause, "a request failed");
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::sync::Arc;

    use super::*;
    use crate::tasks::catch_panic;

    #[test]
    fn who_lost_its_claim_is_told_that_another_request_runs() {
        let constraint = LOST_CLAIM.to_owned();
        assert!(Error::from(StoreError::Conflict { constraint }).has_lost_its_claim());
    }

    #[test]
    fn a_busy_row_is_no_failure_of_the_service() {
        let error = Error::from(StoreError::Unavailable(RowTaken.into()));
        assert!(
            error.0.cause.is_none(),
            "nothing is logged but the request's line"
        );
        assert_eq!(
            (error.problem(), error.0.effect),
            (&Problem::busy_row(), EffectOutcome::None)
        );
    }

    #[tokio::test]
    async fn a_panic_becomes_an_error_and_is_logged_once() {
        let (mut log, writer) = std::io::pipe().unwrap();
        let subscriber = tracing_subscriber::fmt().with_writer(Arc::new(writer));
        let listening = tracing::subscriber::set_default(subscriber.finish());
        let trace_id = TraceId::from_random([0; 16]);
        let panicking = async { panic!("no {}", "way") };
        let outcome: Result<(), Error> = catch_panic(panicking).await;
        let logged = outcome.unwrap_err().logged(&trace_id, "/v1/me");
        let again = logged.logged(&trace_id, "/v1/me");
        assert_eq!(*again.problem(), Problem::internal());
        drop(listening);
        let mut lines = String::new();
        log.read_to_string(&mut lines).unwrap();
        let is_told = lines.contains("no way") && lines.contains(trace_id.as_str());
        assert!(is_told && lines.lines().count() == 1, "{lines}");
    }
}
