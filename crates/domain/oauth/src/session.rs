//! Sessions of the panel, and the links by which somebody gets in without a password.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta, Utc};
use kernel::SellerId;
use ring::hmac;
use subtle::ConstantTimeEq;

use crate::{Secret, SecretHash, SecretKind};

/// A session ends after this long without a request (D91).
pub const SESSION_IDLE: TimeDelta = TimeDelta::hours(8);
/// A session ends after this long in all (D91).
pub const SESSION_LIFETIME: TimeDelta = TimeDelta::days(7);

#[derive(Debug)]
/// Marks the secret of a browser: of a session, or of one that is yet to sign in.
pub struct BrowserKind;
impl SecretKind for BrowserKind {
    const PREFIX: &'static str = "ps_se_";
}

/// What a browser's cookie holds. The store has its hash alone.
pub type BrowserSecret = Secret<BrowserKind>;

impl BrowserSecret {
    /// Takes what a cookie holds; nothing where it cannot be one of ours.
    pub fn presented(text: &str) -> Option<Self> {
        let random = URL_SAFE_NO_PAD
            .decode(text.strip_prefix(BrowserKind::PREFIX)?)
            .ok()?;
        Some(Self::from_random(
            random.first_chunk::<32>().filter(|_| random.len() == 32)?,
        ))
    }

    /// The CSRF token of this browser's forms: it shows that who sends a form has read the page, which only this browser
    /// can. It tells nothing of the secret.
    pub fn csrf_token(&self) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.reveal().as_bytes());
        URL_SAFE_NO_PAD.encode(hmac::sign(&key, b"panel form"))
    }

    /// True when a form carries this browser's CSRF token.
    pub fn has_sent(&self, csrf_token: &str) -> bool {
        self.csrf_token().as_bytes().ct_eq(csrf_token.as_bytes()).into()
    }
}

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
    fn a_csrf_token_belongs_to_its_browser() {
        let (one, other) = (
            BrowserSecret::from_random(&[1; 32]),
            BrowserSecret::from_random(&[2; 32]),
        );
        assert!(one.has_sent(&one.csrf_token()));
        assert!(!one.has_sent(&other.csrf_token()) && !one.has_sent(""));
        let again = BrowserSecret::presented(one.reveal()).unwrap();
        assert_eq!(again.hash(), one.hash());
        assert!(BrowserSecret::presented("ps_se_AAAA").is_none());
        assert!(BrowserSecret::presented(ClientLike::TEXT).is_none());
    }

    #[test]
    fn kinds_of_links_go_by_the_words_in_rows_and_paths() {
        let words = ["invitation", "password-reset", "sign-in"];
        assert_eq!(LinkKind::ALL.map(LinkKind::as_str), words);
        assert_eq!(words.map(LinkKind::parse), LinkKind::ALL.map(Some));
        assert_eq!(LinkKind::parse("sign_in"), None);
    }

    struct ClientLike;
    impl ClientLike {
        const TEXT: &'static str = "pss_AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE";
    }
}
