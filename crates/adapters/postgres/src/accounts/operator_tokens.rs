//! Operators' tokens.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::{
    ExpressionMethods, NullableExpressionMethods, OptionalExtension, QueryDsl, Queryable, Selectable,
    SelectableHelper, pg::Pg,
};
use diesel_async::RunQueryDsl;
use kernel::StoreError;
use oauth::{OperatorTokenRow, OperatorTokenStore, OperatorTokens, SecretHash};
use uuid::Uuid;

use crate::{
    pending::expect_rows,
    reads::Reads,
    schema::{api_now, operator_tokens},
    transaction::Tx,
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = operator_tokens, check_for_backend(Pg))]
struct TokenRow {
    id: Uuid,
    name: String,
    created_at: DateTime<Utc>,
    revoked_at: Option<DateTime<Utc>>,
}

impl From<TokenRow> for OperatorTokenRow {
    fn from(row: TokenRow) -> Self {
        Self {
            id: row.id,
            name: row.name,
            created_at: row.created_at,
            revoked_at: row.revoked_at,
        }
    }
}

/// Each call is one statement with its own transaction.
pub(crate) struct StoredOperatorTokens(pub(crate) Reads);

#[async_trait]
impl OperatorTokens for StoredOperatorTokens {
    async fn operator(&self, hash: SecretHash) -> Result<Option<OperatorTokenRow>, StoreError> {
        let living = operator_tokens::table
            .filter(operator_tokens::hash.eq(hash.bytes().to_vec()))
            .filter(operator_tokens::revoked_at.is_null())
            .select(TokenRow::as_select());
        let ask = self
            .0
            .ask(|lent| async move { living.get_result(&mut lent.connection()).await.optional() });
        Ok(ask.await?.map(OperatorTokenRow::from))
    }

    async fn operator_tokens(&self) -> Result<Vec<OperatorTokenRow>, StoreError> {
        let all = operator_tokens::table
            .order((operator_tokens::created_at, operator_tokens::id))
            .select(TokenRow::as_select());
        let rows = self
            .0
            .ask(|lent| async move { all.get_results(&mut lent.connection()).await })
            .await?;
        Ok(rows.into_iter().map(OperatorTokenRow::from).collect())
    }
}

#[async_trait]
impl OperatorTokenStore for Tx {
    async fn add_operator_token(&self, id: Uuid, name: &str, hash: SecretHash) -> Result<(), StoreError> {
        let insert = diesel::insert_into(operator_tokens::table).values((
            operator_tokens::id.eq(id),
            operator_tokens::name.eq(name),
            operator_tokens::hash.eq(hash.bytes().to_vec()),
        ));
        let stored = self.run(insert.execute(&mut self.connection())).await?;
        expect_rows("operator_tokens", stored, 1)
    }

    async fn revoke_operator_token(&self, id: Uuid) -> Result<bool, StoreError> {
        let revoke = diesel::update(operator_tokens::table.find(id))
            .filter(operator_tokens::revoked_at.is_null())
            .set(operator_tokens::revoked_at.eq(api_now().nullable()));
        Ok(self.run(revoke.execute(&mut self.connection())).await? == 1)
    }
}
