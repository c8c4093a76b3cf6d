//! Applications, grants and tokens. This file locks, consumes and revokes token families within a
//! transaction, and decides consents, which open connections.

pub(crate) mod applications;
pub(crate) mod consents;
pub(crate) mod issuing;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Binary, Bool, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use futures_util::join;
use kernel::{SellerId, StoreError};
use oauth::{
    AccessToken, ApplicationStatus, ClientId, Code, CodeChallenge, Consent, ConsentId, FamiliesOf, Family,
    FamilyId, FamilyKind, FamilyStatus, GrantStore, NewConsent, NewPair, RefreshToken, ScopeSet, SecretHash,
    StoredCredential, TokenKey, Viewer,
};
use uuid::Uuid;

use self::issuing::EXCHANGE;
use crate::follow_ups;
use crate::schema::{self, access_tokens, api_now, connections, families, sellers};
use crate::sql::coalesce;
use crate::statement::statements;
use crate::unit_of_work::{Tx, expect_rows};

statements! {
    "oauth.sql";
    LOCK_FAMILY: (SqlUuid);
    CREDENTIALS: (Array<SqlUuid>, Array<Binary>) -> CredentialRow;
    ADD_CONSENT: (SqlUuid, SqlUuid, SqlUuid, Text, Integer, Binary, Timestamptz, Text, Text);
    ACCESS_TOKEN: (SqlUuid, Binary) -> AccessTokenRow;
}

/// The scopes in a row of this table.
pub(crate) fn scopes(table: &'static str, id: impl ToString, bits: i32) -> Result<ScopeSet, StoreError> {
    ScopeSet::from_bits(bits).map_err(|unknown| StoreError::corrupt(table, id, unknown))
}

/// A family, with all that a verdict on one of its credentials depends on.
#[derive(QueryableByName)]
#[diesel(table_name = families)]
#[expect(clippy::struct_excessive_bools, reason = "each is a column")]
struct CredentialRow {
    /// The credential's place among those asked for, from 1.
    #[diesel(sql_type = BigInt)]
    n: i64,
    #[diesel(sql_type = Timestamptz)]
    at: DateTime<Utc>,
    id: Uuid,
    seller_id: Uuid,
    client_id: Uuid,
    scopes: i32,
    /// Alone, or along with all tokens of its application or account.
    #[diesel(sql_type = Bool)]
    revoked: bool,
    #[diesel(sql_type = Bool)]
    disconnected: bool,
    #[diesel(sql_type = Bool)]
    closed: bool,
    /// The credential is an access token.
    #[diesel(sql_type = Bool)]
    is_access: bool,
    /// Of the application, unless it was deleted.
    #[diesel(sql_type = Nullable<Text>)]
    status: Option<String>,
    #[diesel(sql_type = Nullable<Integer>)]
    application_scopes: Option<i32>,
    /// Of a code.
    #[diesel(sql_type = Nullable<Text>)]
    redirect_uri: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    code_challenge: Option<String>,
    /// Of a refresh token.
    #[diesel(sql_type = Nullable<Integer>)]
    token_scopes: Option<i32>,
    /// Of either.
    #[diesel(sql_type = Nullable<Timestamptz>)]
    expires_at: Option<DateTime<Utc>>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    used_at: Option<DateTime<Utc>>,
    /// `xmin` of the family, connection, application and seller: an update of one may change the verdict.
    #[diesel(sql_type = Text)]
    versions: String,
}

