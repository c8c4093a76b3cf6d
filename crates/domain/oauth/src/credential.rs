//! Authorization codes and refresh tokens: their format. Like access tokens, they contain their family's id.

use std::fmt;

use crate::{FamilyId, SecretHash, TokenKey, secret};

/// A credential that a client exchanges for a token pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialKind {
    /// Issued on the seller's consent; single use.
    AuthorizationCode,
    /// Issued with an access token; single use.
    RefreshToken,
}

impl CredentialKind {
    /// The prefix of its text (contract: Identifier prefixes).
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::AuthorizationCode => "ps_ac_",
            Self::RefreshToken => "ps_rt_",
        }
    }
}

/// A plain code or refresh token: prefix + base64url(16 bytes of the family's id ‖ 32 random bytes). Never printed.
pub struct Credential {
    kind: CredentialKind,
    family: FamilyId,
    text: String,
}

impl Credential {
    /// A new credential from 32 random bytes.
    pub fn from_random(kind: CredentialKind, family: FamilyId, random: &[u8; 32]) -> Self {
        let text = secret::written(kind.prefix(), family, random);
        Self { kind, family, text }
    }

    /// Parses a presented credential of this kind; None if it has the wrong format.
    pub fn parse(kind: CredentialKind, text: &str) -> Option<Self> {
        let family = secret::family_in(kind.prefix(), text)?;
        let text = text.to_owned();
        Some(Self { kind, family, text })
    }

    /// The plain text, for the client that it is issued to.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// The key of its row.
    pub fn key(&self) -> TokenKey {
        TokenKey {
            family: self.family,
            hash: SecretHash::of(&self.text),
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credential({}…)", self.kind.prefix())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::{CredentialKind::*, *};

    proptest! {
        #[test]
        fn a_credential_is_parsed_as_its_own_kind_alone(family: u128, random: [u8; 32]) {
            let family = FamilyId::from(Uuid::from_u128(family));
            let code = Credential::from_random(AuthorizationCode, family, &random);
            prop_assert_eq!(Credential::parse(AuthorizationCode, code.reveal()).unwrap().key(), code.key());
            prop_assert!(Credential::parse(RefreshToken, code.reveal()).is_none());
            prop_assert!(crate::BearerToken::parse(code.reveal()).is_none());
        }
    }

    #[test]
    fn debug_shows_no_secret() {
        let token = Credential::from_random(RefreshToken, Uuid::nil().into(), &[7; 32]);
        assert_eq!(format!("{token:?}"), "Credential(ps_rt_…)");
    }
}
