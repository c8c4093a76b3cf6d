//! Applications, grants and tokens. This file issues, locks, consumes and revokes token families within a transaction.

pub(crate) mod applications;
pub(crate) mod client_tokens;
pub(crate) mod consents;
pub(crate) mod exchanges;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::{OptionalExtension, QueryResult};
use diesel_async::RunQueryDsl;
use futures_util::join;
use kernel::{SellerId, StoreError};
use oauth::{
    ApplicationStatus, ClientId, Code, CodeChallenge, Consent, ConsentId, FamiliesOf, Family, FamilyId,
    FamilyKind, FamilyStatus, GrantStore, NewConsent, NewPair, NewToken, RefreshToken, ScopeSet, TokenKey,
    UnknownScope, Viewer,
};
use uuid::Uuid;

use crate::follow_ups::FollowUp;
use crate::sql::{row, sql};
use crate::unit_of_work::{Tx, expect_rows};

row! {
    struct FamilyRow {
        seller_id: Uuid,
        client_id: Uuid,
        scopes: i32,
        revoked_at: Option<DateTime<Utc>>,
        disconnected: bool,
    }
}

row! {
    /// The states that a family depends on. `revoked` along with all tokens of its application or account.
    struct StateRow {
        revoked: bool,
        closed_at: Option<DateTime<Utc>>,
        status: Option<String>,
        application_scopes: Option<i32>,
    }
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

/// Locks a family, and share-locks the connection that it depends on, so that a transaction that ends either waits for
/// this one, or was waited for. A row is read as of the lock, not as of the statement's start.
///
/// A statement after the lock reads the application and the account, so that it sees everything committed during the
/// wait, and a pair never has scopes that were removed before (D83). Neither is locked: the gate checks both at each
/// request, and so rejects a token issued while one of them ends.
async fn lock(tx: &Tx, id: FamilyId) -> QueryResult<Option<(FamilyRow, StateRow)>> {
    let lock = sql!(FamilyRow:
        "with family as materialized (select seller_id, client_id, scopes, revoked_at, generation from families where id = ",
        id.uuid(), " for no key update), \
         connection as materialized (select c.generation from family f join connections c on c.client_id = f.client_id \
           and c.seller_id = f.seller_id where f.generation is not null for share of c) \
         select f.seller_id, f.client_id, f.scopes, f.revoked_at, \
           f.generation is not null and not exists (select from connection c where c.generation = f.generation) \
         from family f");
    let read = sql!(StateRow:
        "select f.seller_generation <> s.token_generation or coalesce(f.application_generation <> a.token_generation, false), \
           s.closed_at, a.status, a.scopes from families f join sellers s on s.id = f.seller_id \
           left join applications a on a.client_id = f.client_id and a.deleted_at is null where f.id = ",
        id.uuid(), "");
    let locked = async {
        lock.get_result::<FamilyRow>(&mut tx.connection())
            .await
            .optional()
    };
    let state = async { read.get_result::<StateRow>(&mut tx.connection()).await.optional() };
    let (locked, state) = pipelined(locked, state).await?;
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

row! {
    struct CodeRow {
        redirect_uri: String,
        challenge: String,
        expires_at: DateTime<Utc>,
        used_at: Option<DateTime<Utc>>,
    }
}

row! {
    struct RefreshTokenRow {
        scopes: i32,
        expires_at: DateTime<Utc>,
        used_at: Option<DateTime<Utc>>,
    }
}

/// Consumes a credential and stores a pair. A credential used before changes no row, and then nothing is stored. The used
/// hash is kept for 90 days, so that a second use is recognised.
macro_rules! consume {
    ($table:literal, $key:expr, $pair:expr) => {
        sql!((): concat!("with used as (update ", $table, " set used_at = clock.at, expires_at = clock.at + interval '90 days' \
               from (select api_now() as at) clock where family_id = "), $key.family.uuid(),
            " and hash = ", $key.hash.bytes().as_slice(),
            " and used_at is null returning family_id), \
             refresh as (insert into refresh_tokens (family_id, hash, scopes, expires_at) select family_id, ",
            $pair.refresh.bytes().as_slice(), ", ", $pair.scopes.bits(), ", ", $pair.refresh_expires_at, " from used) \
             insert into access_tokens (family_id, hash, scopes, expires_at) select family_id, ",
            $pair.access.bytes().as_slice(), ", ", $pair.scopes.bits(), ", ", $pair.access_expires_at, " from used")
    };
}

#[async_trait]
impl GrantStore for Tx {
    async fn issue_token(&self, token: NewToken) -> Result<(), StoreError> {
        if token.expires_at.is_none() && token.kind != FamilyKind::Personal {
            return Err(StoreError::unexpected("only a personal token may never expire"));
        }
        let issue = sql!(():
            "with family as (insert into families (id, kind, scopes, seller_id, client_id, seller_generation, application_generation) \
               select ", token.family.uuid(), ", ", token.kind.as_str(), ", ", token.grant.scopes.bits(),
            ", s.id, a.client_id, s.token_generation, a.token_generation from sellers s cross join applications a where s.id = ",
            token.grant.seller.uuid(), " and a.client_id = ", token.grant.client_id.uuid(),
            " returning id) insert into access_tokens (family_id, hash, expires_at) select id, ",
            token.hash.bytes().as_slice(), ", ", token.expires_at, " from family");
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
        let read = sql!(CodeRow:
            "select redirect_uri, code_challenge, expires_at, used_at from authorization_codes where family_id = ",
            key.family.uuid(), " and hash = ", key.hash.bytes().as_slice(), "");
        let code = async {
            read.get_result::<CodeRow>(&mut self.connection())
                .await
                .optional()
        };
        let (found, code) = self.run(pipelined(lock(self, key.family), code)).await?;
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
                challenge: CodeChallenge::new(row.challenge).map_err(corrupt)?,
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
        let read = sql!(RefreshTokenRow:
            "select scopes, expires_at, used_at from refresh_tokens where family_id = ", key.family.uuid(),
            " and hash = ", key.hash.bytes().as_slice(), "");
        let token = async {
            read.get_result::<RefreshTokenRow>(&mut self.connection())
                .await
                .optional()
        };
        let (found, token) = self.run(pipelined(lock(self, key.family), token)).await?;
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
        let issued = self.execute(consume!("authorization_codes", key, pair)).await?;
        expect_rows("access_tokens", issued, 1)
    }

    async fn use_refresh_token(&self, key: TokenKey, pair: NewPair) -> Result<(), StoreError> {
        let issued = self.execute(consume!("refresh_tokens", key, pair)).await?;
        expect_rows("access_tokens", issued, 1)
    }

    async fn stored_scopes(&self, key: TokenKey) -> Result<Option<ScopeSet>, StoreError> {
        let scopes = sql!(i32:
            "select coalesce(t.scopes, f.scopes) from access_tokens t join families f on f.id = t.family_id where f.id = ",
            key.family.uuid(), " and t.hash = ", key.hash.bytes().as_slice(), "");
        let corrupt =
            |unknown: UnknownScope| StoreError::corrupt("access_tokens", key.family, unknown.to_string());
        let scopes = self.row(scopes).await?.map(ScopeSet::from_bits);
        scopes.transpose().map_err(corrupt)
    }

    /// A family that is revoked already keeps its first `revoked_at`.
    async fn revoke_family(&self, id: FamilyId) -> Result<(), StoreError> {
        let revoke = sql!(():
            "update families set revoked_at = coalesce(revoked_at, clock.at) from (select api_now() as at) clock where id = ",
            id.uuid(), "");
        expect_rows("families", self.execute(revoke).await?, 1)
    }

    /// Raises the generation that all of them were made under. Families in the making die too: they store what they read.
    async fn revoke_families(&self, of: FamiliesOf) -> Result<(), StoreError> {
        let (table, raised, follow_up) = match of {
            FamiliesOf::Application(id) => {
                let raise = sql!((): "update applications set token_generation = token_generation + 1 where client_id = ", id.uuid(), "");
                (
                    "applications",
                    self.execute(raise).await?,
                    FollowUp::Application(id),
                )
            }
            FamiliesOf::Seller(id) => {
                let raise = sql!((): "update sellers set token_generation = token_generation + 1 where id = ", id.uuid(), "");
                ("sellers", self.execute(raise).await?, FollowUp::Seller(id))
            }
        };
        expect_rows(table, raised, 1)?;
        follow_up.queue(self);
        Ok(())
    }

    async fn revoke_access_token(&self, key: TokenKey) -> Result<bool, StoreError> {
        let revoke = sql!(():
            "update access_tokens set revoked_at = clock.at from (select api_now() as at) clock \
             where family_id = ", key.family.uuid(), " and hash = ", key.hash.bytes().as_slice(),
            " and revoked_at is null");
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
        let decide = sql!(():
            "update consents set decided_at = ", decided_at, " where id = ", consent.id.uuid(),
            " and decided_at is null");
        expect_rows("consents", self.execute(decide).await?, 1)
    }

    async fn release_consent(&self, id: ConsentId, viewer: Viewer) -> Result<bool, StoreError> {
        let release = sql!(():
            "delete from consents where id = ", id.uuid(), " and seller_id = ", viewer.seller.uuid(),
            " and session_hash = ", viewer.session.bytes().as_slice(), " and decided_at is null");
        Ok(self.execute(release).await? == 1)
    }

    async fn disconnect(&self, seller: SellerId, client_id: ClientId) -> Result<bool, StoreError> {
        consents::disconnect(self, seller, client_id).await
    }
}
