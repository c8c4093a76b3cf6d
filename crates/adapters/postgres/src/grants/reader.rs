//! Grants outside a transaction.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::{
    OptionalExtension, Queryable,
    sql_types::{Binary, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use kernel::{SellerId, StoreError};
use oauth::{ClientId, ConnectedApplication, GrantReader, ScopeSet, TokenKey};
use uuid::Uuid;

use crate::{reads::Reads, statement::statement};

/// Whose a code or a refresh token is, whether it can still be used or not.
struct Holder {
    family: Uuid,
    hash: Vec<u8>,
}

statement!(Holder => SqlUuid:
    "select f.client_id from families f where f.id = ", family: SqlUuid,
    " and (exists (select from refresh_tokens r where r.family_id = f.id and r.hash = ", hash: Binary,
    ") or exists (select from authorization_codes c where c.family_id = f.id and c.hash = ", hash: Binary, "))");

/// The applications of which something is left that could be used, and what the consents behind it allow together.
struct Connections {
    seller: Uuid,
}

statement!(Connections => (SqlUuid, Text, SqlUuid, Text, Nullable<Text>, Integer, Timestamptz, Nullable<Timestamptz>):
    "with clock as materialized (select api_now() as at), \
     living as materialized (select c.client_id, c.connected_at, bit_or(f.scopes) as scopes \
       from connections c cross join clock join families f on f.client_id = c.client_id and f.seller_id = c.seller_id \
         and f.generation = c.generation \
       where c.seller_id = ", seller: SqlUuid,
    " and c.disconnected_at is null and f.revoked_at is null and (\
         exists (select from access_tokens t where t.family_id = f.id and t.revoked_at is null and t.expires_at > clock.at) \
         or exists (select from refresh_tokens r where r.family_id = f.id and r.used_at is null and r.expires_at > clock.at) \
         or exists (select from authorization_codes a where a.family_id = f.id and a.used_at is null \
           and a.expires_at > clock.at)) group by c.client_id, c.seller_id) \
     select a.client_id, a.name, o.id, o.name, a.documentation_url, l.scopes & a.scopes, l.connected_at, \
       (select max(u.last_at) from api_usage u where u.seller_id = ", seller: SqlUuid,
    " and u.client_id = a.client_id) \
     from living l join applications a on a.client_id = l.client_id join sellers o on o.id = a.owner_id \
     where a.deleted_at is null order by lower(a.name)");

#[derive(Queryable)]
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
pub(crate) struct Grants(pub(crate) Reads);

#[async_trait]
impl GrantReader for Grants {
    async fn holder(&self, key: TokenKey) -> Result<Option<ClientId>, StoreError> {
        let holder = Holder {
            family: key.family.uuid(),
            hash: key.hash.bytes().to_vec(),
        };
        let ask = self
            .0
            .ask(|lent| async move { holder.get_result::<Uuid>(&mut lent.connection()).await.optional() });
        Ok(ask.await?.map(ClientId::from))
    }

    async fn connections(&self, seller: SellerId) -> Result<Vec<ConnectedApplication>, StoreError> {
        let connections = Connections {
            seller: seller.uuid(),
        };
        let rows = self
            .0
            .ask(|lent| async move {
                connections
                    .get_results::<ConnectionRow>(&mut lent.connection())
                    .await
            })
            .await?;
        rows.into_iter().map(ConnectedApplication::try_from).collect()
    }
}
