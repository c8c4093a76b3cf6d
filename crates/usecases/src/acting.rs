//! Who acts, from which address, and the audit log entry for the action.

use std::net::IpAddr;

use accounts::{AccountStore, Action, Actor};
use kernel::{SellerId, StoreError};
use uuid::Uuid;

/// The acting seller and the address of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActingSeller {
    pub seller: SellerId,
    pub address: IpAddr,
}

impl ActingSeller {
    /// Adds an audit log entry in the transaction of the action.
    pub async fn log(
        self,
        accounts: &dyn AccountStore,
        action: Action,
        subject: impl std::fmt::Display + Send,
    ) -> Result<(), StoreError> {
        let (actor, subject) = (Actor::Seller(self.seller), subject.to_string());
        accounts
            .log_action(actor, Some(self.address), action, &subject)
            .await
    }
}

/// The acting operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActingOperator {
    /// The holder of the token with this id, from this address.
    Token(Uuid, IpAddr),
    /// A user of the command line on the machine itself.
    CommandLine,
}

impl ActingOperator {
    /// Adds an audit log entry in the transaction of the action.
    pub async fn log(
        self,
        accounts: &dyn AccountStore,
        action: Action,
        subject: impl std::fmt::Display + Send,
    ) -> Result<(), StoreError> {
        let (actor, address) = match self {
            Self::Token(token, address) => (Actor::Operator(token), Some(address)),
            Self::CommandLine => (Actor::CommandLine, None),
        };
        accounts
            .log_action(actor, address, action, &subject.to_string())
            .await
    }
}
