//! Applications, grants and tokens. This file issues, locks, consumes and revokes token families within a transaction.

pub(crate) mod applications;
pub(crate) mod client_tokens;
pub(crate) mod consents;
pub(crate) mod exchanges;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::sql_types::{Binary, Bool, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl, methods::LoadQuery};
use futures_util::{future::BoxFuture, join};
use kernel::{SellerId, StoreError};
use oauth::{
    ApplicationStatus, ClientId, Code, CodeChallenge, Consent, ConsentId, FamiliesOf, Family, FamilyId,
    FamilyKind, FamilyStatus, GrantStore, NewConsent, NewPair, NewToken, RefreshToken, ScopeSet, TokenKey,
    UnknownScope, Viewer,
};
use uuid::Uuid;

use crate::follow_ups::FollowUp;
use crate::schema::{self, access_tokens, api_now, authorization_codes, families, refresh_tokens, sellers};
use crate::statement::{Prepared, Returns, Statement, statements};
use crate::unit_of_work::{Tx, expect_rows};

statements! {
    "oauth.sql";
    LOCK_FAMILY: (SqlUuid) -> FamilyRow;
    FAMILY_STATE: (SqlUuid) -> StateRow;
    ISSUE_TOKEN: (SqlUuid, Text, Integer, SqlUuid, SqlUuid, Binary, Nullable<Timestamptz>);
    USE_CODE: (SqlUuid, Binary, Binary, Timestamptz, Binary, Timestamptz, Integer);
    USE_REFRESH_TOKEN: (SqlUuid, Binary, Binary, Timestamptz, Binary, Timestamptz, Integer);
    STORED_SCOPES: (SqlUuid, Binary) -> ScopesRow;
    REVOKE_FAMILY: (SqlUuid);
}

#[derive(QueryableByName)]
#[diesel(table_name = families, check_for_backend(Pg))]
struct FamilyRow {
    seller_id: Uuid,
    client_id: Uuid,
    scopes: i32,
    revoked_at: Option<DateTime<Utc>>,
    #[diesel(sql_type = Bool)]
    disconnected: bool,
}

/// The states that a family depends on. `revoked` along with all tokens of its application or account.
#[derive(QueryableByName)]
#[diesel(check_for_backend(Pg))]
struct StateRow {
    #[diesel(sql_type = Bool)]
    revoked: bool,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    closed_at: Option<DateTime<Utc>>,
    #[diesel(sql_type = Nullable<Text>)]
    status: Option<String>,
    #[diesel(sql_type = Nullable<Integer>)]
    application_scopes: Option<i32>,
}

fn family(id: FamilyId, row: &FamilyRow, state: StateRow) -> Result<Family, StoreError> {
    let client_id = ClientId::from(row.client_id);
    let scopes = ScopeSet::from_bits(row.scopes)
        .map_err(|unknown| StoreError::corrupt("families", id, unknown.to_string()))?;
    let corrupt = |reason: String| StoreError::corrupt("applications", client_id, reason);
    let application = match (state.status, state.application_scopes) {
        (Some(status), Some(application_scopes)) => Some((
            ApplicationStatus::parse(&status).ok_or_else(|| corrupt(format!("status {status:?}")))?,
            ScopeSet::from_bits(application_scopes).map_err(|unknown| corrupt(unknown.to_string()))?,
        )),
        _ => None,
    };
    Ok(Family {
        id,
        seller: row.seller_id.into(),
        client_id,
        scopes,
        status: FamilyStatus {
            revoked: row.revoked_at.is_some() || state.revoked,
            disconnected: row.disconnected,
            closed: state.closed_at.is_some(),
            application,
        },
    })
}

/// Locks a family and the connection that it depends on.
///
/// A statement after the lock reads the application and the account, so that it sees everything committed during the
/// wait, and a pair never has scopes that were removed before (D83). Neither is locked: the gate checks both at each
/// request, and so rejects a token issued while one of them ends.
async fn lock(tx: &Tx, id: FamilyId) -> QueryResult<Option<(FamilyRow, StateRow)>> {
    let locked = row(tx, LOCK_FAMILY.bind((id.uuid(),)));
    let (locked, state) = pipelined(locked, row(tx, FAMILY_STATE.bind((id.uuid(),)))).await?;
    Ok(locked.zip(state))
}

