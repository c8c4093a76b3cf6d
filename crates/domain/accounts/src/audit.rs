//! The audit log: who did what, when and from where, in the panel and on the marketplace's side.

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use kernel::SellerId;
use serde_json::Value;
use uuid::Uuid;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// A seller, in the panel.
    Seller(SellerId),
    /// An operator, identified by the token with this id.
    Operator(Uuid),
    /// A user of the command line on the machine itself.
    CommandLine,
}

impl Actor {
    /// The stored name.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Seller(_) => "seller",
            Self::Operator(_) => "operator",
            Self::CommandLine => "command_line",
        }
    }

    /// The actor's id, if it has one.
    pub fn id(self) -> Option<Uuid> {
        match self {
            Self::Seller(seller) => Some(seller.uuid()),
            Self::Operator(token) => Some(token),
            Self::CommandLine => None,
        }
    }

    /// Parses a stored actor.
    pub fn read(kind: &str, id: Option<Uuid>) -> Option<Self> {
        match (kind, id) {
            ("seller", Some(seller)) => Some(Self::Seller(seller.into())),
            ("operator", Some(token)) => Some(Self::Operator(token)),
            ("command_line", None) => Some(Self::CommandLine),
            _ => None,
        }
    }
}

kernel::words! {
    /// An action, by its name in rows and lists.
    pub enum Action {
        SignedIn = "session.opened",
        /// A wrong password was given for an existing account.
        SignInFailed = "session.refused",
        SignedOut = "session.closed",
        SignedOutEverywhere = "sessions.closed",
        /// A password was set or changed.
        PasswordChanged = "password.changed",
        /// A password reset link was requested.
        ResetRequested = "password.reset_asked",
        /// A seller was sent an invitation to set the first password.
        InvitationSent = "invitation.sent",
        SignInLinkCreated = "sign_in_link.made",
        SellerRegistered = "seller.registered",
        SellerClosed = "seller.closed",
        ApplicationRegistered = "application.registered",
        /// An application's description, scopes, redirect URIs or limit were changed.
        ApplicationChanged = "application.changed",
        SecretRotated = "application.secret_rotated",
        ApplicationDeleted = "application.deleted",
        ApplicationAccepted = "application.accepted",
        ApplicationSuspended = "application.suspended",
        ApplicationReinstated = "application.reinstated",
        PersonalTokenCreated = "personal_token.made",
        PersonalTokenRevoked = "personal_token.revoked",
        ConsentGiven = "consent.given",
        ConsentRefused = "consent.refused",
        Disconnected = "connection.ended",
        /// A token was revoked by an operator; the subject is its family.
        TokenRevoked = "token.revoked",
        /// All tokens of a seller or of an application were revoked by an operator.
        TokensRevoked = "tokens.revoked",
        /// An event was redelivered, by a seller or an operator.
        Redelivered = "delivery.repeated",
        /// A seller deleted an application's subscription; the subject is its id.
        SubscriptionDeleted = "subscription.deleted",
        /// A seller had a test event sent to a subscription.
        TestEventSent = "test_event.sent",
        /// A mail that was given up was queued again by an operator; the subject is its order.
        MailRequeued = "mail.repeated",
        BuyerErased = "buyer.erased",
        OperatorTokenCreated = "operator_token.made",
        OperatorTokenRevoked = "operator_token.revoked",
        /// An operator began resealing stored values; the subject is the new key's id.
        ResealingBegun = "keys.resealing_begun",
        /// An operator adopted a database whose rows were written in another one; the subject is `restored`
        /// or `upgraded`.
        DatabaseAdopted = "database.adopted",
    }
}

/// An entry of the log. It identifies things by id, and contains neither secrets nor personal data of buyers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its id; rises with time.
    pub id: Uuid,
    /// The time, by the database's clock.
    pub at: DateTime<Utc>,
    pub actor: Actor,
    /// The client address; None for the command line.
    pub address: Option<IpAddr>,
    pub action: Action,
    /// The id of the affected application, token, order or account.
    pub subject: String,
    /// For [`Action::ApplicationChanged`]: an object of `{from, to}` by field.
    pub changes: Option<Value>,
    /// The operating system's user of a command line.
    pub os_user: Option<String>,
}

/// A filter of entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditFilter {
    /// Only entries by or about this id.
    pub about: Option<String>,
    /// Only entries from this instant on.
    pub since: Option<DateTime<Utc>>,
    /// Only entries before this instant.
    pub until: Option<DateTime<Utc>>,
    /// Only entries older than the entry with this id.
    pub before: Option<Uuid>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actors_are_read_back() {
        for actor in [
            Actor::Seller(Uuid::nil().into()),
            Actor::Operator(Uuid::nil()),
            Actor::CommandLine,
        ] {
            assert_eq!(Actor::read(actor.kind(), actor.id()), Some(actor));
        }
        assert_eq!(Actor::read("seller", None), None);
    }
}
