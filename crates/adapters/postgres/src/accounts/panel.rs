//! Accounts and their data, read outside a transaction: sellers, sessions, passwords, one-time links, tokens,
//! usage.

use std::collections::HashMap;

use accounts::{
    Account, AccountReader, HourlyUsage, Link, LinkKind, OperatorReader, OperatorTokenRecord, PasswordHash,
    PersonalToken, SESSION_IDLE, SESSION_LIFETIME, Seller, Session, SignedIn,
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::QueryResult;
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Binary, Bool, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{SellerId, StoreError};
use oauth::{ClientId, FamilyId, SecretHash};
use usecases::LockSet;
use uuid::Uuid;

use super::{LinkRow, PasswordRow, SellerRow, usage};
use crate::batch::{BatchQuery, Reads};
use crate::oauth::scopes;
use crate::schema::{operator_tokens, sellers, sessions};
use crate::sql::microseconds;
use crate::statement::statements;

statements! {
    "panel.sql";
    ACCOUNT: (Text) -> (SellerRow, PasswordRow);
    OPERATORS: (Array<Binary>) -> KnownOperator;
    SIGNED_IN: (Array<Binary>, BigInt, BigInt) -> SignedInRow;
    LINK: (Binary) -> (LinkRow, SellerRow);
    /// Those that the gate would accept while account and application are open.
    pub(super) PERSONAL_TOKENS: (SqlUuid, Nullable<Timestamptz>) -> TokenRow;
}

#[derive(QueryableByName)]
#[diesel(table_name = sessions)]
struct SignedInRow {
    hash: Vec<u8>,
    #[diesel(embed)]
    seller: SellerRow,
    #[diesel(sql_type = Timestamptz)]
    opened_at: DateTime<Utc>,
    seen_at: DateTime<Utc>,
    #[diesel(sql_type = Timestamptz)]
    now: DateTime<Utc>,
}

#[derive(QueryableByName)]
pub(super) struct TokenRow {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Integer)]
    scopes: i32,
    #[diesel(sql_type = Timestamptz)]
    created_at: DateTime<Utc>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    expires_at: Option<DateTime<Utc>>,
}

impl TryFrom<TokenRow> for PersonalToken {
    type Error = StoreError;

    fn try_from(row: TokenRow) -> Result<Self, StoreError> {
        let id = FamilyId::from(row.id);
        Ok(Self {
            id,
            name: row.name,
            scopes: scopes("families", id, row.scopes)?,
            created_at: row.created_at,
            expires_at: row.expires_at,
        })
    }
}

#[derive(Queryable, Selectable, QueryableByName)]
#[diesel(table_name = operator_tokens, check_for_backend(Pg))]
pub(super) struct OperatorRow {
    pub(super) id: Uuid,
    name: String,
    created_at: DateTime<Utc>,
    revoked_at: Option<DateTime<Utc>>,
    used_at: Option<DateTime<Utc>>,
    expires_at: Option<DateTime<Utc>>,
    read_only: bool,
}

#[derive(QueryableByName)]
#[diesel(table_name = operator_tokens)]
struct KnownOperator {
    hash: Vec<u8>,
    #[diesel(embed)]
    token: OperatorRow,
    #[diesel(sql_type = Bool)]
    live: bool,
}

impl From<OperatorRow> for OperatorTokenRecord {
    fn from(row: OperatorRow) -> Self {
        Self {
            id: row.id,
            name: row.name,
            created_at: row.created_at,
            revoked_at: row.revoked_at,
            used_at: row.used_at,
            expires_at: row.expires_at,
            read_only: row.read_only,
        }
    }
}

impl TryFrom<SignedInRow> for SignedIn {
    type Error = StoreError;

    fn try_from(row: SignedInRow) -> Result<Self, StoreError> {
        let seller = Seller::from(row.seller);
        let session = Session {
            hash: SecretHash::try_from(row.hash.as_slice()).map_err(StoreError::unexpected)?,
            seller: seller.id,
            created_at: row.opened_at,
            seen_at: row.seen_at,
        };
        Ok(Self {
            seller,
            session,
            now: row.now,
        })
    }
}

/// A batch of presented sessions, also of those that are not there. Records the use of each if the last record
/// is at least a minute old.
pub(crate) struct Sessions;

#[async_trait]
impl BatchQuery for Sessions {
    const NAME: &'static str = "sessions";
    type Question = SecretHash;
    type Answer = Option<SignedIn>;

    async fn answer(
        &self,
        mut connection: &AsyncPgConnection,
        sessions: &[SecretHash],
    ) -> QueryResult<Vec<Result<Option<SignedIn>, StoreError>>> {
        let (idle, lifetime) = (microseconds(SESSION_IDLE), microseconds(SESSION_LIFETIME));
        let signed_in = SIGNED_IN.bind((distinct(sessions), idle, lifetime));
        let rows = signed_in.get_results::<SignedInRow>(&mut connection).await?;
        // An invalid row is an error only for its own callers.
        let read = |row: SignedInRow| (row.hash.clone(), SignedIn::try_from(row));
        let found: HashMap<_, _> = rows.into_iter().map(read).collect();
        let answer = |session: &SecretHash| found.get(session.bytes().as_slice()).cloned().transpose();
        Ok(sessions.iter().map(answer).collect())
    }
}

