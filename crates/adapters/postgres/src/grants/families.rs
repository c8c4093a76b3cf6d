//! Locking a family, and ending it, one of its tokens, or many families.

use chrono::{DateTime, Utc};
use diesel::{
    Queryable,
    sql_types::{Binary, Bool, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use kernel::StoreError;
use oauth::{ApplicationStatus, ClientId, Family, FamilyId, ScopeSet, Standing};
use uuid::Uuid;

use crate::statement::statement;

/// Locks a family, and holds the connection that it hangs on: whoever ends either waits, or was waited for. A locked row is
/// read as it is then, not as it was when the statement began.
///
/// The application and the account are not locked; [`ReadState`] reads them afterwards.
pub(super) struct Lock {
    pub(super) family: Uuid,
}

statement!(Lock => (SqlUuid, SqlUuid, Integer, Nullable<Timestamptz>, Bool):
    "with family as materialized (select seller_id, client_id, scopes, revoked_at, generation from families where id = ",
    family: SqlUuid,
    " for no key update), \
     connection as materialized (select c.generation from family f join connections c on c.client_id = f.client_id \
       and c.seller_id = f.seller_id where f.generation is not null for share of c) \
     select f.seller_id, f.client_id, f.scopes, f.revoked_at, \
       f.generation is not null and not exists (select from connection c where c.generation = f.generation) \
     from family f");

#[derive(Queryable)]
pub(super) struct LockedRow {
    seller_id: Uuid,
    client_id: Uuid,
    scopes: i32,
    revoked_at: Option<DateTime<Utc>>,
    disconnected: bool,
}

/// Reads the application and the account of a family. It is sent behind [`Lock`]: a statement of its own sees what was
/// committed while the lock was waited for, so that a pair never has scopes that were taken away before (D83).
///
/// Neither is locked. Whatever is issued to one that ends at the same moment is rejected by the gate, which looks at both each
/// time.
pub(super) struct ReadState {
    pub(super) family: Uuid,
}

statement!(ReadState => (Nullable<Timestamptz>, Nullable<Text>, Nullable<Integer>):
    "select s.closed_at, a.status, a.scopes from families f join sellers s on s.id = f.seller_id \
       left join applications a on a.client_id = f.client_id and a.deleted_at is null where f.id = ", family: SqlUuid, "");

#[derive(Queryable)]
pub(super) struct StateRow {
    closed_at: Option<DateTime<Utc>>,
    status: Option<String>,
    held: Option<i32>,
}

/// A locked family with the state of what it hangs on.
pub(super) struct FamilyRow {
    pub(super) locked: LockedRow,
    pub(super) state: StateRow,
}

impl FamilyRow {
    pub(super) fn family(self, id: FamilyId) -> Result<Family, StoreError> {
        let client_id = ClientId::from(self.locked.client_id);
        let scopes = ScopeSet::from_bits(self.locked.scopes)
            .map_err(|unknown| StoreError::corrupt("families", id, unknown.to_string()))?;
        let corrupt = |reason: String| StoreError::corrupt("applications", client_id, reason);
        let application = match (self.state.status, self.state.held) {
            (Some(status), Some(held)) => Some((
                ApplicationStatus::parse(&status).ok_or_else(|| corrupt(format!("status {status:?}")))?,
                ScopeSet::from_bits(held).map_err(|unknown| corrupt(unknown.to_string()))?,
            )),
            _ => None,
        };
        Ok(Family {
            id,
            seller: self.locked.seller_id.into(),
            client_id,
            scopes,
            standing: Standing {
                revoked: self.locked.revoked_at.is_some(),
                disconnected: self.locked.disconnected,
                closed: self.state.closed_at.is_some(),
                application,
            },
        })
    }
}

/// Ends a family; one that has ended keeps its first instant.
pub(super) struct Revoke {
    pub(super) family: Uuid,
}

statement!(Revoke => ():
    "update families set revoked_at = coalesce(revoked_at, clock.at) from (select api_now() as at) clock where id = ", family: SqlUuid, "");

/// Ends an access token, where it is one of the family's and was not ended before.
pub(super) struct RevokeToken<'a> {
    pub(super) family: Uuid,
    pub(super) hash: &'a [u8],
}

statement!(RevokeToken<'_> => ():
    "update access_tokens set revoked_at = clock.at from (select api_now() as at) clock \
     where family_id = ", family: SqlUuid,
    " and hash = ", hash: Binary, " and revoked_at is null");

/// Ends the families of an application that live.
pub(super) struct RevokeOfApplication {
    pub(super) client: Uuid,
}

statement!(RevokeOfApplication => ():
    "update families set revoked_at = clock.at from (select api_now() as at) clock where client_id = ", client: SqlUuid,
    " and revoked_at is null");

/// Ends the families of a seller that live.
pub(super) struct RevokeOfSeller {
    pub(super) seller: Uuid,
}

statement!(RevokeOfSeller => ():
    "update families set revoked_at = clock.at from (select api_now() as at) clock where seller_id = ", seller: SqlUuid,
    " and revoked_at is null");
