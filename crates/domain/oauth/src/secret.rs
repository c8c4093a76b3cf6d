//! Secrets and tokens: their format, and their hash, which is all that is stored.

use std::{fmt, marker::PhantomData};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use kernel::{Invalid, Redacted};
use ring::hmac;
use subtle::ConstantTimeEq;
use uuid::Uuid;

kernel::uuid_id! {
    /// The id of a token family: of one consent, one `client_credentials` call, or one personal token.
    FamilyId
}

/// SHA-256 of a secret's text, prefix included. Compared in constant time.
#[derive(Debug, Clone, Copy)]
pub struct SecretHash(Redacted<[u8; 32]>);

impl SecretHash {
    /// The hash of a presented secret.
    pub fn of(presented: &str) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, presented.as_bytes());
        let bytes = digest.as_ref().first_chunk().copied();
        Self(Redacted(bytes.unwrap_or_default()))
    }

    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0.0
    }
}

impl TryFrom<&[u8]> for SecretHash {
    type Error = Invalid;

    fn try_from(stored: &[u8]) -> Result<Self, Invalid> {
        match stored.try_into() {
            Ok(bytes) => Ok(Self(Redacted(bytes))),
            Err(_) => Err(Invalid::new("must have 32 bytes")),
        }
    }
}

impl PartialEq for SecretHash {
    fn eq(&self, other: &Self) -> bool {
        self.bytes().ct_eq(other.bytes()).into()
    }
}

impl Eq for SecretHash {}

/// A new secret in plain text, for its owner. Its `Debug` output is redacted.
#[derive(Clone)]
pub struct Secret<K> {
    text: String,
    kind: PhantomData<K>,
}

/// A kind of secret without a family, with its prefix.
pub trait SecretKind {
    /// The prefix of the text (contract: Identifier prefixes).
    const PREFIX: &'static str;
}

/// `pss_`: authenticates an application.
#[derive(Debug)]
pub struct ClientSecretKind;
impl SecretKind for ClientSecretKind {
    const PREFIX: &'static str = "pss_";
}

/// `ps_op_`: authenticates an operator.
#[derive(Debug)]
pub struct OperatorTokenKind;
impl SecretKind for OperatorTokenKind {
    const PREFIX: &'static str = "ps_op_";
}

pub type ClientSecret = Secret<ClientSecretKind>;
pub type OperatorToken = Secret<OperatorTokenKind>;

impl<K: SecretKind> Secret<K> {
    /// Encodes 32 random bytes as a secret of this kind.
    pub fn from_random(bytes: &[u8; 32]) -> Self {
        Self {
            text: format!("{}{}", K::PREFIX, URL_SAFE_NO_PAD.encode(bytes)),
            kind: PhantomData,
        }
    }

    /// Parses a presented secret; None if it has the wrong format.
    pub fn presented(text: &str) -> Option<Self> {
        let random = URL_SAFE_NO_PAD.decode(text.strip_prefix(K::PREFIX)?).ok()?;
        Some(Self::from_random(
            random.first_chunk::<32>().filter(|_| random.len() == 32)?,
        ))
    }
}

impl<K> Secret<K> {
    /// The plain secret, to be shown once.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// The hash to store.
    pub fn hash(&self) -> SecretHash {
        SecretHash::of(&self.text)
    }
}

impl<K> PartialEq for Secret<K> {
    fn eq(&self, other: &Self) -> bool {
        self.hash() == other.hash()
    }
}

impl<K> Eq for Secret<K> {}

impl<K> fmt::Debug for Secret<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The secret of a browser's session, signed in or not.
#[derive(Debug, Clone)]
pub struct BrowserKind;

impl SecretKind for BrowserKind {
    const PREFIX: &'static str = "ps_se_";
}

/// The secret in a browser's cookie. The store has only its hash.
pub type BrowserSecret = Secret<BrowserKind>;

impl BrowserSecret {
    /// The CSRF token of this browser's forms. It proves that the sender has read the page, which only this
    /// browser can. It reveals nothing of the secret.
    pub fn csrf_token(&self) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.reveal().as_bytes());
        URL_SAFE_NO_PAD.encode(hmac::sign(&key, b"panel form"))
    }

    /// True if a form carries this browser's CSRF token.
    pub fn is_csrf_token(&self, csrf_token: &str) -> bool {
        self.csrf_token().as_bytes().ct_eq(csrf_token.as_bytes()).into()
    }
}

kernel::words! {
    /// A kind of bearer token, by its name in `/v1/me`.
    pub enum TokenKind {
        /// `ps_at_`, issued by the token endpoint.
        Access = "access",
        /// `ps_pt_`, issued in the panel for the seller's own use.
        Personal = "personal",
    }
}

/// A credential that a client exchanges for a token pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialKind {
    /// Issued on the seller's consent; single use.
    AuthorizationCode,
    /// Issued with an access token; single use.
    RefreshToken,
}

