//! The exchange of an authorization code for a token pair (RFC 6749 §4.1.3, RFC 7636 §4.6).

use chrono::{DateTime, Utc};

use crate::{ClientId, CodeChallenge, CodeVerifier, Family, ScopeSet};

/// A stored authorization code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// The redirect URI of the request, character by character.
    pub redirect_uri: String,
    /// The challenge that the verifier must match.
    pub challenge: CodeChallenge,
    /// When it expires.
    pub expires_at: DateTime<Utc>,
    pub used_at: Option<DateTime<Utc>>,
}

/// The parameters that an authenticated client sends with a code.
#[derive(Debug, Clone)]
pub struct CodeExchange {
    pub client_id: ClientId,
    pub redirect_uri: String,
    pub verifier: CodeVerifier,
}

/// The verdict on a presented code or refresh token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Consume it and issue a pair with these scopes.
    Issue(ScopeSet),
    /// Nothing changes.
    Refuse(GrantRefusal),
    /// The same client used it before: revoke the whole family.
    RevokeFamily,
}

/// Why a code or a refresh token is refused. All are the protocol error `invalid_grant`; the messages help the client's
/// developer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GrantRefusal {
    #[error("it is unknown, or was issued to another client")]
    Unknown,
    #[error("it has expired")]
    Expired,
    #[error("redirect_uri or code_verifier does not match the authorization request")]
    Mismatch,
    #[error(
        "it was used before, so everything issued from it has been revoked. Ask the seller for consent again"
    )]
    Used,
    /// Its family was revoked, the seller disconnected the application, or the account is closed.
    #[error("it was revoked. Ask the seller for consent again")]
    Ended,
    #[error("the application no longer holds any of the scopes that the seller consented to")]
    NoScope,
}

impl Code {
    /// Judges an exchange. A refused one leaves the code unused, so that only its own client can consume it. An
    /// exchange that fails only because the code was used before is a replay (contract: Flows 2).
    pub fn judge(&self, family: &Family, presented: &CodeExchange, now: DateTime<Utc>) -> Verdict {
        if family.client_id != presented.client_id {
            return Verdict::Refuse(GrantRefusal::Unknown);
        }
        if self.redirect_uri != presented.redirect_uri || !self.challenge.is_satisfied_by(&presented.verifier)
        {
            return Verdict::Refuse(GrantRefusal::Mismatch);
        }
        if self.used_at.is_some() {
            return Verdict::RevokeFamily;
        }
        if self.expires_at <= now {
            return Verdict::Refuse(GrantRefusal::Expired);
        }
        issue(family, family.scopes)
    }
}

/// Issues the remaining scopes of `scopes`, if the family is still valid.
pub(crate) fn issue(family: &Family, scopes: ScopeSet) -> Verdict {
    let Some(held) = family.status.issuable() else {
        return Verdict::Refuse(GrantRefusal::Ended);
    };
    let left = scopes.intersection(held);
    if left.is_empty() {
        Verdict::Refuse(GrantRefusal::NoScope)
    } else {
        Verdict::Issue(left)
    }
}
