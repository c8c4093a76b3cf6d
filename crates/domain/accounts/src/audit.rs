//! The audit log: who did what, when and from where, in the panel and on the marketplace's side.

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use kernel::SellerId;
use uuid::Uuid;

/// Who acted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// A seller, in the panel.
    Seller(SellerId),
    /// An operator, by the token with this id.
    Operator(Uuid),
    /// Somebody at the machine itself, by the command line.
    CommandLine,
}

impl Actor {
    /// The word in the rows.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Seller(_) => "seller",
            Self::Operator(_) => "operator",
            Self::CommandLine => "command_line",
        }
    }

    /// The actor's id, where there is one.
    pub fn id(self) -> Option<Uuid> {
        match self {
            Self::Seller(seller) => Some(seller.uuid()),
            Self::Operator(token) => Some(token),
            Self::CommandLine => None,
        }
    }

    /// The actor with this word and id.
    pub fn read(kind: &str, id: Option<Uuid>) -> Option<Self> {
        match (kind, id) {
            ("seller", Some(seller)) => Some(Self::Seller(seller.into())),
            ("operator", Some(token)) => Some(Self::Operator(token)),
            ("command_line", None) => Some(Self::CommandLine),
            _ => None,
        }
    }
}

macro_rules! actions {
    ($($(#[$doc:meta])* $variant:ident = $word:literal,)*) => {
        /// What was done.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Action {
            $($(#[$doc])* $variant,)*
        }

        impl Action {
            /// Every action.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The word in rows and lists.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
    };
}

actions! {
    /// A seller signed in.
    SignedIn = "session.opened",
    /// Somebody gave a wrong password for an account that exists.
    SignInFailed = "session.refused",
    /// A seller signed out.
    SignedOut = "session.closed",
    /// A seller signed out everywhere.
    SignedOutEverywhere = "sessions.closed",
    /// A password was set or changed.
    PasswordChanged = "password.changed",
    /// A link for a new password was asked for.
    ResetAsked = "password.reset_asked",
    /// A seller was sent a link to set the first password by.
    InvitationSent = "invitation.sent",
    /// A link that signs a seller in was made.
    SignInLinkMade = "sign_in_link.made",
    /// An account was made.
    SellerRegistered = "seller.registered",
    /// An account was closed.
    SellerClosed = "seller.closed",
    /// An application was registered.
    ApplicationRegistered = "application.registered",
    /// An application's description, scopes, redirect addresses or limit were changed.
    ApplicationChanged = "application.changed",
    /// An application's secret was replaced.
    SecretRotated = "application.secret_rotated",
    /// An application was deleted.
    ApplicationDeleted = "application.deleted",
    /// An application was accepted.
    ApplicationAccepted = "application.accepted",
    /// An application was suspended.
    ApplicationSuspended = "application.suspended",
    /// An application was reinstated.
    ApplicationReinstated = "application.reinstated",
    /// A personal token was made.
    PersonalTokenMade = "personal_token.made",
    /// A personal token was revoked.
    PersonalTokenRevoked = "personal_token.revoked",
    /// A seller consented.
    ConsentGiven = "consent.given",
    /// A seller refused consent.
    ConsentRefused = "consent.refused",
    /// A seller disconnected an application.
    Disconnected = "connection.ended",
    /// A token was revoked by an operator; the subject is its family.
    TokenRevoked = "token.revoked",
    /// All tokens of a seller or of an application were revoked by an operator.
    TokensRevoked = "tokens.revoked",
    /// An event was delivered again, for a seller or by an operator.
    Redelivered = "delivery.repeated",
    /// A seller had a sample sent to a subscription.
    TestEventSent = "test_event.sent",
    /// A buyer's data was erased.
    BuyerErased = "buyer.erased",
    /// An operator token was made.
    OperatorTokenMade = "operator_token.made",
    /// An operator token was revoked.
    OperatorTokenRevoked = "operator_token.revoked",
    /// An operator began to seal anew what is stored; the subject is the id of the key under which.
    ResealingBegun = "keys.resealing_begun",
}

impl Action {
    /// The action with the given word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|action| action.as_str() == word)
    }
}

/// An entry of the log. It names things by their ids, and holds neither secrets nor anybody's personal data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its id; rises with time.
    pub id: Uuid,
    /// When, by the database's clock.
    pub at: DateTime<Utc>,
    /// Who.
    pub actor: Actor,
    /// From where; none for the command line.
    pub address: Option<IpAddr>,
    /// What.
    pub action: Action,
    /// To what: the id of an application, a token, an order or an account.
    pub subject: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back_and_are_told_apart() {
        for action in Action::ALL {
            assert_eq!(Action::parse(action.as_str()), Some(*action));
        }
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
