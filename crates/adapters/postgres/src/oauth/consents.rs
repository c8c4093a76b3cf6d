//! Reads the connections that consents create, and the holders of codes and tokens.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::sql_types::{BigInt, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel::{QueryResult, QueryableByName};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{SellerId, StoreError};
use oauth::{ClientId, ConnectedApplication, GrantReader, Holder, TokenKey};
use uuid::Uuid;

use super::{CREDENTIALS, CredentialRow, credentials, scopes};
use crate::batch::{BatchQuery, Reads};
use crate::schema::applications;
use crate::statement::statements;

statements! {
    "consents.sql";
    CONNECTIONS: (SqlUuid, Text, Nullable<SqlUuid>, BigInt) -> ConnectionRow;
}

#[derive(QueryableByName)]
#[diesel(table_name = applications)]
struct ConnectionRow {
    client_id: Uuid,
    name: String,
    owner_id: Uuid,
    #[diesel(sql_type = Text)]
    owner_name: String,
    documentation_url: Option<String>,
    scopes: i32,
    #[diesel(sql_type = Timestamptz)]
    connected_at: DateTime<Utc>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    used_at: Option<DateTime<Utc>>,
}

impl TryFrom<ConnectionRow> for ConnectedApplication {
    type Error = StoreError;

    fn try_from(row: ConnectionRow) -> Result<Self, StoreError> {
        let client_id = ClientId::from(row.client_id);
        Ok(Self {
            client_id,
            name: row.name,
            owner: row.owner_id.into(),
            owner_name: row.owner_name,
            documentation_url: row.documentation_url,
            scopes: scopes("connections", client_id, row.scopes)?,
            connected_at: row.connected_at,
            used_at: row.used_at,
        })
    }
}

/// A batch of presented codes and tokens, also of those that are not there.
pub(crate) struct Holders;

#[async_trait]
impl BatchQuery for Holders {
    const NAME: &'static str = "holders";
    type Question = TokenKey;
    type Answer = Option<Holder>;

    async fn answer(
        &self,
        mut connection: &AsyncPgConnection,
        keys: &[TokenKey],
    ) -> QueryResult<Vec<Result<Option<Holder>, StoreError>>> {
        let mut answers: Vec<_> = keys.iter().map(|_| Ok(None)).collect();
        let rows = CREDENTIALS.bind(credentials(keys));
        for row in rows.get_results::<CredentialRow>(&mut connection).await? {
            let place = usize::try_from(row.n - 1).unwrap_or(usize::MAX);
            let Some(answer) = answers.get_mut(place) else {
                continue;
            };
            let (at, is_access) = (row.at, row.is_access);
            // An invalid row is an error only for its own caller.
            *answer = row.read().map(|(family, credential)| {
                let is_known = credential.is_some() || is_access;
                is_known.then(|| Holder {
                    client_id: family.client_id,
                    seller: family.seller,
                    is_usable: credential.is_some_and(|credential| credential.is_usable(&family, at)),
                })
            });
        }
        Ok(answers)
    }
}

/// Reads grants outside a transaction; look-ups of presented codes and tokens are batched.
#[async_trait]
impl GrantReader for Reads<Holders> {
    async fn holder(&self, key: TokenKey) -> Result<Option<Holder>, StoreError> {
        self.batches.ask(key).await
    }

    async fn connections(
        &self,
        seller: SellerId,
        after: Option<String>,
        limit: u16,
    ) -> Result<Vec<ConnectedApplication>, StoreError> {
        let (after, limit) = (after.unwrap_or_default(), i64::from(limit));
        let connections = CONNECTIONS.bind((seller.uuid(), after, None::<Uuid>, limit));
        let rows = self.statements.of_seller(seller).rows(connections).await?;
        rows.into_iter().map(ConnectedApplication::try_from).collect()
    }

    async fn connection(
        &self,
        seller: SellerId,
        client_id: ClientId,
    ) -> Result<Option<ConnectedApplication>, StoreError> {
        let connection = CONNECTIONS.bind((seller.uuid(), String::new(), Some(client_id.uuid()), 1_i64));
        let row = self.statements.of_seller(seller).row(connection).await?;
        row.map(ConnectedApplication::try_from).transpose()
    }
}
