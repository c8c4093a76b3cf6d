//! Consents and the connections that they create.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{SellerId, StoreError};
use oauth::{
    ClientId, ConnectedApplication, Consent, ConsentId, FamilyId, FamilyKind, GrantReader, NewConsent,
    ScopeSet, SecretHash, TokenKey, Viewer,
};
use uuid::Uuid;

use crate::connection::pool::Autocommit;
use crate::follow_ups::FollowUp;
use crate::sql::{row, sql};
use crate::unit_of_work::{Tx, expect_rows};

/// Opens the connection, unless it is open, and stores a family under its generation, with the code.
pub(super) async fn add(tx: &Tx, consent: &NewConsent) -> Result<(), StoreError> {
    let add = sql!(():
        "with connection as (insert into connections as c (client_id, seller_id, connected_at) values (",
        consent.client_id.uuid(), ", ", consent.seller.uuid(),
        ", (select api_now())) on conflict (client_id, seller_id) do update set disconnected_at = null, \
           connected_at = case when c.disconnected_at is null then c.connected_at else excluded.connected_at end \
           returning client_id, seller_id, generation), \
         family as (insert into families (id, kind, scopes, seller_id, client_id, generation, seller_generation, application_generation) \
           select ", consent.family.uuid(), ", ", FamilyKind::AuthorizationCode.as_str(), ", ", consent.scopes.bits(),
        ", c.seller_id, c.client_id, c.generation, s.token_generation, a.token_generation \
           from connection c join sellers s on s.id = c.seller_id join applications a on a.client_id = c.client_id returning id) \
         insert into authorization_codes (family_id, hash, expires_at, redirect_uri, code_challenge) select id, ",
        consent.code.bytes().as_slice(), ", ", consent.expires_at, ", ", consent.redirect_uri.as_str(), ", ",
        consent.challenge.as_str(), " from family");
    expect_rows("authorization_codes", tx.execute(add).await?, 1)
}

row! {
    struct ConsentRow {
        seller_id: Uuid,
        session_hash: Vec<u8>,
        expires_at: DateTime<Utc>,
        decided_at: Option<DateTime<Utc>>,
    }
}

/// Locks a consent screen, or creates it. The update changes nothing: it waits for a row that another transaction has
/// locked or is inserting, and then reads its new version.
pub(super) async fn lock(
    tx: &Tx,
    id: ConsentId,
    viewer: Viewer,
    expires_at: DateTime<Utc>,
) -> Result<Consent, StoreError> {
    let lock = sql!(ConsentRow:
        "insert into consents as c (id, seller_id, session_hash, expires_at) values (", id.uuid(), ", ",
        viewer.seller.uuid(), ", ", viewer.session.bytes().as_slice(), ", ", expires_at,
        ") on conflict (id) do update set seller_id = c.seller_id \
         returning seller_id, session_hash, expires_at, decided_at");
    let row = tx.row(lock).await?;
    let row = row.ok_or_else(|| StoreError::unexpected("a consent screen was not stored"))?;
    let session = SecretHash::try_from(row.session_hash.as_slice())
        .map_err(|invalid| StoreError::corrupt("consents", id, format!("session_hash {invalid}")))?;
    Ok(Consent {
        id,
        viewer: Viewer {
            session,
            seller: row.seller_id.into(),
        },
        expires_at: row.expires_at,
        decided_at: row.decided_at,
    })
}

/// Ends a connection; false if none is open. Its generation rises: everything issued, or being issued, under the
/// previous one is invalid.
pub(super) async fn disconnect(tx: &Tx, seller: SellerId, client_id: ClientId) -> Result<bool, StoreError> {
    let end = sql!(():
        "update connections set generation = generation + 1, disconnected_at = api_now() where client_id = ",
        client_id.uuid(), " and seller_id = ", seller.uuid(), " and disconnected_at is null");
    if tx.execute(end).await? == 0 {
        return Ok(false);
    }
    FollowUp::Connection(seller, client_id).queue(tx);
    Ok(true)
}

row! {
    struct ConnectionRow {
        client_id: Uuid,
        name: String,
        owner_id: Uuid,
        owner_name: String,
        documentation_url: Option<String>,
        scopes: i32,
        connected_at: DateTime<Utc>,
        used_at: Option<DateTime<Utc>>,
    }
}

impl TryFrom<ConnectionRow> for ConnectedApplication {
    type Error = StoreError;