/// Sends a second statement without waiting for the first one's response. The server executes it after the first one,
/// so it reads after the lock.
async fn pipelined<A, B>(
    first: impl Future<Output = QueryResult<A>>,
    second: impl Future<Output = QueryResult<B>>,
) -> QueryResult<(A, B)> {
    let (first, second) = join!(first, second);
    Ok((first?, second?))
}

/// The row of a statement that returns at most one, and that is sent with others.
fn row<'t, S>(tx: &'t Tx, statement: S) -> BoxFuture<'t, QueryResult<Option<S::Row>>>
where
    S: Returns + Send + 't,
    Prepared<S>: LoadQuery<'t, &'t AsyncPgConnection, S::Row>,
{
    Box::pin(async move {
        Prepared(statement)
            .get_result(&mut tx.connection())
            .await
            .optional()
    })
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = authorization_codes, check_for_backend(Pg))]
struct CodeRow {
    redirect_uri: String,
    code_challenge: String,
    expires_at: DateTime<Utc>,
    used_at: Option<DateTime<Utc>>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = refresh_tokens, check_for_backend(Pg))]
struct RefreshTokenRow {
    scopes: i32,
    expires_at: DateTime<Utc>,
    used_at: Option<DateTime<Utc>>,
}

#[derive(QueryableByName)]
#[diesel(table_name = families, check_for_backend(Pg))]
struct ScopesRow {
    scopes: i32,
}

type Exchange = Statement<(SqlUuid, Binary, Binary, Timestamptz, Binary, Timestamptz, Integer), ()>;

/// Consumes a credential and stores a pair.
async fn exchange(tx: &Tx, statement: &Exchange, key: TokenKey, pair: NewPair) -> Result<(), StoreError> {
    let exchange = statement.bind((
        key.family.uuid(),
        key.hash.bytes().as_slice(),
        pair.refresh.bytes().as_slice(),
        pair.refresh_expires_at,
        pair.access.bytes().as_slice(),
        pair.access_expires_at,
        pair.scopes.bits(),
    ));
    expect_rows("access_tokens", tx.execute(exchange).await?, 1)
}

#[async_trait]
impl GrantStore for Tx {
    async fn issue_token(&self, token: NewToken) -> Result<(), StoreError> {
        if token.expires_at.is_none() && token.kind != FamilyKind::Personal {
            return Err(StoreError::unexpected("only a personal token may never expire"));
        }
        let issue = ISSUE_TOKEN.bind((
            token.family.uuid(),
            token.kind.as_str(),
            token.grant.scopes.bits(),
            token.grant.seller.uuid(),
            token.grant.client_id.uuid(),
            token.hash.bytes().as_slice(),
            token.expires_at,
        ));
        expect_rows("access_tokens", self.execute(issue).await?, 1)
    }

    async fn add_consent(&self, consent: NewConsent) -> Result<(), StoreError> {
        consents::add(self, &consent).await
    }

    async fn lock_family(&self, id: FamilyId) -> Result<Option<Family>, StoreError> {
        let found = self.run(lock(self, id)).await?;
        found.map(|(row, state)| family(id, &row, state)).transpose()
    }

    async fn lock_code(&self, key: TokenKey) -> Result<Option<(Family, Option<Code>)>, StoreError> {
        let code = authorization_codes::table
            .find((key.family.uuid(), key.hash.bytes().as_slice()))
            .select(CodeRow::as_select());
        let (found, code) = self
            .run(pipelined(lock(self, key.family), row(self, code)))
            .await?;
        let Some((row, state)) = found else {
            return Ok(None);
        };
        let read = |row: CodeRow| {
            let corrupt = |invalid| {
                let reason = format!("code_challenge {invalid}");
                StoreError::corrupt("authorization_codes", key.family, reason)
            };
            Ok::<_, StoreError>(Code {
                redirect_uri: row.redirect_uri,
                challenge: CodeChallenge::new(row.code_challenge).map_err(corrupt)?,
                expires_at: row.expires_at,
                used_at: row.used_at,
            })
        };
        let code = code.map(read).transpose()?;
        Ok(Some((family(key.family, &row, state)?, code)))
    }

