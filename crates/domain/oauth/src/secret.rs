//! Secrets and tokens: how they are written, and the hash that is all we keep of them.

use std::{fmt, marker::PhantomData};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use kernel::Invalid;
use ring::hmac;
use subtle::ConstantTimeEq;
use uuid::Uuid;

kernel::uuid_id! {
    /// A family: everything that one consent, or one call for client credentials, has led to.
    FamilyId
}

/// SHA-256 of a secret as it is written, prefix included. Compared in constant time.
#[derive(Clone, Copy)]
pub struct SecretHash([u8; 32]);

impl SecretHash {
    /// The hash of a presented secret.
    pub fn of(presented: &str) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, presented.as_bytes());
        let mut hash = [0; 32];
        hash.iter_mut()
            .zip(digest.as_ref())
            .for_each(|(to, from)| *to = *from);
        Self(hash)
    }

    /// The 32 bytes that are stored.
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl TryFrom<&[u8]> for SecretHash {
    type Error = Invalid;

    fn try_from(stored: &[u8]) -> Result<Self, Invalid> {
        stored
            .try_into()
            .map(Self)
            .map_err(|_| Invalid::new("must have 32 bytes"))
    }
}

impl PartialEq for SecretHash {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for SecretHash {}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash(…)")
    }
}

/// A fresh secret in clear, on its way to the one who may know it. It cannot be printed by accident.
pub struct Secret<K> {
    text: String,
    kind: PhantomData<K>,
}

/// What a secret without a family is for, with its prefix.
pub trait SecretKind {
    /// What the secret begins with (contract: Identifier prefixes).
    const PREFIX: &'static str;
}

/// `pss_`: authenticates an application.
#[derive(Debug)]
pub struct ClientSecretKind;
impl SecretKind for ClientSecretKind {
    const PREFIX: &'static str = "pss_";
}

/// `ps_op_`: opens the back office.
#[derive(Debug)]
pub struct OperatorTokenKind;
impl SecretKind for OperatorTokenKind {
    const PREFIX: &'static str = "ps_op_";
}

/// An application's secret.
pub type ClientSecret = Secret<ClientSecretKind>;
/// An operator's token.
pub type OperatorToken = Secret<OperatorTokenKind>;

impl<K: SecretKind> Secret<K> {
    /// Writes 32 random bytes as a secret of this kind.
    pub fn from_random(bytes: &[u8; 32]) -> Self {
        Self {
            text: format!("{}{}", K::PREFIX, URL_SAFE_NO_PAD.encode(bytes)),
            kind: PhantomData,
        }
    }
}

impl<K> Secret<K> {
    /// The secret in clear, to be shown once.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// What is stored of it.
    pub fn hash(&self) -> SecretHash {
        SecretHash::of(&self.text)
    }
}

impl<K> fmt::Debug for Secret<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Marks the secret of a browser: of a session, or of one that is yet to sign in.
#[derive(Debug)]
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

/// The kinds of bearer token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// `ps_at_`, issued by the token endpoint.
    Access,
    /// `ps_pt_`, issued in the panel for the seller's own use.
    Personal,
}

impl TokenKind {
    /// The word that `/v1/me` uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Access => "access",
            Self::Personal => "personal",
        }
    }

    /// What a token of the kind begins with.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Access => "ps_at_",
            Self::Personal => "ps_pt_",
        }
    }
}

/// A bearer token: a prefix and 48 bytes in base64url, 16 of its family's id and 32 random ones. To a client it is opaque;
/// to us it names the rows to look at.
pub struct BearerToken {
    kind: TokenKind,
    family: FamilyId,
    text: String,
}

impl BearerToken {
    /// A new token of a family, from 32 random bytes.
    pub fn from_random(kind: TokenKind, family: FamilyId, random: &[u8; 32]) -> Self {
        let text = written(kind.prefix(), family, random);
        Self { kind, family, text }
    }