    fn try_from(row: ConnectionRow) -> Result<Self, StoreError> {
        let client_id = ClientId::from(row.client_id);
        let scopes = ScopeSet::from_bits(row.scopes)
            .map_err(|unknown| StoreError::corrupt("connections", client_id, unknown.to_string()))?;
        Ok(Self {
            client_id,
            name: row.name,
            owner: row.owner_id.into(),
            owner_name: row.owner_name,
            documentation_url: row.documentation_url,
            scopes,
            connected_at: row.connected_at,
            used_at: row.used_at,
        })
    }
}

/// Reads grants outside a transaction.
#[async_trait]
impl GrantReader for Autocommit {
    async fn holder(&self, key: TokenKey) -> Result<Option<ClientId>, StoreError> {
        let holder = sql!(Uuid:
            "select f.client_id from families f join connections c on c.client_id = f.client_id and c.seller_id = f.seller_id \
               and c.generation = f.generation and c.disconnected_at is null \
               join applications a on a.client_id = f.client_id and a.token_generation = f.application_generation and a.deleted_at is null \
               join sellers s on s.id = f.seller_id and s.token_generation = f.seller_generation and s.closed_at is null where f.id = ", key.family.uuid(),
            " and f.revoked_at is null and (exists (select from refresh_tokens r where r.family_id = f.id and r.hash = ",
            key.hash.bytes().as_slice(), " and r.used_at is null and r.expires_at > (select api_now())\
            ) or exists (select from authorization_codes a where a.family_id = f.id and a.hash = ",
            key.hash.bytes().as_slice(), " and a.used_at is null and a.expires_at > (select api_now())))");
        Ok(self.row(holder).await?.map(ClientId::from))
    }

    async fn seller_of(&self, family: FamilyId, client_id: ClientId) -> Result<Option<SellerId>, StoreError> {
        let seller = sql!(Uuid: "select seller_id from families where id = ", family.uuid(), " and client_id = ",
            client_id.uuid(), "");
        Ok(self.row(seller).await?.map(SellerId::from))
    }

    /// The applications with a grant that can still be used, and the union of the scopes of their consents; and those that have lost
    /// every grant, but still receive events. However many consents there are, those that count are the newest fifty that were not
    /// revoked. If there are as many, and none of them can be used, an older one might be.
    async fn connections(
        &self,
        seller: SellerId,
        after: Option<String>,
        limit: u16,
    ) -> Result<Vec<ConnectedApplication>, StoreError> {
        // Sorted first, so that grants are looked up for the connections of this page alone.
        let connections = sql!(ConnectionRow:
            "with clock as materialized (select api_now() as at), \
             named as (select c.seller_id, c.client_id, c.generation, c.connected_at, a.name, a.owner_id, a.documentation_url, a.scopes, \
                 a.token_generation as application_generation, s.token_generation as seller_generation \
               from connections c join applications a on a.client_id = c.client_id join sellers s on s.id = c.seller_id \
               where c.seller_id = ", seller.uuid(), " and c.disconnected_at is null and a.deleted_at is null and lower(a.name) > lower(",
            after.unwrap_or_default(), ") order by lower(a.name) offset 0) \
             select n.client_id, n.name, o.id, o.name, n.documentation_url, coalesce(g.scopes, 0) & n.scopes, n.connected_at, \
               (select u.used_at from last_uses u where u.seller_id = n.seller_id and u.client_id = n.client_id) \
             from named n cross join lateral (select coalesce(bit_or(f.scopes) filter (where \
                 exists (select from access_tokens t where t.family_id = f.id and t.revoked_at is null and t.expires_at > clock.at) \
                 or exists (select from refresh_tokens r where r.family_id = f.id and r.used_at is null and r.expires_at > clock.at) \
                 or exists (select from authorization_codes a where a.family_id = f.id and a.used_at is null \
                   and a.expires_at > clock.at)), case when count(*) = 50 then bit_or(f.scopes) end) as scopes \
               from clock cross join (select f.id, f.scopes from families f \
                 where f.client_id = n.client_id and f.seller_id = n.seller_id and f.generation = n.generation \
                   and f.generation is not null and f.application_generation = n.application_generation \
                   and f.seller_generation = n.seller_generation and f.revoked_at is null \
                 order by f.created_at desc limit 50) f) g join sellers o on o.id = n.owner_id \
             where o.closed_at is null and (g.scopes is not null or exists (select from subscriptions s where s.seller_id = n.seller_id \
               and s.client_id = n.client_id and s.active and s.connection_generation = n.generation)) \
             order by lower(n.name) limit ", i64::from(limit), "");
        let rows = self.of_seller(seller).rows(connections).await?;
        rows.into_iter().map(ConnectedApplication::try_from).collect()
    }
}
