//! Screens of consent, and the consents that come of them.

use chrono::{DateTime, Utc};
use diesel::{
    Queryable,
    sql_types::{Binary, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use kernel::StoreError;
use oauth::{Consent, ConsentId, FamilyKind, NewConsent, SecretHash, Viewer};
use uuid::Uuid;

use crate::statement::statement;

/// Opens the connection, unless it is open, and stores a family under its generation, with the code.
pub(super) struct Add<'a> {
    client: Uuid,
    seller: Uuid,
    family: Uuid,
    kind: &'static str,
    scopes: i32,
    code: &'a [u8],
    expires_at: DateTime<Utc>,
    redirect_uri: &'a str,
    challenge: &'a str,
}

statement!(Add<'_> => ():
    "with connection as (insert into connections as c (client_id, seller_id, connected_at) values (", client: SqlUuid,
    ", ", seller: SqlUuid,
    ", (select api_now())) on conflict (client_id, seller_id) do update set disconnected_at = null, \
       connected_at = case when c.disconnected_at is null then c.connected_at else excluded.connected_at end \
       returning client_id, seller_id, generation), \
     family as (insert into families (id, seller_id, client_id, kind, scopes, generation) select ", family: SqlUuid,
    ", seller_id, client_id, ", kind: Text,
    ", ", scopes: Integer,
    ", generation from connection returning id) \
     insert into authorization_codes (family_id, hash, expires_at, redirect_uri, code_challenge) select id, ", code: Binary,
    ", ", expires_at: Timestamptz,
    ", ", redirect_uri: Text,
    ", ", challenge: Text, " from family");

impl<'a> Add<'a> {
    pub(super) fn new(consent: &'a NewConsent) -> Self {
        Self {
            client: consent.client_id.uuid(),
            seller: consent.seller.uuid(),
            family: consent.family.uuid(),
            kind: FamilyKind::AuthorizationCode.as_str(),
            scopes: consent.scopes.bits(),
            code: consent.code.bytes(),
            expires_at: consent.expires_at,
            redirect_uri: &consent.redirect_uri,
            challenge: consent.challenge.as_str(),
        }
    }
}

/// Locks a screen, or makes it. The update changes nothing: it is what waits for a row that somebody else has locked, or is
/// making, and then reads it as it has become.
pub(super) struct LockScreen<'a> {
    id: Uuid,
    seller: Uuid,
    session: &'a [u8],
    expires_at: DateTime<Utc>,
}

statement!(LockScreen<'_> => (SqlUuid, Binary, Timestamptz, Nullable<Timestamptz>):
    "insert into consents as c (id, seller_id, session_hash, expires_at) values (", id: SqlUuid,
    ", ", seller: SqlUuid,
    ", ", session: Binary,
    ", ", expires_at: Timestamptz,
    ") on conflict (id) do update set seller_id = c.seller_id \
     returning seller_id, session_hash, expires_at, decided_at");

impl<'a> LockScreen<'a> {
    pub(super) fn new(id: ConsentId, viewer: &'a Viewer, expires_at: DateTime<Utc>) -> Self {
        Self {
            id: id.uuid(),
            seller: viewer.seller.uuid(),
            session: viewer.session.bytes(),
            expires_at,
        }
    }
}

#[derive(Queryable)]
pub(super) struct ScreenRow {
    seller_id: Uuid,
    session_hash: Vec<u8>,
    expires_at: DateTime<Utc>,
    decided_at: Option<DateTime<Utc>>,
}

impl ScreenRow {
    pub(super) fn consent(self, id: ConsentId) -> Result<Consent, StoreError> {
        let session = SecretHash::try_from(self.session_hash.as_slice())
            .map_err(|invalid| StoreError::corrupt("consents", id, format!("session_hash {invalid}")))?;
        Ok(Consent {
            id,
            viewer: Viewer {
                session,
                seller: self.seller_id.into(),
            },
            expires_at: self.expires_at,
            decided_at: self.decided_at,
        })
    }
}

/// Saves the decision of a screen that has none.
pub(super) struct Decide {
    pub(super) id: Uuid,
    pub(super) decided_at: DateTime<Utc>,
}

statement!(Decide => ():
    "update consents set decided_at = ", decided_at: Timestamptz,
    " where id = ", id: SqlUuid, " and decided_at is null");

/// Forgets a screen that its viewer has not decided.
pub(super) struct Release<'a> {
    pub(super) id: Uuid,
    pub(super) seller: Uuid,
    pub(super) session: &'a [u8],
}

statement!(Release<'_> => ():
    "delete from consents where id = ", id: SqlUuid,
    " and seller_id = ", seller: SqlUuid,
    " and session_hash = ", session: Binary, " and decided_at is null");
