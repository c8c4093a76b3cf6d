//! The rotation of refresh tokens (RFC 6749 §6, RFC 9700 §4.14.2).

use chrono::{DateTime, Utc};

use crate::{ClientId, Family, GrantRefusal, ScopeSet, SecretHash, Verdict, exchange::issue};

/// A stored refresh token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefreshToken {
    /// The scopes of its pair.
    pub scopes: ScopeSet,
    /// When it expires; of a used one, until when its second use is recognised.
    pub expires_at: DateTime<Utc>,
    pub used_at: Option<DateTime<Utc>>,
}

impl RefreshToken {
    /// Judges a refresh by an authenticated client. Another client's call changes nothing (D63); a second use revokes
    /// the family, without a grace period (D62). Scopes never grow: the result is the intersection of the token's and
    /// the application's scopes.
    pub fn judge(&self, family: &Family, client_id: ClientId, now: DateTime<Utc>) -> Verdict {
        if family.client_id != client_id {
            return Verdict::Refuse(GrantRefusal::Unknown);
        }
        match (self.used_at, self.expires_at <= now) {
            (Some(_), false) => Verdict::RevokeFamily,
            (Some(_), true) => Verdict::Refuse(GrantRefusal::Unknown),
            (None, true) => Verdict::Refuse(GrantRefusal::Expired),
            (None, false) => issue(family, self.scopes),
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
