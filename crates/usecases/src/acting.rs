//! Who acts, from which address, and the entries of the audit log.

use std::{fmt::Display, net::IpAddr};

use accounts::{AccountStore, Action, Actor};
use kernel::{SellerId, StoreError};
use oauth::{Application, ScopeSet};
use serde_json::{Value, json};
use uuid::Uuid;

/// Who acts, a seller or an operator.
pub trait Acting: Copy + Send {
    /// The actor, and the address of the request if there is one.
    fn actor(self) -> (Actor, Option<IpAddr>);

    /// Adds an audit log entry in the transaction of the action.
    fn log(
        self,
        accounts: &dyn AccountStore,
        action: Action,
        subject: impl Display,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        let ((actor, address), subject) = (self.actor(), subject.to_string());
        async move { accounts.log_action(actor, address, action, &subject, None).await }
    }
}

/// The acting seller and the address of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActingSeller {
    pub seller: SellerId,
    pub address: IpAddr,
}

impl Acting for ActingSeller {
    fn actor(self) -> (Actor, Option<IpAddr>) {
        (Actor::Seller(self.seller), Some(self.address))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActingOperator {
    /// The holder of the token with this id, from this address.
    Token(Uuid, IpAddr),
    /// A user of the command line on the machine itself.
    CommandLine,
}

impl Acting for ActingOperator {
    fn actor(self) -> (Actor, Option<IpAddr>) {
        match self {
            Self::Token(token, address) => (Actor::Operator(token), Some(address)),
            Self::CommandLine => (Actor::CommandLine, None),
        }
    }
}

/// Adds an audit log entry that has the changed fields of an application.
pub(crate) async fn log_change(
    accounts: &dyn AccountStore,
    (actor, address): (Actor, Option<IpAddr>),
    before: &Application,
    after: &Application,
) -> Result<(), StoreError> {
    let (action, subject) = (Action::ApplicationChanged, after.client_id.to_string());
    let changes = Some(changes(before, after));
    accounts
        .log_action(actor, address, action, &subject, changes)
        .await
}

/// Maximum length of a text in the audit log, in characters.
const MAX_LOGGED: usize = 300;

/// `{from, to}` of each field that differs; of `rate_limit`, null is the service's default.
fn changes(before: &Application, after: &Application) -> Value {
    let fields = |of: &Application| {
        [
            ("description", json!(of.description)),
            ("redirect_uris", json!(of.redirect_uris)),
            ("scopes", json!(of.scopes.names())),
            ("granted_scopes", json!(of.ceiling().map(ScopeSet::names))),
            ("requested_scopes", json!(of.requested.names())),
            ("rate_limit", json!(of.rate_limit)),
        ]
    };
    let both = fields(before).into_iter().zip(fields(after));
    let changed = both.filter(|(from, to)| from != to);
    changed
        .map(|((field, from), (_, to))| (field, json!({ "from": cut(from), "to": cut(to) })))
        .collect()
}

fn cut(value: Value) -> Value {
    match value {
        Value::String(text) => text.chars().take(MAX_LOGGED).collect::<String>().into(),
        Value::Array(items) => items.into_iter().map(cut).collect(),
        other => other,
    }
}
