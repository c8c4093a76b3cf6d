//! Store failures, in kinds that tell a caller whether a retry can help.

use std::{error::Error, ops::Deref, sync::Arc};

/// The messages of an error and its causes on one line, without causes that an outer message already
/// contains.
pub fn error_chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// The cause of a failure. Cloned, since a statement that fails may have had several callers.
#[derive(Clone, Debug)]
pub struct SharedError(Arc<dyn Error + Send + Sync>);

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for SharedError {
    fn from(cause: E) -> Self {
        let cause: Box<dyn Error + Send + Sync> = cause.into();
        Self(Arc::from(cause))
    }
}

impl Deref for SharedError {
    type Target = dyn Error + Send + Sync;

    fn deref(&self) -> &Self::Target {
        self.0.as_ref()
    }
}

/// The cause of [`StoreError::Unavailable`] when the caller's share of the database is used up: by its
/// seller's other requests, its application's, or, for a caller who is not signed in, by those of all such callers.
#[derive(Debug, thiserror::Error)]
#[error("the seller's or the application's share of database connections is exhausted")]
pub struct ShareTaken;

/// The cause of [`StoreError::Unavailable`] when a seller's request gets no turn at a row, such as an offer's, because too many
/// others wait for it.
#[derive(Debug, thiserror::Error)]
#[error("too many requests wait for the same row")]
pub struct RowTaken;

/// The failure of a port that stores or reads state. The caller that sends the response logs the cause once.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// A deadlock or serialization failure rolled the transaction back. The work may be repeated from its
    /// start.
    #[error("transaction conflict; retry")]
    Retryable(#[source] SharedError),
    /// The store is unreachable, does not respond in time, or has no room. As far as is known, nothing was
    /// changed.
    #[error("the store is unavailable")]
    Unavailable(#[source] SharedError),
    /// A unique value already exists.
    #[error("the row already exists ({constraint})")]
    Conflict {
        /// The name of the violated constraint or unique index.
        constraint: String,
    },
    /// A stored row that violates the rules of the domain.
    #[error("corrupt row {table}[{id}] ({reason})")]
    Corrupt {
        table: &'static str,
        /// The row's key as text.
        id: String,
        /// What is wrong with the row.
        reason: String,
    },
    /// Any other failure; a bug.
    #[error("unexpected failure of the store")]
    Unexpected(#[source] SharedError),
}

impl StoreError {
    #[expect(
        clippy::needless_pass_by_value,
        reason = "ids and reasons are made for the error"
    )]
    pub fn corrupt(table: &'static str, id: impl ToString, reason: impl ToString) -> Self {
        Self::Corrupt {
            table,
            id: id.to_string(),
            reason: reason.to_string(),
        }
    }

    pub fn unexpected(cause: impl Into<SharedError>) -> Self {
        Self::Unexpected(cause.into())
    }

    /// The violated constraint, if this is a conflict.
    pub fn conflict(&self) -> Option<&str> {
        match self {
            Self::Conflict { constraint } => Some(constraint),
            _ => None,
        }
    }
}

/// Why a transaction, or a statement that is one, failed.
#[derive(Debug, thiserror::Error)]
pub enum TransactionError {
    /// Nothing was changed. An adapter's commit MUST return it only if that is certain, so never by `?` for a
    /// lost response.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The response was lost: only the rows show whether the transaction was committed. Never repeat it
    /// blindly.
    #[error("transaction outcome unknown")]
    Unknown(#[source] StoreError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_corrupt_row_is_named_and_only_a_conflict_has_a_constraint() {
        let error = StoreError::corrupt("orders", 7, "no items");
        assert_eq!(error.to_string(), "corrupt row orders[7] (no items)");
        assert_eq!(error.conflict(), None);
        let conflict = StoreError::Conflict {
            constraint: "orders_pkey".to_owned(),
        };
        assert_eq!(conflict.conflict(), Some("orders_pkey"));
        assert_eq!(StoreError::unexpected("no idea").conflict(), None);
        assert_eq!(StoreError::Retryable("deadlock".into()).conflict(), None);
    }

    #[test]
    fn an_error_chain_has_each_cause_once() {
        let row = StoreError::corrupt("orders", 7, "no items");
        let failure = StoreError::unexpected(StoreError::Retryable(row.into()));
        let chain = "unexpected failure of the store: transaction conflict; retry: \
                     corrupt row orders[7] (no items)";
        assert_eq!(error_chain(&failure), chain);
        let commit =
            TransactionError::Store(StoreError::Unexpected("unexpected failure of the store".into()));
        assert_eq!(error_chain(&commit).matches("unexpected failure").count(), 1);
    }
}
