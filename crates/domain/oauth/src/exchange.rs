//! The exchange of an authorization code for a token pair (RFC 6749 §4.1.3, RFC 7636 §4.6), and the rotation
//! of refresh tokens (RFC 6749 §6, RFC 9700 §4.14.2).

use chrono::{DateTime, TimeDelta, Utc};

use crate::{
    ApplicationStatus, ClientId, CodeChallenge, CodeVerifier, Family, InvalidClient, ScopeSet, SecretHash,
    TokenKey,
};

/// A stored authorization code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// The redirect URI of the request, character by character.
    pub redirect_uri: String,
    /// The challenge that the verifier must match.
    pub challenge: CodeChallenge,
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

/// The credential that a client exchanges for a token pair, with everything that the exchange checks.
#[derive(Debug, Clone)]
pub enum Presented {
    /// The code with this key, and what the client presents with it.
    Code(TokenKey, CodeExchange),
    /// The refresh token with this key, presented by this client.
    RefreshToken(TokenKey, ClientId),
}

impl Presented {
    pub const fn key(&self) -> TokenKey {
        match self {
            Self::Code(key, _) | Self::RefreshToken(key, _) => *key,
        }
    }

    /// Judges the credential that is stored with this key, by [`Code::judge`] or [`RefreshToken::judge`].
    pub fn judge(&self, family: &Family, stored: &StoredCredential, now: DateTime<Utc>) -> Judgement {
        match (self, stored) {
            (Self::Code(_, presented), StoredCredential::Code(code)) => code.judge(family, presented, now),
            (Self::RefreshToken(_, client_id), StoredCredential::RefreshToken(token)) => {
                token.judge(family, *client_id, now)
            }
            _ => Err(GrantRefusal::Unknown),
        }
    }
}

/// How long after the first answer a refresh can be repeated.
const REPEATABLE: TimeDelta = TimeDelta::hours(24);

/// A stored refresh token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefreshToken {
    /// The scopes of its pair.
    pub scopes: ScopeSet,
    /// When it expires; once used, until when a second use is detected.
    pub expires_at: DateTime<Utc>,
    pub used_at: Option<DateTime<Utc>>,
}

/// A code or a refresh token, found by its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredCredential {
    Code(Code),
    RefreshToken(RefreshToken),
}

impl StoredCredential {
    /// Whether its family has not ended, and it is neither used nor expired.
    pub fn is_usable(&self, family: &Family, now: DateTime<Utc>) -> bool {
        let (used_at, expires_at) = match self {
            Self::Code(code) => (code.used_at, code.expires_at),
            Self::RefreshToken(token) => (token.used_at, token.expires_at),
        };
        family.status.living().is_ok() && used_at.is_none() && expires_at > now
    }
}

/// The verdict on a presented code or refresh token that is not refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Consume it and issue a pair with these scopes.
    Issue(ScopeSet),
    /// The same client used it before: revoke the whole family.
    RevokeFamily,
}

/// Why a code or a refresh token is refused, and nothing changes. The messages help the client's developer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GrantRefusal {
    #[error("it is unknown, or was issued to another client")]
    Unknown,
    #[error("it has expired. Ask the seller for consent again")]
    Expired,
    #[error("redirect_uri is not the one of the authorization request")]
    RedirectMismatch,
    #[error("code_verifier does not match the code_challenge of the authorization request")]
    VerifierMismatch,
    #[error("it was used before, so everything issued from it is revoked. Ask the seller for consent again")]
    Used,
    #[error("it was used before, and so was the refresh token of that answer. Nothing was revoked")]
    SuccessorUsed,
    #[error("the seller has disconnected the application")]
    Disconnected,
    /// Its family was revoked, its application deleted, or its account closed.
    #[error("it was revoked. Ask the seller for consent again, unless the account is closed")]
    Revoked,
    #[error("the application no longer holds any of the scopes that the seller consented to")]
    NoScope,
    /// The client was valid when it authenticated, and is not any more.
    #[error(transparent)]
    Client(#[from] InvalidClient),
}

impl GrantRefusal {
    /// The machine-readable cause (D141).
    pub const fn reason(self) -> Option<&'static str> {
        match self {
            Self::Unknown => Some("unknown"),
            Self::Expired => Some("expired"),
            Self::RedirectMismatch => Some("redirect_mismatch"),
            Self::VerifierMismatch => Some("verifier_mismatch"),
            Self::Used | Self::SuccessorUsed => Some("used"),
            Self::Disconnected => Some("disconnected"),
            Self::Revoked => Some("revoked"),
            Self::NoScope => None,
            Self::Client(refusal) => refusal.reason(),
        }
    }
}

