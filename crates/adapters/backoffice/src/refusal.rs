//! Why a request is not answered with what it asked for: what the client is told, and what goes to the log.

use std::error::Error;

use kernel::{LOST_CLAIM, StoreError};
use usecases::{Failure, Repeatable, UnitOfWorkError};
use web::failure::{self, Cause};
use web::guarded::Panicked;
use web::head::BadHead;
use web::{Entry, Problem, TaskPanicked, TraceId, Violations, idempotency_key};

use crate::importer::ImportError;

/// A refusal, or a failure of our own. Made by `?` from whatever refuses or fails.
#[derive(Debug)]
pub(crate) struct Refusal(Box<Inner>);

#[derive(Debug)]
struct Inner {
    problem: Problem,
    cause: Option<Cause>,
    closes: bool,
    fate: Fate,
}

/// What a failure means for the change that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It was surely not made.
    Unchanged,
    /// It was surely not made, and may be when it is done again.
    Repeatable,
    /// It was undone, because somebody else holds the key of the same request.
    Lost,
    /// Nobody knows.
    Unknown,
}

/// What a use case refuses, in this API's codes and paths.
pub(crate) trait Refused {
    /// The answer.
    fn problem(self) -> Problem;
}

impl Refusal {
    fn caused(problem: Problem, cause: impl Error + Send + Sync + 'static) -> Self {
        let mut refusal = Self::from(problem);
        refusal.0.cause = Some(Box::new(cause));
        refusal
    }

    fn with_fate(mut self, fate: Fate) -> Self {
        self.0.fate = fate;
        self
    }

    /// One complaint about the request as a whole, after which the connection is closed.
    pub(crate) fn closing(complaint: impl Into<Entry>) -> Self {
        let mut refusal = Self::from(Problem::from(complaint.into()));
        refusal.0.closes = true;
        refusal
    }

    /// The store did not answer in time.
    pub(crate) fn overdue() -> Self {
        Self::caused(Problem::unavailable(), Overdue)
    }

    /// The key belongs to somebody else by now, so that what was done is undone.
    pub(crate) fn lost_its_claim(&self) -> bool {
        self.0.fate == Fate::Lost
    }

    /// Logs the cause, where there is one that was not logged before. It is done here and nowhere else.
    pub(crate) fn logged(mut self, trace_id: &TraceId, route: &str) -> Self {
        if let Some(cause) = self.0.cause.take() {
            failure::log(trace_id, route, &cause);
        }
        self
    }

    /// What to answer, and whether the connection is to be closed after it.
    pub(crate) fn into_answer(self) -> (Problem, bool) {
        (self.0.problem, self.0.closes)
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self(Box::new(Inner {
            problem,
            cause: None,
            closes: false,
            fate: Fate::Unchanged,
        }))
    }
}

impl From<Violations> for Refusal {
    fn from(violations: Violations) -> Self {
        Problem::from(violations).into()
    }
}

impl From<BadHead> for Refusal {
    fn from(excess: BadHead) -> Self {
        Self::closing(excess)
    }
}

impl From<Panicked> for Refusal {
    /// The panic has been logged where it was caught.
    fn from(panicked: Panicked) -> Self {
        Problem::from(panicked).into()
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        UnitOfWorkError::from(error).into()
    }
}

impl From<UnitOfWorkError> for Refusal {
    fn from(error: UnitOfWorkError) -> Self {
        use StoreError::{Retryable, Unavailable};
        let (problem, fate) = match &error {
            UnitOfWorkError::Unknown(_) => (Problem::unavailable(), Fate::Unknown),
            UnitOfWorkError::Store(Retryable(_)) => (Problem::unavailable(), Fate::Repeatable),
            UnitOfWorkError::Store(Unavailable(_)) => (Problem::unavailable(), Fate::Unchanged),
            // The lease ran out, and the same request, sent again, holds the key now.
            UnitOfWorkError::Store(store) if store.conflict() == Some(LOST_CLAIM) => {
                return Self::from(idempotency_key::in_progress()).with_fate(Fate::Lost);
            }
            UnitOfWorkError::Store(_) => (Problem::internal(), Fate::Unchanged),
        };
        Self::caused(problem, error).with_fate(fate)
    }
}

impl Repeatable for Refusal {
    fn is_repeatable(&self) -> bool {
        self.0.fate == Fate::Repeatable
    }

    fn is_unknown(&self) -> bool {
        self.0.fate == Fate::Unknown
    }
}

impl<R: Refused> From<Failure<R>> for Refusal {
    fn from(failure: Failure<R>) -> Self {
        match failure {
            Failure::Refused(refused) => refused.problem().into(),
            Failure::Store(error) => error.into(),
        }
    }
}

impl From<TaskPanicked> for Refusal {
    /// How far it came is not known.
    fn from(panicked: TaskPanicked) -> Self {
        Self::caused(Problem::internal(), panicked).with_fate(Fate::Unknown)
    }
}

impl From<ImportError> for Refusal {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::Store(error) => error.into(),
            ImportError::Panicked(panicked) => panicked.into(),
        }
    }
}

impl From<serde_json::Error> for Refusal {
    fn from(error: serde_json::Error) -> Self {
        Self::caused(Problem::internal(), error)
    }
}

/// The store did not answer in time.
#[derive(Debug, thiserror::Error)]
#[error("the store did not answer in time")]
pub(crate) struct Overdue;

impl From<Overdue> for StoreError {
    fn from(overdue: Overdue) -> Self {
        Self::Unavailable(Box::new(overdue))
    }
}

#[cfg(test)]
mod tests {
    use web::failure::Causes;

    use super::*;

    #[test]
    fn the_whole_chain_goes_to_the_log() {
        let error = UnitOfWorkError::from(StoreError::Unavailable("connection refused".into()));
        assert_eq!(
            Causes(&error).to_string(),
            "the store cannot be reached: connection refused"
        );
    }
}
