//! Who acts on the marketplace's side, and the note of what was done.

use std::net::IpAddr;

use accounts::{AccountStore, Action, Actor};
use kernel::StoreError;
use uuid::Uuid;

/// Who acts, and from where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActingOperator {
    /// Whoever holds the token with this id, from this address.
    Token(Uuid, IpAddr),
    /// Somebody at the machine itself.
    CommandLine,
}

impl ActingOperator {
    /// Notes a deed in its own transaction.
    pub async fn note(
        self,
        accounts: &dyn AccountStore,
        action: Action,
        subject: impl std::fmt::Display + Send,
    ) -> Result<(), StoreError> {
        let (actor, address) = match self {
            Self::Token(token, address) => (Actor::Operator(token), Some(address)),
            Self::CommandLine => (Actor::CommandLine, None),
        };
        accounts.note(actor, address, action, &subject.to_string()).await
    }
}
