//! Why a request gets no page of its own: what it gets instead, with the status that goes with it.

use actix_web::http::StatusCode;
use kernel::StoreError;
use oauth::{ConsentRefusal, Overcrowded, Quota};
use usecases::{Repeatable, UnitOfWorkError};
use web::TaskPanicked;
use web::error::Cause;

use crate::next::Next;

/// A request that is refused, or that failed.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// There is no such page, or not for this seller.
    NotFound,
    /// Nobody is signed in: the way there leads over the page to sign in on.
    SignIn(Next),
    /// The form does not show that this browser has read it; most likely it was left open for too long.
    StaleForm,
    /// The request is none that a page of ours sends.
    Malformed,
    /// The same, and something of it may still be under way: the connection is closed.
    Unreadable,
    /// Too many attempts from this address.
    TooMany(Quota),
    /// The request for consent cannot be shown or decided.
    Consent(ConsentRefusal),
    /// The one-time link cannot be used, or not any more.
    DeadLink,
    /// The form's one-time number was used by a form that said something else. With the path of the page that has a new one.
    FormUsed(String),
    /// What was to be shown once was shown, or never was.
    ShownBefore,
    /// As many passwords wait to be compared as may.
    Crowded,
    /// The store cannot be reached.
    Unavailable(Cause),
    /// A defect.
    Failed(Cause),
}

impl Refusal {
    /// The status of the page that says so.
    pub(crate) const fn status(&self) -> StatusCode {
        match self {
            Self::NotFound | Self::Consent(ConsentRefusal::Unknown) => StatusCode::NOT_FOUND,
            Self::SignIn(_) => StatusCode::SEE_OTHER,
            Self::StaleForm | Self::Consent(ConsentRefusal::AnotherViewer) => StatusCode::FORBIDDEN,
            Self::Malformed | Self::Unreadable => StatusCode::BAD_REQUEST,
            Self::FormUsed(_) => StatusCode::CONFLICT,
            Self::TooMany(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Consent(_) | Self::DeadLink | Self::ShownBefore => StatusCode::GONE,
            Self::Unavailable(_) | Self::Crowded => StatusCode::SERVICE_UNAVAILABLE,
            Self::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Whether nobody knows if the change stands.
    pub(crate) fn is_unknown(&self) -> bool {
        let Self::Failed(cause) = self else { return false };
        let cause = cause.downcast_ref::<UnitOfWorkError>();
        cause.is_some_and(Repeatable::is_unknown)
    }

    /// What is to be logged.
    pub(crate) fn cause(&self) -> Option<&Cause> {
        match self {
            Self::Unavailable(cause) | Self::Failed(cause) => Some(cause),
            _ => None,
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(cause) if cause.is::<Overcrowded>() => Self::Crowded,
            StoreError::Unavailable(_) => Self::Unavailable(error.into()),
            other => Self::Failed(other.into()),
        }
    }
}

impl From<UnitOfWorkError> for Refusal {
    fn from(error: UnitOfWorkError) -> Self {
        match error {
            UnitOfWorkError::Store(error) => error.into(),
            unknown @ UnitOfWorkError::Unknown(_) => Self::Failed(unknown.into()),
        }
    }
}

impl From<TaskPanicked> for Refusal {
    fn from(error: TaskPanicked) -> Self {
        Self::Failed(error.into())
    }
}

impl From<askama::Error> for Refusal {
    fn from(error: askama::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<ConsentRefusal> for Refusal {
    fn from(refusal: ConsentRefusal) -> Self {
        Self::Consent(refusal)
    }
}