/// A batch of presented operator tokens. Records each use, as [`Sessions`] does.
pub(crate) struct Operators;

/// A live token, or one that has ended, if there is one.
type Presented = Result<OperatorTokenRecord, Option<OperatorTokenRecord>>;

#[async_trait]
impl BatchQuery for Operators {
    const NAME: &'static str = "operator_tokens";
    type Question = SecretHash;
    type Answer = Presented;

    async fn answer(
        &self,
        mut connection: &AsyncPgConnection,
        tokens: &[SecretHash],
    ) -> QueryResult<Vec<Result<Presented, StoreError>>> {
        let rows = OPERATORS.bind((distinct(tokens),));
        let rows = rows.get_results::<KnownOperator>(&mut connection).await?;
        let read = |row: KnownOperator| {
            let token = OperatorTokenRecord::from(row.token);
            (row.hash, if row.live { Ok(token) } else { Err(Some(token)) })
        };
        let found: HashMap<_, _> = rows.into_iter().map(read).collect();
        let answer = |token: &SecretHash| found.get(token.bytes().as_slice()).cloned().unwrap_or(Err(None));
        Ok(tokens.iter().map(answer).map(Ok).collect())
    }
}

fn distinct(hashes: &[SecretHash]) -> Vec<&[u8]> {
    let mut hashes: Vec<_> = hashes.iter().map(|hash| hash.bytes().as_slice()).collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

/// Reads accounts; look-ups of sessions are batched. Each other call is one autocommitted statement.
#[async_trait]
impl AccountReader for Reads<Sessions> {
    async fn seller(&self, id: SellerId) -> Result<Option<Seller>, StoreError> {
        let seller = sellers::table.find(id.uuid()).select(SellerRow::as_select());
        // In the panel: a seller who is asked for consent does not wait behind the owner's own requests.
        let marketplace = self.statements.sharing(LockSet::of_marketplace(id));
        Ok(marketplace.row(seller).await?.map(Seller::from))
    }

    async fn sellers(&self, after: i32, limit: u16) -> Result<Vec<Seller>, StoreError> {
        let some = sellers::table
            .filter(sellers::seller_no.gt(after))
            .order(sellers::seller_no)
            .limit(limit.into())
            .select(SellerRow::as_select());
        let rows = self.statements.rows(some).await?;
        Ok(rows.into_iter().map(Seller::from).collect())
    }

    async fn account(&self, email: &str) -> Result<Option<Account>, StoreError> {
        let strangers = self.statements.sharing(LockSet::of_strangers());
        let Some((seller, password)) = strangers.row(ACCOUNT.bind((email,))).await? else {
            return Ok(None);
        };
        let seller = Seller::from(seller);
        if !accounts::is_same_address(&seller.email, email) {
            return Ok(None);
        }
        Ok(Some(Account {
            seller,
            password: password.password(),
        }))
    }

    async fn password(&self, seller: SellerId) -> Result<Option<PasswordHash>, StoreError> {
        let password = sellers::table
            .find(seller.uuid())
            .select(PasswordRow::as_select());
        let row = self.statements.of_seller(seller).row(password).await?;
        Ok(row.and_then(PasswordRow::password))
    }

    async fn signed_in(&self, session: SecretHash) -> Result<Option<SignedIn>, StoreError> {
        self.batches.ask(session).await
    }

    /// A link that is still usable.
    async fn link(&self, hash: SecretHash) -> Result<Option<(Link, Seller)>, StoreError> {
        let strangers = self.statements.sharing(LockSet::of_strangers());
        let Some((link, seller)) = strangers.row(LINK.bind((hash.bytes(),))).await? else {
            return Ok(None);
        };
        let seller = Seller::from(seller);
        let corrupt = || StoreError::corrupt("links", seller.id, format!("kind {:?}", link.kind));
        let link = Link {
            hash,
            kind: LinkKind::parse(&link.kind).ok_or_else(corrupt)?,
            seller: seller.id,
            expires_at: link.expires_at,
        };
        Ok(Some((link, seller)))
    }

    async fn personal_tokens(&self, seller: SellerId) -> Result<Vec<PersonalToken>, StoreError> {
        let live = PERSONAL_TOKENS.bind((seller.uuid(), None::<DateTime<Utc>>));
        let rows = self.statements.of_seller(seller).rows(live).await?;
        rows.into_iter().map(PersonalToken::try_from).collect()
    }

    async fn usage(
        &self,
        seller: SellerId,
        client_id: ClientId,
        since: DateTime<Utc>,
    ) -> Result<(Vec<HourlyUsage>, u64), StoreError> {
        usage::read(&self.statements.of_seller(seller), client_id, since).await
    }
}

/// Reads operator tokens; look-ups of presented ones are batched.
#[async_trait]
impl OperatorReader for Reads<Operators> {
    async fn operator(&self, hash: SecretHash) -> Result<Presented, StoreError> {
        self.batches.ask(hash).await
    }

    async fn operator_tokens(&self) -> Result<Vec<OperatorTokenRecord>, StoreError> {
        let all = operator_tokens::table
            .order((operator_tokens::created_at, operator_tokens::id))
            .select(OperatorRow::as_select());
        let rows = self.statements.rows(all).await?;
        Ok(rows.into_iter().map(OperatorTokenRecord::from).collect())
    }
}