/// A kind of secret that names its family.
pub trait FamilySecretKind: Copy {
    /// The prefix of the text (contract: Identifier prefixes).
    fn prefix(self) -> &'static str;
}

impl FamilySecretKind for TokenKind {
    fn prefix(self) -> &'static str {
        match self {
            Self::Access => "ps_at_",
            Self::Personal => "ps_pt_",
        }
    }
}

impl FamilySecretKind for CredentialKind {
    fn prefix(self) -> &'static str {
        match self {
            Self::AuthorizationCode => "ps_ac_",
            Self::RefreshToken => "ps_rt_",
        }
    }
}

/// A prefix and 48 bytes in base64url, 16 of the family's id and 32 random ones. It is opaque to clients;
/// here it identifies the rows to look up. Its `Debug` output is redacted.
pub struct FamilySecret<K> {
    kind: K,
    family: FamilyId,
    text: String,
}

/// A token that authorizes requests.
pub type BearerToken = FamilySecret<TokenKind>;
/// An authorization code or refresh token.
pub type Credential = FamilySecret<CredentialKind>;

impl<K: FamilySecretKind> FamilySecret<K> {
    /// A new secret of a family from 32 random bytes.
    pub fn from_random(kind: K, family: FamilyId, random: &[u8; 32]) -> Self {
        let mut bytes = family.uuid().as_bytes().to_vec();
        bytes.extend_from_slice(random);
        let text = format!("{}{}", kind.prefix(), URL_SAFE_NO_PAD.encode(bytes));
        Self { kind, family, text }
    }

    /// Parses a presented secret of this kind; None if it has the wrong format.
    pub fn parse(kind: K, text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text.strip_prefix(kind.prefix())?).ok()?;
        let (family, random) = bytes.split_first_chunk::<16>()?;
        (random.len() == 32).then(|| Self {
            kind,
            family: Uuid::from_bytes(*family).into(),
            text: text.to_owned(),
        })
    }

    /// The plain text, for whoever it is issued to.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// The kind that its prefix claims.
    pub const fn kind(&self) -> K {
        self.kind
    }

    /// The key of its row.
    pub fn key(&self) -> TokenKey {
        TokenKey {
            family: self.family,
            hash: SecretHash::of(&self.text),
        }
    }
}

impl BearerToken {
    /// Parses a presented token of either kind; None if it has the wrong format.
    pub fn presented(text: &str) -> Option<Self> {
        TokenKind::ALL
            .into_iter()
            .find_map(|kind| Self::parse(kind, text))
    }
}

impl<K: FamilySecretKind> fmt::Debug for FamilySecret<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FamilySecret({}…)", self.kind.prefix())
    }
}

/// The key of a token's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenKey {
    /// The family named in the token.
    pub family: FamilyId,
    /// The hash of the whole token text.
    pub hash: SecretHash,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_token_contains_its_family_and_is_parsed_back(family: u128, random: [u8; 32]) {
            let family = FamilyId::from(Uuid::from_u128(family));
            let token = BearerToken::from_random(TokenKind::Access, family, &random);
            let read = BearerToken::presented(token.reveal()).unwrap();
            prop_assert_eq!(read.key(), token.key());
            prop_assert_eq!(read.key().family, family);
            prop_assert_eq!(token.reveal().len(), "ps_at_".len() + 64);
        }

        #[test]
        fn a_credential_is_parsed_as_its_own_kind_alone(family: u128, random: [u8; 32]) {
            use CredentialKind::{AuthorizationCode, RefreshToken};
            let family = FamilyId::from(Uuid::from_u128(family));
            let code = Credential::from_random(AuthorizationCode, family, &random);
            prop_assert_eq!(Credential::parse(AuthorizationCode, code.reveal()).unwrap().key(), code.key());
            prop_assert!(Credential::parse(RefreshToken, code.reveal()).is_none());
            prop_assert!(BearerToken::presented(code.reveal()).is_none());
        }
    }

    #[test]
    fn a_csrf_token_belongs_to_its_browser() {
        let [one, other] = [[1; 32], [2; 32]].map(|random| BrowserSecret::from_random(&random));
        assert!(one.is_csrf_token(&one.csrf_token()));
        assert!(!one.is_csrf_token(&other.csrf_token()) && !one.is_csrf_token(""));
        let again = BrowserSecret::presented(one.reveal()).unwrap();
        assert_eq!(again.hash(), one.hash());
        assert!(BrowserSecret::presented("ps_se_AAAA").is_none());
        let another_kind = ClientSecret::from_random(&[1; 32]);
        assert!(BrowserSecret::presented(another_kind.reveal()).is_none());
    }

    #[test]
    fn a_stored_hash_is_parsed_at_its_full_length_alone() {
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
        let shown = format!("{secret:?} {:?}", secret.hash());
        assert_eq!(shown, "Secret(…) SecretHash(…)");
        let token = BearerToken::from_random(TokenKind::Personal, Uuid::nil().into(), &[7; 32]);
        assert_eq!(format!("{token:?}"), "FamilySecret(ps_pt_…)");
    }
}