impl CredentialRow {
    fn read(self) -> Result<(Family, Option<StoredCredential>), StoreError> {
        let (id, client_id) = (FamilyId::from(self.id), ClientId::from(self.client_id));
        let held = |(status, bits): (String, i32)| {
            let corrupt = || StoreError::corrupt("applications", client_id, format!("status {status:?}"));
            let status = ApplicationStatus::parse(&status).ok_or_else(corrupt)?;
            Ok::<_, StoreError>((status, scopes("applications", client_id, bits)?))
        };
        let application = self.status.zip(self.application_scopes).map(held);
        let family = Family {
            id,
            seller: self.seller_id.into(),
            client_id,
            scopes: scopes("families", id, self.scopes)?,
            status: FamilyStatus {
                revoked: self.revoked,
                disconnected: self.disconnected,
                closed: self.closed,
                application: application.transpose()?,
            },
        };
        let (Some(expires_at), used_at) = (self.expires_at, self.used_at) else {
            return Ok((family, None));
        };
        let credential = match (self.redirect_uri.zip(self.code_challenge), self.token_scopes) {
            (Some((redirect_uri, challenge)), _) => Some(StoredCredential::Code(Code {
                redirect_uri,
                challenge: CodeChallenge::new(challenge).map_err(|invalid| {
                    StoreError::corrupt("authorization_codes", id, format!("code_challenge {invalid}"))
                })?,
                expires_at,
                used_at,
            })),
            (None, Some(bits)) => Some(StoredCredential::RefreshToken(RefreshToken {
                scopes: scopes("refresh_tokens", id, bits)?,
                expires_at,
                used_at,
            })),
            (None, None) => None,
        };
        Ok((family, credential))
    }
}

/// The values of CREDENTIALS: families and hashes.
fn credentials(keys: &[TokenKey]) -> (Vec<Uuid>, Vec<&[u8]>) {
    let keys = keys.iter();
    keys.map(|key| (key.family.uuid(), key.hash.bytes().as_slice()))
        .unzip()
}

/// Locks a family and the connection that it depends on, and reads it; with a hash, its credential too.
///
/// It is read after the lock, together with the application and the account, so that the statement sees
/// everything committed during the wait, and a pair never has scopes that were removed before (D83). Neither
/// is locked: the gate checks both at each request, and so rejects a token issued while one of them ends.
async fn lock(
    tx: &Tx,
    id: FamilyId,
    hash: &[u8],
) -> Result<Option<(Family, Option<StoredCredential>)>, StoreError> {
    // Pipelined: the server executes the second one after the first.
    let (locked, row) = join!(
        tx.execute(LOCK_FAMILY.bind((id.uuid(),))),
        tx.row(CREDENTIALS.bind((vec![id.uuid()], vec![hash])))
    );
    locked?;
    row?.map(CredentialRow::read).transpose()
}

#[derive(QueryableByName)]
#[diesel(table_name = access_tokens)]
struct AccessTokenRow {
    #[diesel(sql_type = Integer)]
    scopes: i32,
    expires_at: Option<DateTime<Utc>>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = schema::consents, check_for_backend(Pg))]
struct ConsentRow {
    seller_id: Uuid,
    session_hash: Vec<u8>,
    expires_at: DateTime<Utc>,
    decided_at: Option<DateTime<Utc>>,
}

#[async_trait]
impl GrantStore for Tx {
    /// Opens the connection, unless it is open, and stores a family under its generation, with the code.
    async fn add_consent(&self, consent: NewConsent) -> Result<(), StoreError> {
        let add = ADD_CONSENT.bind((
            consent.client_id.uuid(),
            consent.seller.uuid(),
            consent.family.uuid(),
            FamilyKind::AuthorizationCode.as_str(),
            consent.scopes.bits(),
            consent.code.bytes().as_slice(),
            consent.expires_at,
            consent.redirect_uri.as_str(),
            consent.challenge.as_str(),
        ));
        expect_rows("authorization_codes", self.execute(add).await?, 1)
    }

    async fn lock_family(&self, id: FamilyId) -> Result<Option<Family>, StoreError> {
        Ok(lock(self, id, &[]).await?.map(|(family, _)| family))
    }

    async fn lock_credential(&self, key: TokenKey) -> Result<Option<(Family, StoredCredential)>, StoreError> {
        let locked = lock(self, key.family, key.hash.bytes()).await?;
        Ok(locked.and_then(|(family, credential)| Some((family, credential?))))
    }

