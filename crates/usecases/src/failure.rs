//! Why a use case fails: a refusal of its own, or a failure of the store.

use kernel::{StoreError, TransactionError};

use crate::Retryable;

/// The failure of a use case with the refusals `R`.
#[derive(Debug, thiserror::Error)]
pub enum Failure<R> {
    /// The rules refuse the operation; nothing was changed.
    #[error("{0}")]
    Refused(R),
    #[error(transparent)]
    Store(TransactionError),
}

impl<R> Failure<R> {
    /// Converts the refusal into that of another use case.
    pub fn refused_as<S: From<R>>(self) -> Failure<S> {
        match self {
            Self::Refused(refusal) => Failure::Refused(refusal.into()),
            Self::Store(error) => Failure::Store(error),
        }
    }
}

impl<R> From<StoreError> for Failure<R> {
    fn from(error: StoreError) -> Self {
        Self::Store(error.into())
    }
}

impl<R> From<TransactionError> for Failure<R> {
    fn from(error: TransactionError) -> Self {
        Self::Store(error)
    }
}

impl<R> Retryable for Failure<R> {
    fn is_retryable(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_retryable())
    }
}

pub(crate) fn refuse<T, R>(refusal: R) -> Result<T, Failure<R>> {
    Err(Failure::Refused(refusal))
}

/// Refuses unless the condition holds.
pub(crate) fn ensure<R>(holds: bool, refusal: R) -> Result<(), Failure<R>> {
    present(holds.then_some(()), refusal)
}

/// Unwraps what was looked up; refuses if there is none.
pub(crate) fn present<T, R>(found: Option<T>, refusal: R) -> Result<T, Failure<R>> {
    found.ok_or(Failure::Refused(refusal))
}
