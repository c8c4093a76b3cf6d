//! What the examples are about: one thing of each kind, under one id wherever it is named, and credentials that are written as
//! real ones are.

use oauth::{BearerToken, Credential, CredentialKind, FamilyId, TokenKind};
use uuid::Uuid;

/// An offer.
pub(crate) const OFFER: Uuid = Uuid::from_u128(0x0193_6b2e_8f6a_7c31_9a54_3f2d_8c1b_7e90);
/// An order of it.
pub(crate) const ORDER: Uuid = Uuid::from_u128(0x0193_6c01_52b7_7f0e_8d6e_6b1a_9e24_c7d3);
/// That order's number.
pub(crate) const ORDER_NUMBER: &str = "ZAM-1-1001";
/// A subscription.
pub(crate) const WEBHOOK: Uuid = Uuid::from_u128(0x0193_6d10_7a3b_7c4d_8e5f_6a7b_8c9d_0e1f);
/// A delivery to it.
pub(crate) const DELIVERY: Uuid = Uuid::from_u128(0x0193_6d22_1f2e_7d3c_8b4a_5968_7786_9504);
/// An application.
pub(crate) const CLIENT_ID: &str = "psa_01936a0c5d3e7f1a9b8c7d6e5f4a3b2c";
/// Where its answers go.
pub(crate) const REDIRECT_URI: &str = "https://app.example.com/callback";
/// What it keeps of a request for consent.
pub(crate) const STATE: &str = "c2f1b7f0-5d1e";
/// A verifier, and what is made of it (RFC 7636, appendix B).
pub(crate) const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
/// See [`VERIFIER`].
pub(crate) const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// What came of a seller's consent.
const FAMILY: Uuid = Uuid::from_u128(0x0193_6a3f_0c1d_7e2f_8a9b_0c1d_2e3f_4a5b);

/// An access token.
pub(crate) fn access_token() -> BearerToken {
    BearerToken::from_random(
        TokenKind::Access,
        FamilyId::from(FAMILY),
        b"an access token in examples only",
    )
}

/// A refresh token.
pub(crate) fn refresh_token() -> Credential {
    credential(CredentialKind::RefreshToken, b"one refresh token for an example")
}

/// An authorization code.
pub(crate) fn code() -> Credential {
    credential(
        CredentialKind::AuthorizationCode,
        b"an authorization code of no one!",
    )
}

fn credential(kind: CredentialKind, random: &[u8; 32]) -> Credential {
    Credential::from_random(kind, FamilyId::from(FAMILY), random)
}
