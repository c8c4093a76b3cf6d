//! The rotation of refresh tokens (RFC 6749 §6, RFC 9700 §4.14.2).

use chrono::{DateTime, Utc};

use crate::{ClientId, Family, GrantRefusal, ScopeSet, SecretHash, Verdict, exchange::issue};

/// A refresh token as it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefreshToken {
    /// What its pair was issued with.
    pub scopes: ScopeSet,
    /// When it can no longer be used.
    pub expires_at: DateTime<Utc>,
    /// When it was used.
    pub used_at: Option<DateTime<Utc>>,
}

impl RefreshToken {
    /// Judges a refresh by an authenticated client. Another client's call changes nothing (D63); a second use ends the
    /// family, without any time of grace (D62). The scopes never grow: they are what the token has and the application
    /// still holds.
    pub fn judge(&self, family: &Family, client_id: ClientId, now: DateTime<Utc>) -> Verdict {
        if family.client_id != client_id {
            return Verdict::Refuse(GrantRefusal::Unknown);
        }
        if self.used_at.is_some() {
            return Verdict::RevokeFamily;
        }
        if self.expires_at <= now {
            return Verdict::Refuse(GrantRefusal::Expired);
        }
        issue(family, self.scopes)
    }
}

/// A pair of tokens to be stored: an access token and the refresh token that follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewPair {
    /// What both may do.
    pub scopes: ScopeSet,
    /// The hash of the access token.
    pub access: SecretHash,
    /// When the access token ends.
    pub access_expires_at: DateTime<Utc>,
    /// The hash of the refresh token.
    pub refresh: SecretHash,
    /// When the refresh token ends.
    pub refresh_expires_at: DateTime<Utc>,
}

#[cfg(test)]
mod tests;
