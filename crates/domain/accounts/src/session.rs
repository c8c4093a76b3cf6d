//! Panel sessions, and the one-time links that give access without a password.

use chrono::{DateTime, TimeDelta, Utc};
use kernel::SellerId;
use oauth::{Secret, SecretHash, SecretKind};

/// A session ends after this idle time (D91).
pub const SESSION_IDLE: TimeDelta = TimeDelta::hours(8);
/// A session's maximum lifetime (D91).
pub const SESSION_LIFETIME: TimeDelta = TimeDelta::days(7);

/// A stored session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    pub hash: SecretHash,
    pub seller: SellerId,
    pub created_at: DateTime<Utc>,
    /// The time of its last use, accurate to a minute.
    pub seen_at: DateTime<Utc>,
}

kernel::words! {
    /// The purpose of a one-time link.
    pub enum LinkKind {
        /// A seller registered without a password sets the first one.
        Invitation = "invitation",
        /// A seller who has forgotten the password sets a new one.
        PasswordReset = "password-reset",
        /// The marketplace has authenticated the seller and redirects them to the panel, signed in.
        SignIn = "sign-in",
    }
}

impl LinkKind {
    /// The lifetime of a link of this kind.
    pub const fn lifetime(self) -> TimeDelta {
        match self {
            Self::Invitation => TimeDelta::days(7),
            Self::PasswordReset => TimeDelta::hours(1),
            Self::SignIn => TimeDelta::seconds(60),
        }
    }
}

/// The secret's kind: one-time links.
#[derive(Debug)]
pub struct LinkSecretKind;
impl SecretKind for LinkSecretKind {
    const PREFIX: &'static str = "ps_ln_";
}

/// The secret in a one-time link. The store has only its hash.
pub type LinkSecret = Secret<LinkSecretKind>;

/// A stored one-time link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    pub hash: SecretHash,
    pub kind: LinkKind,
    pub seller: SellerId,
    /// When it expires.
    pub expires_at: DateTime<Utc>,
}