    async fn use_credential(&self, key: TokenKey, pair: NewPair) -> Result<(), StoreError> {
        // As a batch of one, whose rows are locked. Its lock timeout lasts until the transaction ends.
        let exchange = EXCHANGE.bind((
            vec![1_i64],
            vec![key.family.uuid()],
            vec![key.hash.bytes().as_slice()],
            vec![None::<&str>],
            vec![pair.scopes.bits()],
            vec![pair.access.bytes().as_slice()],
            vec![pair.access_expires_at],
            vec![pair.refresh.bytes().as_slice()],
            vec![pair.refresh_expires_at],
            vec![None::<DateTime<Utc>>],
        ));
        expect_rows("access_tokens", self.execute(exchange).await?, 1)
    }

    async fn access_token(&self, key: TokenKey) -> Result<Option<AccessToken>, StoreError> {
        let stored = ACCESS_TOKEN.bind((key.family.uuid(), key.hash.bytes().as_slice()));
        let token = self.row(stored).await?.map(|row| {
            let scopes = scopes("access_tokens", key.family, row.scopes)?;
            let expires_at = row.expires_at;
            Ok(AccessToken { scopes, expires_at })
        });
        token.transpose()
    }

    async fn revoke_family(&self, id: FamilyId) -> Result<(), StoreError> {
        let revoked_at = families::revoked_at;
        let revoke = diesel::update(families::table.find(id.uuid()))
            .set(revoked_at.eq(coalesce(revoked_at, api_now().nullable())));
        expect_rows("families", self.execute(revoke).await?, 1)
    }

    /// Raises the generation that all of them were made under. Families in the making die too: they store
    /// what they read.
    async fn revoke_families(&self, of: FamiliesOf) -> Result<(), StoreError> {
        match of {
            FamiliesOf::Application(id) => {
                let generation = schema::applications::token_generation;
                let raise = diesel::update(schema::applications::table.find(id.uuid()))
                    .set(generation.eq(generation + 1));
                expect_rows("applications", self.execute(raise).await?, 1)?;
                follow_ups::queue(self, None, Some(id));
            }
            FamiliesOf::Seller(id) => {
                let generation = sellers::token_generation;
                let raise = diesel::update(sellers::table.find(id.uuid())).set(generation.eq(generation + 1));
                expect_rows("sellers", self.execute(raise).await?, 1)?;
                follow_ups::queue(self, Some(id), None);
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

    /// Locks a consent screen, or creates it. The update changes nothing: it waits for a row that another
    /// transaction has locked or is inserting, and then reads its new version.
    async fn lock_consent(
        &self,
        id: ConsentId,
        viewer: Viewer,
        expires_at: DateTime<Utc>,
    ) -> Result<Consent, StoreError> {
        let lock = diesel::insert_into(schema::consents::table)
            .values((
                schema::consents::id.eq(id.uuid()),
                schema::consents::seller_id.eq(viewer.seller.uuid()),
                schema::consents::session_hash.eq(viewer.session.bytes().as_slice()),
                schema::consents::expires_at.eq(expires_at),
            ))
            .on_conflict(schema::consents::id)
            .do_update()
            .set(schema::consents::seller_id.eq(schema::consents::seller_id))
            .returning(ConsentRow::as_returning());
        let row = self.row(lock).await?;
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

    /// False if none is open. The connection's generation rises: everything issued, or being issued, under the
    /// previous one is invalid.
    async fn disconnect(&self, seller: SellerId, client_id: ClientId) -> Result<bool, StoreError> {
        let open = connections::table
            .find((client_id.uuid(), seller.uuid()))
            .filter(connections::disconnected_at.is_null());
        let end = diesel::update(open).set((
            connections::generation.eq(connections::generation + 1),
            connections::disconnected_at.eq(api_now().nullable()),
        ));
        if self.execute(end).await? == 0 {
            return Ok(false);
        }
        follow_ups::queue(self, Some(seller), Some(client_id));
        Ok(true)
    }
}
