//! Using a code or a refresh token up, for a pair of tokens.

use chrono::{DateTime, Utc};
use diesel::sql_types::{Binary, Integer, Timestamptz, Uuid as SqlUuid};
use oauth::{NewPair, TokenKey};
use uuid::Uuid;

use crate::statement::statement;

/// What is used up, and the pair that it gives.
pub(super) struct Use<'a> {
    family: Uuid,
    hash: &'a [u8],
    scopes: i32,
    access: &'a [u8],
    access_expires_at: DateTime<Utc>,
    refresh: &'a [u8],
    refresh_expires_at: DateTime<Utc>,
}

impl<'a> Use<'a> {
    pub(super) fn new(key: &'a TokenKey, pair: &'a NewPair) -> Self {
        Self {
            family: key.family.uuid(),
            hash: key.hash.bytes(),
            scopes: pair.scopes.bits(),
            access: pair.access.bytes(),
            access_expires_at: pair.access_expires_at,
            refresh: pair.refresh.bytes(),
            refresh_expires_at: pair.refresh_expires_at,
        }
    }
}

/// What was used before changes no row, and then nothing is stored.
macro_rules! use_up {
    ($name:ident, $table:literal) => {
        pub(super) struct $name<'a> {
            pub(super) given: Use<'a>,
        }

        statement!($name<'_> => ():
            concat!("with used as (update ", $table, " set used_at = clock.at from (select api_now() as at) clock where family_id = "), given.family: SqlUuid,
            " and hash = ", given.hash: Binary,
            " and used_at is null returning family_id), \
             refresh as (insert into refresh_tokens (family_id, hash, scopes, expires_at) select family_id, ", given.refresh: Binary,
            ", ", given.scopes: Integer,
            ", ", given.refresh_expires_at: Timestamptz,
            " from used) \
             insert into access_tokens (family_id, hash, scopes, expires_at) select family_id, ", given.access: Binary,
            ", ", given.scopes: Integer,
            ", ", given.access_expires_at: Timestamptz, " from used");
    };
}

use_up!(UseCode, "authorization_codes");
use_up!(UseRefreshToken, "refresh_tokens");
