//! Issuing and revoking tokens within a transaction.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::{
    BoolExpressionMethods, ExpressionMethods, JoinOnDsl, NullableExpressionMethods, QueryDsl,
    sql_types::{Binary, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use kernel::{SellerId, StoreError};
use oauth::{FamilyId, FamilyKind, NewToken, TokenStore};
use uuid::Uuid;

use crate::{
    schema::{access_tokens, api_now, families, personal_tokens},
    statement::statement,
    transaction::Tx,
};

/// A family with its first token.
struct Issue {
    family: Uuid,
    seller: Uuid,
    client: Uuid,
    kind: &'static str,
    scopes: i32,
    hash: Vec<u8>,
    expires_at: Option<DateTime<Utc>>,
}

statement!(Issue => ():
    "with family as (insert into families (id, seller_id, client_id, kind, scopes) values (", family: SqlUuid,
    ", ", seller: SqlUuid,
    ", ", client: SqlUuid,
    ", ", kind: Text,
    ", ", scopes: Integer,
    ") returning id) insert into access_tokens (family_id, hash, expires_at) select id, ", hash: Binary,
    ", ", expires_at: Nullable<Timestamptz>, " from family");

#[async_trait]
impl TokenStore for Tx {
    async fn issue_token(&self, token: NewToken) -> Result<(), StoreError> {
        if token.expires_at.is_none() && token.kind != FamilyKind::Personal {
            return Err(StoreError::unexpected("only a personal token may live for ever"));
        }
        let issue = Issue {
            family: token.family.uuid(),
            seller: token.grant.seller.uuid(),
            client: token.grant.client_id.uuid(),
            kind: token.kind.as_str(),
            scopes: token.grant.scopes.bits(),
            hash: token.hash.bytes().to_vec(),
            expires_at: token.expires_at,
        };
        one_row(self.run(issue.execute(&mut self.connection())).await?)
    }

    async fn add_personal_token(
        &self,
        seller: SellerId,
        family: FamilyId,
        name: &str,
    ) -> Result<(), StoreError> {
        let insert = diesel::insert_into(personal_tokens::table).values((
            personal_tokens::seller_id.eq(seller.uuid()),
            personal_tokens::id.eq(family.uuid()),
            personal_tokens::name.eq(name),
        ));
        one_row(self.run(insert.execute(&mut self.connection())).await?)
    }

    async fn count_personal_tokens(&self, seller: SellerId, now: DateTime<Utc>) -> Result<usize, StoreError> {
        let unexpired = access_tokens::expires_at
            .is_null()
            .or(access_tokens::expires_at.gt(now));
        let alive = personal_tokens::table
            .inner_join(families::table.on(families::id.eq(personal_tokens::id)))
            .inner_join(access_tokens::table.on(access_tokens::family_id.eq(personal_tokens::id)))
            .filter(personal_tokens::seller_id.eq(seller.uuid()))
            .filter(families::revoked_at.is_null())
            .filter(access_tokens::revoked_at.is_null())
            .filter(unexpired.assume_not_null())
            .count();
        let count = self.run(alive.get_result::<i64>(&mut self.connection())).await?;
        usize::try_from(count).map_err(StoreError::unexpected)
    }

    async fn revoke_personal_token(&self, seller: SellerId, family: FamilyId) -> Result<bool, StoreError> {
        // The family is what the gate looks at. That it is the seller's own stands in its row too.
        let revoke = diesel::update(families::table.find(family.uuid()))
            .filter(families::seller_id.eq(seller.uuid()))
            .filter(families::kind.eq(FamilyKind::Personal.as_str()))
            .filter(families::revoked_at.is_null())
            .set(families::revoked_at.eq(api_now().nullable()));
        Ok(self.run(revoke.execute(&mut self.connection())).await? == 1)
    }
}

fn one_row(rows: usize) -> Result<(), StoreError> {
    if rows == 1 {
        return Ok(());
    }
    Err(StoreError::unexpected(format!(
        "{rows} tokens were stored instead of one"
    )))
}
