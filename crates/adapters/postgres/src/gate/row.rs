//! A living token as it is looked up.

use std::num::NonZeroU32;

use chrono::{DateTime, Utc};
use diesel::{Queryable, sql_types as sql};
use kernel::StoreError;
use oauth::{ClientId, FamilyId, FamilyKind, Principal, ScopeSet, TokenKind};
use uuid::Uuid;

use crate::accounts::limit_from;

/// The columns of [`LiveRow`], of the tables `families` f, `access_tokens` t, `applications` a and `sellers` s. A token may have
/// scopes of its own, fewer than its family.
macro_rules! live_columns {
    () => {
        "f.seller_id, s.seller_no, f.client_id, a.name, coalesce(t.scopes, f.scopes) & a.scopes as scopes, f.kind, \
         t.expires_at, a.rate_limit"
    };
}
pub(super) use live_columns;

/// When a token is alive at the instant `clock.at`: its own row, its family, application and account all say so, and the
/// connection where the family was consented to. An application lives no longer than its owner's account. Each state that is fine is named, so that one which is added later lets
/// nobody in by mistake.
macro_rules! live_condition {
    () => {
        "t.revoked_at is null and (t.expires_at is null or t.expires_at > clock.at) and f.revoked_at is null \
         and a.deleted_at is null and a.status in ('pending', 'active') and s.closed_at is null \
         and (a.owner_id = f.seller_id or exists (select from sellers o where o.id = a.owner_id and o.closed_at is null)) \
         and (f.generation is null or exists (select from connections c where c.client_id = f.client_id \
           and c.seller_id = f.seller_id and c.generation = f.generation))"
    };
}
pub(super) use live_condition;

/// The types of these columns.
pub(super) type LiveColumns = (
    sql::Uuid,
    sql::Integer,
    sql::Uuid,
    sql::Text,
    sql::Integer,
    sql::Text,
    sql::Nullable<sql::Timestamptz>,
    sql::Nullable<sql::Integer>,
);

#[derive(Queryable)]
pub(super) struct LiveRow {
    seller_id: Uuid,
    seller_no: i32,
    pub(super) client_id: Uuid,
    name: String,
    scopes: i32,
    kind: String,
    expires_at: Option<DateTime<Utc>>,
    rate_limit: Option<i32>,
}

/// A caller and the limit of its application.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) principal: Principal,
    pub(super) limit: u32,
}

impl LiveRow {
    /// Who the family's token speaks for.
    pub(super) fn caller(self, family: FamilyId, default_limit: NonZeroU32) -> Result<Caller, StoreError> {
        let client_id = ClientId::from(self.client_id);
        let corrupt = |reason: String| StoreError::corrupt("families", family, reason);
        let kind = match FamilyKind::parse(&self.kind) {
            Some(FamilyKind::ClientCredentials | FamilyKind::AuthorizationCode) => TokenKind::Access,
            Some(FamilyKind::Personal) => TokenKind::Personal,
            None => return Err(corrupt(format!("kind {:?}", self.kind))),
        };
        if kind == TokenKind::Access && self.expires_at.is_none() {
            return Err(StoreError::corrupt(
                "access_tokens",
                family,
                "an access token without an end",
            ));
        }
        let scopes = ScopeSet::from_bits(self.scopes).map_err(|unknown| corrupt(unknown.to_string()))?;
        let limit = match self.rate_limit {
            None => default_limit,
            Some(limit) => limit_from(limit).ok_or_else(|| {
                StoreError::corrupt("applications", client_id, format!("rate_limit {limit}"))
            })?,
        };
        let principal = Principal {
            seller: self.seller_id.into(),
            seller_no: self.seller_no,
            client_id,
            app_name: self.name,
            scopes,
            kind,
            expires_at: self.expires_at,
        };
        Ok(Caller {
            principal,
            limit: limit.get(),
        })
    }
}
