//! Proof Key for Code Exchange with `S256` (RFC 7636), mandatory for every client.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use kernel::{Invalid, Redacted};
use ring::digest::{SHA256, digest};
use subtle::ConstantTimeEq;

/// The length of base64url(SHA-256(…)) without padding.
const CHALLENGE_LENGTH: usize = 43;

/// The code challenge of a consent request: base64url(SHA-256(verifier)), 43 characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeChallenge(String);

impl CodeChallenge {
    /// Validates a challenge's format.
    pub fn new(text: String) -> Result<Self, Invalid> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if text.len() != CHALLENGE_LENGTH || !text.bytes().all(allowed) {
            return Err(Invalid::new(
                "must be base64url(SHA-256(code_verifier)): 43 characters from [A-Za-z0-9_-]",
            ));
        }
        Ok(Self(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True if the challenge was made from this verifier. Compares in constant time.
    pub(crate) fn is_satisfied_by(&self, verifier: &CodeVerifier) -> bool {
        self.0.as_bytes().ct_eq(verifier.challenge().0.as_bytes()).into()
    }
}

/// The code verifier, by which the client proves that it sent the consent request: 43 to 128 characters.
/// Never printed.
#[derive(Debug, Clone)]
pub struct CodeVerifier(Redacted<String>);

impl CodeVerifier {
    /// The challenge that is made from it: base64url(SHA-256(verifier)).
    pub fn challenge(&self) -> CodeChallenge {
        CodeChallenge(URL_SAFE_NO_PAD.encode(digest(&SHA256, self.0.0.as_bytes())))
    }

    /// Validates a verifier's format.
    pub fn new(text: String) -> Result<Self, Invalid> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'~' | b'-');
        if !(43..=128).contains(&text.len()) || !text.bytes().all(allowed) {
            return Err(Invalid::new("must be 43 to 128 characters from [A-Za-z0-9._~-]"));
        }
        Ok(Self(Redacted(text)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_of_rfc_7636() {
        let verifier = CodeVerifier::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned()).unwrap();
        let challenge = CodeChallenge::new("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM".to_owned()).unwrap();
        assert!(challenge.is_satisfied_by(&verifier));
        assert_eq!(challenge.as_str(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert_eq!(format!("{verifier:?}"), "CodeVerifier(…)");
    }

    #[test]
    fn shapes_are_checked() {
        let a = |length| "a".repeat(length);
        for refused in ["", &a(42), &a(44), &(a(42) + "+")] {
            assert!(CodeChallenge::new((*refused).to_owned()).is_err(), "{refused}");
        }
        for refused in ["", &a(42), &a(129), &(a(43) + "+")] {
            assert!(CodeVerifier::new((*refused).to_owned()).is_err(), "{refused}");
        }
        assert!(CodeVerifier::new("~".repeat(128)).is_ok());
    }

    proptest! {
        #[test]
        fn no_other_verifier_meets_a_challenge(one in "[A-Za-z0-9._~-]{43,128}", other in "[A-Za-z0-9._~-]{43,128}") {
            let challenge = CodeChallenge::new(URL_SAFE_NO_PAD.encode(digest(&SHA256, one.as_bytes()))).unwrap();
            prop_assert!(challenge.is_satisfied_by(&CodeVerifier::new(one.clone()).unwrap()));
            prop_assert_eq!(challenge.is_satisfied_by(&CodeVerifier::new(other.clone()).unwrap()), one == other);
        }
    }
}
