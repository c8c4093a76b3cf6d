//! Why a request to `/v1` is not answered with what it asked for.

use std::borrow::Cow;

use kernel::StoreError;
use web::guarded::Panicked;
use web::head::HeadTooLarge;
use web::{Entry, Problem, TaskPanicked, Violations};

use crate::deadline::Overdue;
use crate::failure::Cause;

/// What the client is told, and what the log is. Refusals are made by `?` from whatever refuses.
#[derive(Debug)]
pub(crate) struct Refusal(Box<Inner>);

#[derive(Debug)]
struct Inner {
    problem: Problem,
    cause: Option<Cause>,
    closes: bool,
}

impl Refusal {
    fn new(problem: Problem, cause: Option<Cause>) -> Self {
        Self(Box::new(Inner {
            problem,
            cause,
            closes: false,
        }))
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

impl From<HeadTooLarge> for Refusal {
    fn from(excess: HeadTooLarge) -> Self {
        Self::closing(excess.to_string())
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let problem = match error {
            StoreError::Unavailable(_) | StoreError::Retryable(_) => Problem::unavailable(),
            StoreError::Conflict { .. } | StoreError::Corrupt { .. } | StoreError::Unexpected(_) => {
                Problem::internal()
            }
        };
        Self::new(problem, Some(error.into()))
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
