//! Operators' tokens.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::StoreError;
use oauth::{OperatorTokenRow, OperatorTokenStore, OperatorTokens, SecretHash};
use uuid::Uuid;

use crate::{
    connection::pool::Autocommit,
    sql::{row, sql},
    unit_of_work::{Tx, expect_rows},
};

row! {
    struct TokenRow {
        id: Uuid,
        name: String,
        created_at: DateTime<Utc>,
        revoked_at: Option<DateTime<Utc>>,
    }
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
pub(crate) struct StoredOperatorTokens(pub(crate) Autocommit);

#[async_trait]
impl OperatorTokens for StoredOperatorTokens {
    async fn operator(&self, hash: SecretHash) -> Result<Option<OperatorTokenRow>, StoreError> {
        let living = sql!(TokenRow: "select id, name, created_at, revoked_at from operator_tokens \
            where revoked_at is null and hash = ", hash.bytes().as_slice(), "");
        Ok(self.0.row(living).await?.map(OperatorTokenRow::from))
    }

    async fn operator_tokens(&self) -> Result<Vec<OperatorTokenRow>, StoreError> {
        let all = sql!(TokenRow: "select id, name, created_at, revoked_at from operator_tokens order by created_at, id");
        let rows = self.0.rows(all).await?;
        Ok(rows.into_iter().map(OperatorTokenRow::from).collect())
    }
}

#[async_trait]
impl OperatorTokenStore for Tx {
    async fn add_operator_token(&self, id: Uuid, name: &str, hash: SecretHash) -> Result<(), StoreError> {
        let insert = sql!((): "insert into operator_tokens (id, name, hash) values (", id, ", ", name, ", ",
            hash.bytes().as_slice(), ")");
        expect_rows("operator_tokens", self.execute(insert).await?, 1)
    }

    async fn revoke_operator_token(&self, id: Uuid) -> Result<bool, StoreError> {
        let revoke = sql!((): "update operator_tokens set revoked_at = api_now() where revoked_at is null and id = ", id, "");
        Ok(self.execute(revoke).await? == 1)
    }
}