    /// Reads a presented token; nothing when it cannot be one of ours.
    pub fn parse(text: &str) -> Option<Self> {
        let kind = [TokenKind::Access, TokenKind::Personal]
            .into_iter()
            .find(|k| text.starts_with(k.prefix()))?;
        let family = family_in(kind.prefix(), text)?;
        let text = text.to_owned();
        Some(Self { kind, family, text })
    }

    /// The token in clear.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// Which kind of token it claims to be.
    pub const fn kind(&self) -> TokenKind {
        self.kind
    }

    /// The rows to look for.
    pub fn key(&self) -> TokenKey {
        TokenKey {
            family: self.family,
            hash: SecretHash::of(&self.text),
        }
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BearerToken({}…)", self.kind.prefix())
    }
}

/// The key of a token's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenKey {
    /// The family that the token names.
    pub family: FamilyId,
    /// The hash of the whole token.
    pub hash: SecretHash,
}

/// How everything that belongs to a family is written: prefix + base64url(16 bytes of the family's id ‖ 32 random bytes).
pub(crate) fn written(prefix: &str, family: FamilyId, random: &[u8; 32]) -> String {
    let mut bytes = family.uuid().as_bytes().to_vec();
    bytes.extend_from_slice(random);
    format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bytes))
}

/// The family that a text of this prefix names; nothing where it is not written as [`written`] does.
pub(crate) fn family_in(prefix: &str, text: &str) -> Option<FamilyId> {
    let bytes = URL_SAFE_NO_PAD.decode(text.strip_prefix(prefix)?).ok()?;
    let (family, random) = bytes.split_first_chunk::<16>()?;
    (random.len() == 32).then(|| Uuid::from_bytes(*family).into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_token_names_its_family_and_reads_back(family: u128, random: [u8; 32]) {
            let family = FamilyId::from(Uuid::from_u128(family));
            let token = BearerToken::from_random(TokenKind::Access, family, &random);
            let read = BearerToken::parse(token.reveal()).unwrap();
            prop_assert_eq!(read.key(), token.key());
            prop_assert_eq!(read.key().family, family);
            prop_assert_eq!(token.reveal().len(), "ps_at_".len() + 64);
        }

        #[test]
        fn nothing_else_is_a_token_and_nothing_panics(text in ".{0,90}") {
            if let Some(token) = BearerToken::parse(&text) {
                prop_assert_eq!(token.reveal(), text);
            }
        }
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
        let another_kind = ClientSecret::from_random(&[1; 32]);
        assert!(BrowserSecret::presented(another_kind.reveal()).is_none());
    }

    #[test]
    fn a_token_says_which_kind_it_is() {
        for (kind, word) in [(TokenKind::Access, "access"), (TokenKind::Personal, "personal")] {
            let token = BearerToken::from_random(kind, Uuid::nil().into(), &[7; 32]);
            assert_eq!(BearerToken::parse(token.reveal()).unwrap().kind(), kind);
            assert_eq!(kind.as_str(), word);
        }
    }

    #[test]
    fn a_kept_hash_reads_back_at_its_full_length_alone() {
        let hash = SecretHash::of("secret");
        assert_eq!(SecretHash::try_from(hash.bytes().as_slice()).unwrap(), hash);
        for other in [&[][..], &[0; 31], &[0; 33]] {
            assert!(SecretHash::try_from(other).is_err());
        }
    }

    #[test]
    fn debug_shows_no_secret() {
        let secret = ClientSecret::from_random(&[7; 32]);
        assert!(secret.reveal().starts_with("pss_"));
        assert_eq!(
            format!("{secret:?} {:?}", secret.hash()),
            "Secret(…) SecretHash(…)"
        );
        let token = BearerToken::from_random(TokenKind::Personal, Uuid::nil().into(), &[7; 32]);
        assert_eq!(format!("{token:?}"), "BearerToken(ps_pt_…)");
    }
}
