//! Why a request to `/v1` is not answered with what it asked for.

use std::borrow::Cow;

use kernel::{LOST_CLAIM, StoreError};
use usecases::{Failure, Repeatable, UnitOfWorkError};
use web::failure::Cause;
use web::guarded::Panicked;
use web::head::BadHead;
use web::{Entry, Problem, TaskPanicked, Violations, idempotency_key};

use crate::deadline::Overdue;

/// What the client is told, and what the log is. Refusals are made by `?` from whatever refuses.
#[derive(Debug)]
pub(crate) struct Refusal(Box<Inner>);

#[derive(Debug)]
struct Inner {
    problem: Problem,
    cause: Option<Cause>,
    closes: bool,
    fate: Fate,
}

/// What is known of the work that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It changed nothing.
    Undone,
    /// It changed nothing, and may succeed when it is done again.
    Repeatable,
    /// It changed nothing, because somebody else had taken over the claim on its key.
    Ousted,
    /// Nobody knows whether it stands.
    Unknown,
}

/// What a use case refuses, in the codes of the contract.
pub(crate) trait Refused {
    /// The answer.
    fn problem(self) -> Problem;
}

impl Refusal {
    fn new(problem: Problem, cause: Option<Cause>) -> Self {
        Self(Box::new(Inner {
            problem,
            cause,
            closes: false,
            fate: Fate::Undone,
        }))
    }

    /// True when the work was given up because somebody else had taken over the claim on its key.
    pub(crate) fn lost_its_claim(&self) -> bool {
        self.0.fate == Fate::Ousted
    }

    /// Takes the cause out, for whoever logs it.
    pub(crate) fn take_cause(&mut self) -> Option<Cause> {
        self.0.cause.take()
    }

    /// The gate failed. The request may have been counted or not; it does not run, and may be sent again.
    pub(crate) fn at_the_gate(error: StoreError) -> Self {
        match error {
            StoreError::Corrupt { .. } => error.into(),
            failed => Self::new(Problem::unavailable(), Some(failed.into())),
        }
    }

    /// A complaint about the request as a whole, after which the connection is closed.
    pub(crate) fn closing(complaint: impl Into<Cow<'static, str>>) -> Self {
        let mut refusal = Self::from(Problem::from(Entry::whole(complaint)));
        refusal.0.closes = true;
        refusal
    }

    /// What the client is told, what the log is, and whether the connection is to be closed.
    pub(crate) fn into_parts(self) -> (Problem, Option<Cause>, bool) {
        let Inner {
            problem,
            cause,
            closes,
            fate: _,
        } = *self.0;
        (problem, cause, closes)
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self::new(problem, None)
    }
}

impl From<Violations> for Refusal {
    fn from(violations: Violations) -> Self {
        Problem::from(violations).into()
    }
}

impl From<BadHead> for Refusal {
    fn from(excess: BadHead) -> Self {
        Self::closing(excess.to_string())
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        UnitOfWorkError::from(error).into()
    }
}

impl From<UnitOfWorkError> for Refusal {
    fn from(error: UnitOfWorkError) -> Self {
        let (problem, fate) = match &error {
            UnitOfWorkError::Unknown(_) => (Problem::unavailable(), Fate::Unknown),
            UnitOfWorkError::Store(StoreError::Retryable(_)) => (Problem::unavailable(), Fate::Repeatable),
            UnitOfWorkError::Store(StoreError::Unavailable(_)) => (Problem::unavailable(), Fate::Undone),
            UnitOfWorkError::Store(store) if store.conflict() == Some(LOST_CLAIM) => {
                (idempotency_key::in_progress(), Fate::Ousted)
            }
            UnitOfWorkError::Store(_) => (Problem::internal(), Fate::Undone),
        };
        // A lost claim is no failure of ours.
        let cause = (fate != Fate::Ousted).then(|| error.into());
        let mut refusal = Self::new(problem, cause);
        refusal.0.fate = fate;
        refusal
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

impl Repeatable for Refusal {
    fn is_repeatable(&self) -> bool {
        self.0.fate == Fate::Repeatable
    }

    fn is_unknown(&self) -> bool {
        self.0.fate == Fate::Unknown
    }
}

impl From<Overdue> for Refusal {
    fn from(overdue: Overdue) -> Self {
        Self::new(Problem::unavailable(), Some(overdue.into()))
    }
}

impl From<serde_json::Error> for Refusal {
    fn from(error: serde_json::Error) -> Self {
        Self::new(Problem::internal(), Some(error.into()))
    }
}

impl From<TaskPanicked> for Refusal {
    fn from(panicked: TaskPanicked) -> Self {
        Self::new(Problem::internal(), Some(panicked.into()))
    }
}

impl From<Panicked> for Refusal {
    /// The panic has been logged where it was caught.
    fn from(panicked: Panicked) -> Self {
        Problem::from(panicked).into()
    }
}
