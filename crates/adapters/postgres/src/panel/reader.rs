//! What the panel shows, outside a transaction.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::{
    ExpressionMethods, OptionalExtension, QueryDsl, Queryable, SelectableHelper,
    sql_types::{Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use kernel::{SellerId, StoreError};
use oauth::{
    Account, ClientId, FamilyId, HourlyUsage, Limiter, Link, PanelReader, PasswordHash, PersonalToken,
    ScopeSet, SecretHash, Seller, SignedIn, Subject,
};
use uuid::Uuid;

use super::{
    links::{self, Read},
    sessions::{LookUp, SignedInRow},
    usage::{self, Of, UsageRow},
};
use crate::{
    accounts::SellerRow,
    reads::Reads,
    schema::{lower, sellers},
    statement::statement,
};

/// The personal tokens that the gate would let in, as far as they themselves are concerned.
struct Tokens {
    seller: Uuid,
}

statement!(Tokens => (SqlUuid, Text, Integer, Timestamptz, Nullable<Timestamptz>):
    "with clock as materialized (select api_now() as at) select p.id, p.name, f.scopes, p.created_at, t.expires_at \
     from clock cross join personal_tokens p join families f on f.id = p.id join access_tokens t on t.family_id = f.id \
     where p.seller_id = ", seller: SqlUuid,
    " and f.revoked_at is null and t.revoked_at is null and (t.expires_at is null or t.expires_at > clock.at) \
     order by p.created_at desc, p.id desc");

#[derive(Queryable)]
struct TokenRow {
    id: Uuid,
    name: String,
    scopes: i32,
    created_at: DateTime<Utc>,
    expires_at: Option<DateTime<Utc>>,
}

impl TryFrom<TokenRow> for PersonalToken {
    type Error = StoreError;

    fn try_from(row: TokenRow) -> Result<Self, StoreError> {
        let id = FamilyId::from(row.id);
        Ok(Self {
            id,
            name: row.name,
            scopes: ScopeSet::from_bits(row.scopes)
                .map_err(|unknown| StoreError::corrupt("families", id, unknown.to_string()))?,
            created_at: row.created_at,
            expires_at: row.expires_at,
        })
    }
}

/// Reads what the panel shows. Each call is one statement.
pub(crate) struct Panel(pub(crate) Reads);

#[async_trait]
impl PanelReader for Panel {
    async fn account(&self, email: &str) -> Result<Option<Account>, StoreError> {
        let account = sellers::table
            .filter(lower(sellers::email).eq(lower(email.to_owned())))
            .select((SellerRow::as_select(), sellers::password_hash));
        let ask = self.0.ask(|lent| async move {
            account
                .get_result::<(SellerRow, Option<String>)>(&mut lent.connection())
                .await
                .optional()
        });
        let Some((seller, password)) = ask.await? else {
            return Ok(None);
        };
        let seller = Seller::try_from(seller)?;
        if !oauth::is_same_address(&seller.email, email) {
            return Ok(None);
        }
        Ok(Some(Account {
            seller,
            password: password.map(PasswordHash::new),
        }))
    }

    async fn password(&self, seller: SellerId) -> Result<Option<PasswordHash>, StoreError> {
        let password = sellers::table.find(seller.uuid()).select(sellers::password_hash);
        let ask = self.0.ask(|lent| async move {
            password
                .get_result::<Option<String>>(&mut lent.connection())
                .await
                .optional()
        });
        Ok(ask.await?.flatten().map(PasswordHash::new))
    }

    async fn signed_in(&self, session: SecretHash) -> Result<Option<SignedIn>, StoreError> {
        let look_up = LookUp::new(&session);
        let ask = self.0.ask(|lent| async move {
            look_up
                .get_result::<SignedInRow>(&mut lent.connection())
                .await
                .optional()
        });
        ask.await?.map(|row| row.signed_in(session)).transpose()
    }

    async fn link(&self, hash: SecretHash) -> Result<Option<(Link, Seller)>, StoreError> {
        let read = Read {
            hash: hash.bytes().to_vec(),
        };
        let ask = self.0.ask(|lent| async move {
            read.get_result::<(String, DateTime<Utc>, SellerRow)>(&mut lent.connection())
                .await
                .optional()
        });
        let Some((kind, expires_at, seller)) = ask.await? else {
            return Ok(None);
        };
        let seller = Seller::try_from(seller)?;
        Ok(Some((links::link(hash, &kind, expires_at, seller.id)?, seller)))
    }

    async fn personal_tokens(&self, seller: SellerId) -> Result<Vec<PersonalToken>, StoreError> {
        let tokens = Tokens {
            seller: seller.uuid(),
        };
        let rows = self
            .0
            .ask(|lent| async move { tokens.get_results::<TokenRow>(&mut lent.connection()).await })
            .await?;
        rows.into_iter().map(PersonalToken::try_from).collect()
    }

    async fn usage(
        &self,
        client_id: ClientId,
        since: DateTime<Utc>,
    ) -> Result<(Vec<HourlyUsage>, u64), StoreError> {
        let of = Of {
            client: client_id.uuid(),
            since,
            kind: Limiter::Api.code(),
            subject: Subject::client(client_id).uuid(),
        };
        let rows = self
            .0
            .ask(|lent| async move { of.get_results::<UsageRow>(&mut lent.connection()).await })
            .await?;
        usage::usage(client_id, rows)
    }
}
