//! Codes and tokens of a locked family as rows.

use chrono::{DateTime, Utc};
use diesel::{
    Queryable,
    sql_types::{Binary, Bool, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use kernel::StoreError;
use oauth::{Code, CodeChallenge, RefreshToken, ScopeSet, TokenKey, UnknownScope};
use uuid::Uuid;

use crate::statement::statement;

/// Reads a code.
pub(super) struct ReadCode<'a> {
    pub(super) family: Uuid,
    pub(super) hash: &'a [u8],
}

statement!(ReadCode<'_> => (Text, Text, Timestamptz, Nullable<Timestamptz>):
    "select redirect_uri, code_challenge, expires_at, used_at from authorization_codes where family_id = ",
    family: SqlUuid, " and hash = ", hash: Binary, "");

#[derive(Queryable)]
pub(super) struct CodeRow {
    redirect_uri: String,
    challenge: String,
    expires_at: DateTime<Utc>,
    used_at: Option<DateTime<Utc>>,
}

impl CodeRow {
    pub(super) fn code(self, key: TokenKey) -> Result<Code, StoreError> {
        let corrupt = |invalid| {
            let reason = format!("code_challenge {invalid}");
            StoreError::corrupt("authorization_codes", key.family, reason)
        };
        Ok(Code {
            redirect_uri: self.redirect_uri,
            challenge: CodeChallenge::new(self.challenge).map_err(corrupt)?,
            expires_at: self.expires_at,
            used_at: self.used_at,
        })
    }
}

/// Reads a refresh token.
pub(super) struct ReadRefreshToken<'a> {
    pub(super) family: Uuid,
    pub(super) hash: &'a [u8],
}

statement!(ReadRefreshToken<'_> => (Integer, Timestamptz, Nullable<Timestamptz>):
    "select scopes, expires_at, used_at from refresh_tokens where family_id = ", family: SqlUuid,
    " and hash = ", hash: Binary, "");

#[derive(Queryable)]
pub(super) struct RefreshTokenRow {
    scopes: i32,
    expires_at: DateTime<Utc>,
    used_at: Option<DateTime<Utc>>,
}

impl RefreshTokenRow {
    pub(super) fn token(self, key: TokenKey) -> Result<RefreshToken, StoreError> {
        let corrupt =
            |unknown: UnknownScope| StoreError::corrupt("refresh_tokens", key.family, unknown.to_string());
        Ok(RefreshToken {
            scopes: ScopeSet::from_bits(self.scopes).map_err(corrupt)?,
            expires_at: self.expires_at,
            used_at: self.used_at,
        })
    }
}

/// Whether there is such an access token, dead or alive.
pub(super) struct HasAccessToken<'a> {
    pub(super) family: Uuid,
    pub(super) hash: &'a [u8],
}

statement!(HasAccessToken<'_> => Bool:
    "select exists (select from access_tokens where family_id = ", family: SqlUuid,
    " and hash = ", hash: Binary, ")");
