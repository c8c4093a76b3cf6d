//! The exchange of an authorization code for a pair of tokens (RFC 6749 §4.1.3, RFC 7636 §4.6).

use chrono::{DateTime, Utc};

use crate::{ClientId, CodeChallenge, CodeVerifier, Family, ScopeSet};

/// An authorization code as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// The redirect address of the request, character for character.
    pub redirect_uri: String,
    /// What the verifier has to meet.
    pub challenge: CodeChallenge,
    /// When it can no longer be used.
    pub expires_at: DateTime<Utc>,
    /// When it was used.
    pub used_at: Option<DateTime<Utc>>,
}

/// What a client presents with a code, its own authentication done.
#[derive(Debug, Clone)]
pub struct CodePresented {
    /// The client.
    pub client_id: ClientId,
    /// Its `redirect_uri`.
    pub redirect_uri: String,
    /// Its `code_verifier`.
    pub verifier: CodeVerifier,
}

/// What comes of presenting a code or a refresh token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is used up, and a pair with these scopes is issued.
    Issue(ScopeSet),
    /// Nothing happens.
    Refuse(GrantRefusal),
    /// It was used before by the same client: the whole family ends.
    RevokeFamily,
}

/// Why a code or a refresh token gives nothing. One error of the protocol (`invalid_grant`) for all; the words help whoever
/// writes the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GrantRefusal {
    /// Nobody has such a credential, or another client has.
    #[error("it is unknown, or was issued to another client")]
    Unknown,
    /// Its time is over.
    #[error("it has expired")]
    Expired,
    /// The request does not match the one it was issued for.
    #[error("redirect_uri or code_verifier does not match the authorization request")]
    Mismatch,
    /// It was used before.
    #[error(
        "it was used before, so everything issued from it has been revoked: ask the seller for consent again"
    )]
    Used,
    /// Its family was revoked, the seller has disconnected the application, or the account is closed.
    #[error("it was revoked: ask the seller for consent again")]
    Ended,
    /// Nothing is left of what the seller consented to.
    #[error("the application no longer holds any of the scopes that the seller consented to")]
    NoScope,
}

impl Code {
    /// Judges an exchange. A refused exchange leaves the code as it was, so that nobody but its own client can use it up;
    /// one that would have succeeded but for an earlier use is a replay (contract: Flows 2).
    pub fn judge(&self, family: &Family, presented: &CodePresented, now: DateTime<Utc>) -> Verdict {
        if family.client_id != presented.client_id {
            return Verdict::Refuse(GrantRefusal::Unknown);
        }
        if self.redirect_uri != presented.redirect_uri || !self.challenge.is_met_by(&presented.verifier) {
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

/// Issues what is left of `scopes`, where the family still stands.
pub(crate) fn issue(family: &Family, scopes: ScopeSet) -> Verdict {
    let Some(held) = family.standing.issuable() else {
        return Verdict::Refuse(GrantRefusal::Ended);
    };
    let left = scopes.intersection(held);
    if left.is_empty() {
        Verdict::Refuse(GrantRefusal::NoScope)
    } else {
        Verdict::Issue(left)
    }
}