    async fn lock_refresh_token(
        &self,
        key: TokenKey,
    ) -> Result<Option<(Family, Option<RefreshToken>)>, StoreError> {
        let token = refresh_tokens::table
            .find((key.family.uuid(), key.hash.bytes().as_slice()))
            .select(RefreshTokenRow::as_select());
        let (found, token) = self
            .run(pipelined(lock(self, key.family), row(self, token)))
            .await?;
        let Some((row, state)) = found else {
            return Ok(None);
        };
        let read = |row: RefreshTokenRow| {
            let corrupt = |unknown: UnknownScope| {
                StoreError::corrupt("refresh_tokens", key.family, unknown.to_string())
            };
            Ok::<_, StoreError>(RefreshToken {
                scopes: ScopeSet::from_bits(row.scopes).map_err(corrupt)?,
                expires_at: row.expires_at,
                used_at: row.used_at,
            })
        };
        let token = token.map(read).transpose()?;
        Ok(Some((family(key.family, &row, state)?, token)))
    }

    async fn use_code(&self, key: TokenKey, pair: NewPair) -> Result<(), StoreError> {
        exchange(self, &USE_CODE, key, pair).await
    }

    async fn use_refresh_token(&self, key: TokenKey, pair: NewPair) -> Result<(), StoreError> {
        exchange(self, &USE_REFRESH_TOKEN, key, pair).await
    }

    async fn stored_scopes(&self, key: TokenKey) -> Result<Option<ScopeSet>, StoreError> {
        let stored = STORED_SCOPES.bind((key.family.uuid(), key.hash.bytes().as_slice()));
        let corrupt =
            |unknown: UnknownScope| StoreError::corrupt("access_tokens", key.family, unknown.to_string());
        let row = self.row(stored).await?;
        row.map(|row| ScopeSet::from_bits(row.scopes))
            .transpose()
            .map_err(corrupt)
    }

    async fn revoke_family(&self, id: FamilyId) -> Result<(), StoreError> {
        let revoke = REVOKE_FAMILY.bind((id.uuid(),));
        expect_rows("families", self.execute(revoke).await?, 1)
    }

    /// Raises the generation that all of them were made under. Families in the making die too: they store what they read.
    async fn revoke_families(&self, of: FamiliesOf) -> Result<(), StoreError> {
        match of {
            FamiliesOf::Application(id) => {
                let generation = schema::applications::token_generation;
                let raise = diesel::update(schema::applications::table.find(id.uuid()))
                    .set(generation.eq(generation + 1));
                expect_rows("applications", self.execute(raise).await?, 1)?;
                FollowUp::Application(id).queue(self);
            }
            FamiliesOf::Seller(id) => {
                let generation = sellers::token_generation;
                let raise = diesel::update(sellers::table.find(id.uuid())).set(generation.eq(generation + 1));
                expect_rows("sellers", self.execute(raise).await?, 1)?;
                FollowUp::Seller(id).queue(self);
            }
        }
        Ok(())
    }

    async fn revoke_access_token(&self, key: TokenKey) -> Result<bool, StoreError> {
        let token = access_tokens::table.find((key.family.uuid(), key.hash.bytes().as_slice()));
        let revoke = diesel::update(token.filter(access_tokens::revoked_at.is_null()))
            .set(access_tokens::revoked_at.eq(api_now().nullable()));
        Ok(self.execute(revoke).await? > 0)
    }

    async fn lock_consent(
        &self,
        id: ConsentId,
        viewer: Viewer,
        expires_at: DateTime<Utc>,
    ) -> Result<Consent, StoreError> {
        consents::lock(self, id, viewer, expires_at).await
    }

    async fn save_consent(&self, consent: Consent) -> Result<(), StoreError> {
        let Some(decided_at) = consent.decided_at else {
            return Err(StoreError::unexpected("a consent is saved once it is decided"));
        };
        let open = schema::consents::table
            .find(consent.id.uuid())
            .filter(schema::consents::decided_at.is_null());
        let decide = diesel::update(open).set(schema::consents::decided_at.eq(decided_at));
        expect_rows("consents", self.execute(decide).await?, 1)
    }

    async fn release_consent(&self, id: ConsentId, viewer: Viewer) -> Result<bool, StoreError> {
        let open = schema::consents::table
            .find(id.uuid())
            .filter(schema::consents::seller_id.eq(viewer.seller.uuid()))
            .filter(schema::consents::session_hash.eq(viewer.session.bytes().as_slice()))
            .filter(schema::consents::decided_at.is_null());
        let release = diesel::delete(open);
        Ok(self.execute(release).await? == 1)
    }

    async fn disconnect(&self, seller: SellerId, client_id: ClientId) -> Result<bool, StoreError> {
        consents::disconnect(self, seller, client_id).await
    }
}