type Judgement = Result<Verdict, GrantRefusal>;

impl Code {
    /// Judges an exchange. A refused one leaves the code unused, so that only its own client can consume it.
    /// An exchange that fails only because the code was used before is a replay (contract: Flows 2).
    pub fn judge(&self, family: &Family, presented: &CodeExchange, now: DateTime<Utc>) -> Judgement {
        if family.client_id != presented.client_id {
            return Err(GrantRefusal::Unknown);
        }
        if self.redirect_uri != presented.redirect_uri {
            return Err(GrantRefusal::RedirectMismatch);
        }
        if !self.challenge.is_satisfied_by(&presented.verifier) {
            return Err(GrantRefusal::VerifierMismatch);
        }
        let (is_used, is_expired) = (self.used_at.is_some(), self.expires_at <= now);
        judge(family, family.scopes, is_used, is_expired)
    }
}

impl RefreshToken {
    /// Judges a refresh by an authenticated client. Another client's call changes nothing (D63); a second use
    /// revokes the family, without a grace period (D62). Scopes never grow: the result is the intersection of
    /// the token's and the application's scopes.
    pub fn judge(&self, family: &Family, client_id: ClientId, now: DateTime<Utc>) -> Judgement {
        let (is_used, is_expired) = (self.used_at.is_some(), self.expires_at <= now);
        if family.client_id != client_id || (is_used && is_expired) {
            return Err(GrantRefusal::Unknown);
        }
        judge(family, self.scopes, is_used, is_expired)
    }

    /// Judges a second use, for which [`Self::judge`] would revoke the family, with the first one's
    /// `Idempotency-Key`; `next` is the refresh token of the first answer. For 24 hours that answer may be
    /// repeated, with these scopes. Later it is None, a replay.
    pub fn judge_repeat(&self, next: &Self, now: DateTime<Utc>) -> Result<Option<ScopeSet>, GrantRefusal> {
        match (self.used_at, next.used_at) {
            (Some(first), None) if now < first + REPEATABLE => Ok(Some(next.scopes)),
            (Some(first), Some(_)) if now < first + REPEATABLE => Err(GrantRefusal::SuccessorUsed),
            _ => Ok(None),
        }
    }
}

/// Judges a credential that its own client presents: the first refusal that applies (D141), or the remaining
/// scopes of `scopes`.
fn judge(family: &Family, scopes: ScopeSet, is_used: bool, is_expired: bool) -> Judgement {
    let (status, held) = family.status.living()?;
    if is_used {
        return Ok(Verdict::RevokeFamily);
    }
    if is_expired {
        return Err(GrantRefusal::Expired);
    }
    if status == ApplicationStatus::Suspended {
        return Err(InvalidClient::Suspended { is_proved: true }.into());
    }
    match scopes.intersection(held) {
        none if none.is_empty() => Err(GrantRefusal::NoScope),
        left => Ok(Verdict::Issue(left)),
    }
}

/// A code or a refresh token that its client uses, and the pair that it gets.
#[derive(Debug, Clone)]
pub struct Exchange {
    pub presented: Presented,
    pub access: SecretHash,
    pub access_lifetime: TimeDelta,
    pub refresh: SecretHash,
    pub refresh_lifetime: TimeDelta,
    /// When the store counted the request, by its own clock.
    pub asked_at: DateTime<Utc>,
}

impl Exchange {
    /// The pair with these scopes, issued now.
    pub fn pair(&self, scopes: ScopeSet, now: DateTime<Utc>) -> NewPair {
        NewPair {
            scopes,
            access: self.access,
            access_expires_at: now + self.access_lifetime,
            refresh: self.refresh,
            refresh_expires_at: now + self.refresh_lifetime,
        }
    }
}

/// A token pair to be stored: an access token and its successor refresh token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewPair {
    /// The scopes of both.
    pub scopes: ScopeSet,
    pub access: SecretHash,
    pub access_expires_at: DateTime<Utc>,
    pub refresh: SecretHash,
    pub refresh_expires_at: DateTime<Utc>,
}

#[cfg(test)]
mod tests;
