//! Who acts, from where, and the note of what was done.

use std::net::IpAddr;

use accounts::{AccountStore, Action, Actor};
use kernel::{SellerId, StoreError};
use uuid::Uuid;

/// Who acts, and from where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActingSeller {
    /// The account.
    pub seller: SellerId,
    /// The address that the request came from.
    pub address: IpAddr,
}

impl ActingSeller {
    /// Notes a deed in its own transaction.
    pub async fn note(
        self,
        accounts: &dyn AccountStore,
        action: Action,
        subject: impl std::fmt::Display + Send,
    ) -> Result<(), StoreError> {
        let (actor, subject) = (Actor::Seller(self.seller), subject.to_string());
        accounts.note(actor, Some(self.address), action, &subject).await
    }
}

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
