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
/// The application and the account are not locked. Whatever is issued to one that ends at the same moment is rejected by the
/// gate, which looks at both each time.
pub(super) struct Lock {
    pub(super) family: Uuid,
}

statement!(Lock => (SqlUuid, SqlUuid, Integer, Nullable<Timestamptz>, Bool, Nullable<Timestamptz>, Nullable<Text>, Nullable<Integer>):
    "with family as materialized (select seller_id, client_id, scopes, revoked_at, generation from families where id = ",
    family: SqlUuid,
    " for no key update), \
     connection as materialized (select c.generation from family f join connections c on c.client_id = f.client_id \
       and c.seller_id = f.seller_id where f.generation is not null for share of c) \
     select f.seller_id, f.client_id, f.scopes, f.revoked_at, \
       f.generation is not null and not exists (select from connection c where c.generation = f.generation), \
       s.closed_at, a.status, a.scopes \
     from family f join sellers s on s.id = f.seller_id \
       left join applications a on a.client_id = f.client_id and a.deleted_at is null");

#[derive(Queryable)]
pub(super) struct FamilyRow {
    seller_id: Uuid,
    client_id: Uuid,
    scopes: i32,
    revoked_at: Option<DateTime<Utc>>,
    disconnected: bool,
    closed_at: Option<DateTime<Utc>>,
    status: Option<String>,
    held: Option<i32>,
}

impl FamilyRow {
    pub(super) fn family(self, id: FamilyId) -> Result<Family, StoreError> {
        let client_id = ClientId::from(self.client_id);
        let scopes = ScopeSet::from_bits(self.scopes)
            .map_err(|unknown| StoreError::corrupt("families", id, unknown.to_string()))?;
        let corrupt = |reason: String| StoreError::corrupt("applications", client_id, reason);
        let application = match (self.status, self.held) {
            (Some(status), Some(held)) => Some((
                ApplicationStatus::parse(&status).ok_or_else(|| corrupt(format!("status {status:?}")))?,
                ScopeSet::from_bits(held).map_err(|unknown| corrupt(unknown.to_string()))?,
            )),
            _ => None,
        };
        Ok(Family {
            id,
            seller: self.seller_id.into(),
            client_id,
            scopes,
            standing: Standing {
                revoked: self.revoked_at.is_some(),
                disconnected: self.disconnected,
                closed: self.closed_at.is_some(),
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

/// Ends an access token, where it is one of the family's.
pub(super) struct RevokeToken<'a> {
    pub(super) family: Uuid,
    pub(super) hash: &'a [u8],
}

statement!(RevokeToken<'_> => ():
    "update access_tokens set revoked_at = coalesce(revoked_at, clock.at) from (select api_now() as at) clock \
     where family_id = ", family: SqlUuid,
    " and hash = ", hash: Binary, "");

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
