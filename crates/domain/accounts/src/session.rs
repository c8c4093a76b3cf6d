//! Sessions of the panel, and the links by which somebody gets in without a password.

use chrono::{DateTime, TimeDelta, Utc};
use kernel::SellerId;
use oauth::{Secret, SecretHash, SecretKind};

/// A session ends after this long without a request (D91).
pub const SESSION_IDLE: TimeDelta = TimeDelta::hours(8);
/// A session ends after this long in all (D91).
pub const SESSION_LIFETIME: TimeDelta = TimeDelta::days(7);

/// A session as it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    /// The hash of its cookie.
    pub hash: SecretHash,
    /// Who is signed in.
    pub seller: SellerId,
    /// When the seller signed in.
    pub created_at: DateTime<Utc>,
    /// When it was last used, to the minute.
    pub seen_at: DateTime<Utc>,
}

impl Session {
    /// Whether it still counts.
    pub fn is_alive(&self, now: DateTime<Utc>) -> bool {
        now < self.seen_at + SESSION_IDLE && now < self.created_at + SESSION_LIFETIME
    }
}

/// What a one-time link is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LinkKind {
    /// A seller registered without a password sets the first one.
    Invitation,
    /// A seller who has forgotten the password sets a new one.
    PasswordReset,
    /// A marketplace that signs its sellers in elsewhere sends one into the panel.
    SignIn,
}

impl LinkKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Invitation, Self::PasswordReset, Self::SignIn];

    /// The word in rows and paths.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Invitation => "invitation",
            Self::PasswordReset => "password-reset",
            Self::SignIn => "sign-in",
        }
    }

    /// The kind with the given word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// How long a link of this kind can be used.
    pub const fn lifetime(self) -> TimeDelta {
        match self {
            Self::Invitation => TimeDelta::days(7),
            Self::PasswordReset => TimeDelta::hours(1),
            Self::SignIn => TimeDelta::seconds(60),
        }
    }
}

/// Marks the secret of a one-time link.
#[derive(Debug)]
pub struct LinkSecretKind;
impl SecretKind for LinkSecretKind {
    const PREFIX: &'static str = "ps_ln_";
}

/// What a one-time link carries. The store has its hash alone.
pub type LinkSecret = Secret<LinkSecretKind>;

/// A one-time link as it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The hash of what it carries.
    pub hash: SecretHash,
    /// What it is for.
    pub kind: LinkKind,
    /// Whose it is.
    pub seller: SellerId,
    /// When it can no longer be used.
    pub expires_at: DateTime<Utc>,
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_session_ends_when_idle_and_in_any_case() {
        let start = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        let session = |seen_at| Session {
            hash: SecretHash::of("x"),
            seller: Uuid::nil().into(),
            created_at: start,
            seen_at,
        };
        let second = TimeDelta::seconds(1);
        assert!(session(start).is_alive(start + SESSION_IDLE - second));
        assert!(!session(start).is_alive(start + SESSION_IDLE));
        let busy = session(start + SESSION_LIFETIME - second);
        assert!(busy.is_alive(start + SESSION_LIFETIME - second));
        assert!(!busy.is_alive(start + SESSION_LIFETIME));
    }

    #[test]
    fn kinds_of_links_go_by_the_words_in_rows_and_paths() {
        let words = ["invitation", "password-reset", "sign-in"];
        assert_eq!(LinkKind::ALL.map(LinkKind::as_str), words);
        assert_eq!(words.map(LinkKind::parse), LinkKind::ALL.map(Some));
        assert_eq!(LinkKind::parse("sign_in"), None);
    }
}
