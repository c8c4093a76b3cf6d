//! How a store fails: in kinds that tell a caller whether trying again can help.

use std::error::Error;

/// The failure of a port that keeps or reads state. The cause travels along and is logged once, by whoever answers.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The transaction was undone by a deadlock or a serialization failure: the same work may be done again from its start.
    #[error("the transaction lost against another one and can be repeated")]
    Retryable(#[source] Box<dyn Error + Send + Sync>),
    /// The store cannot be reached, or does not answer in time. Nothing was changed, as far as is known.
    #[error("the store cannot be reached")]
    Unavailable(#[source] Box<dyn Error + Send + Sync>),
    /// What should be unique exists already; names the constraint that says so.
    #[error("there is such a row already ({constraint})")]
    Conflict {
        /// The name of the violated constraint or unique index.
        constraint: String,
    },
    /// A stored row that cannot be: the rules of the domain exclude it.
    #[error("impossible row {row} ({reason})")]
    Corrupt {
        /// Which row it is.
        row: Row,
        /// What is wrong with it.
        reason: String,
    },
    /// Anything else; a defect.
    #[error("the store failed unexpectedly")]
    Unexpected(#[source] Box<dyn Error + Send + Sync>),
}

/// Names a row in an error: its table and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The table.
    pub table: &'static str,
    /// The key's value, as text.
    pub id: String,
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}[{}]", self.table, self.id)
    }
}

impl StoreError {
    /// An impossible row.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "ids and reasons are made for the error"
    )]
    pub fn corrupt(table: &'static str, id: impl ToString, reason: impl ToString) -> Self {
        Self::Corrupt {
            row: Row {
                table,
                id: id.to_string(),
            },
            reason: reason.to_string(),
        }
    }

    /// A defect with its cause.
    pub fn unexpected(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unexpected(cause.into())
    }

    /// The name of the violated constraint, where the failure is a conflict.
    pub fn conflict(&self) -> Option<&str> {
        match self {
            Self::Conflict { constraint } => Some(constraint),
            _ => None,
        }
    }
}

/// How a COMMIT fails.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Surely nothing was changed.
    #[error("the transaction was rolled back")]
    RolledBack(#[source] StoreError),
    /// The answer was lost: the effect may stand or not, and only the rows can tell. Never repeat blindly.
    #[error("the answer to COMMIT was lost")]
    Unknown(#[source] StoreError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_impossible_row_is_named_by_its_table_and_key() {
        let error = StoreError::corrupt("orders", 7, "no items");
        assert_eq!(error.to_string(), "impossible row orders[7] (no items)");
        assert_eq!(error.conflict(), None);
    }

    #[test]
    fn only_a_conflict_names_a_constraint() {
        let conflict = StoreError::Conflict {
            constraint: "orders_pkey".to_owned(),
        };
        assert_eq!(conflict.conflict(), Some("orders_pkey"));
        assert_eq!(StoreError::unexpected("no idea").conflict(), None);
        assert_eq!(StoreError::Retryable("deadlock".into()).conflict(), None);
    }
}
