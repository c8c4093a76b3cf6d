//! Grants within a transaction.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::{OptionalExtension, QueryResult};
use diesel_async::RunQueryDsl;
use futures_util::join;
use kernel::{SellerId, StoreError};
use oauth::{
    ClientId, Code, Consent, ConsentId, FamiliesOf, Family, FamilyId, GrantStore, NewConsent, NewPair,
    RefreshToken, TokenKey, Viewer,
};

use super::{
    connections,
    consents::{Add, Decide, LockScreen, Release, ScreenRow},
    families::{FamilyRow, Lock, Revoke, RevokeOfApplication, RevokeOfSeller, RevokeToken},
    issuing::{Use, UseCode, UseRefreshToken},
    rows::{CodeRow, HasAccessToken, ReadCode, ReadRefreshToken, RefreshTokenRow},
};
use crate::{pending::expect_rows, transaction::Tx};

#[async_trait]
impl GrantStore for Tx {
    async fn add_consent(&self, consent: NewConsent) -> Result<(), StoreError> {
        let add = Add::new(&consent);
        let added = self.run(add.execute(&mut self.connection())).await?;
        expect_rows("authorization_codes", added, 1)
    }

    async fn lock_family(&self, id: FamilyId) -> Result<Option<Family>, StoreError> {
        let row = self.run(lock(self, id)).await?;
        row.map(|row| row.family(id)).transpose()
    }

    async fn lock_code(&self, key: TokenKey) -> Result<Option<(Family, Option<Code>)>, StoreError> {
        let read = ReadCode {
            family: key.family.uuid(),
            hash: key.hash.bytes(),
        };
        let code = async { read.get_result(&mut self.connection()).await.optional() };
        let (family, code) = self.run(one_after_other(lock(self, key.family), code)).await?;
        locked(key, family, code, CodeRow::code)
    }

    async fn lock_refresh_token(
        &self,
        key: TokenKey,
    ) -> Result<Option<(Family, Option<RefreshToken>)>, StoreError> {
        let read = ReadRefreshToken {
            family: key.family.uuid(),
            hash: key.hash.bytes(),
        };
        let token = async { read.get_result(&mut self.connection()).await.optional() };
        let (family, token) = self.run(one_after_other(lock(self, key.family), token)).await?;
        locked(key, family, token, RefreshTokenRow::token)
    }

    async fn use_code(&self, key: TokenKey, pair: NewPair) -> Result<(), StoreError> {
        let use_up = UseCode {
            given: Use::new(&key, &pair),
        };
        let issued = self.run(use_up.execute(&mut self.connection())).await?;
        expect_rows("access_tokens", issued, 1)
    }

    async fn use_refresh_token(&self, key: TokenKey, pair: NewPair) -> Result<(), StoreError> {
        let use_up = UseRefreshToken {
            given: Use::new(&key, &pair),
        };
        let issued = self.run(use_up.execute(&mut self.connection())).await?;
        expect_rows("access_tokens", issued, 1)
    }

    async fn has_access_token(&self, key: TokenKey) -> Result<bool, StoreError> {
        let has = HasAccessToken {
            family: key.family.uuid(),
            hash: key.hash.bytes(),
        };
        self.run(has.get_result::<bool>(&mut self.connection())).await
    }

    async fn revoke_family(&self, id: FamilyId) -> Result<(), StoreError> {
        let revoke = Revoke { family: id.uuid() };
        let revoked = self.run(revoke.execute(&mut self.connection())).await?;
        expect_rows("families", revoked, 1)
    }

    async fn revoke_families(&self, of: FamiliesOf) -> Result<usize, StoreError> {
        match of {
            FamiliesOf::Application(client_id) => {
                let client = client_id.uuid();
                let revoke = RevokeOfApplication { client };
                self.run(revoke.execute(&mut self.connection())).await
            }
            FamiliesOf::Seller(id) => {
                let revoke = RevokeOfSeller { seller: id.uuid() };
                self.run(revoke.execute(&mut self.connection())).await
            }
        }
    }

    async fn revoke_access_token(&self, key: TokenKey) -> Result<bool, StoreError> {
        let revoke = RevokeToken {
            family: key.family.uuid(),
            hash: key.hash.bytes(),
        };
        let ended = self.run(revoke.execute(&mut self.connection())).await?;
        Ok(ended > 0)
    }

    async fn lock_consent(
        &self,
        id: ConsentId,
        viewer: Viewer,
        expires_at: DateTime<Utc>,
    ) -> Result<Consent, StoreError> {
        let lock = LockScreen::new(id, &viewer, expires_at);
        let row = self
            .run(lock.get_result::<ScreenRow>(&mut self.connection()))
            .await?;
        row.consent(id)
    }

    async fn save_consent(&self, consent: Consent) -> Result<(), StoreError> {
        let Some(decided_at) = consent.decided_at else {
            return Err(StoreError::unexpected("a consent is saved once it is decided"));
        };
        let decide = Decide {
            id: consent.id.uuid(),
            decided_at,
        };
        let decided = self.run(decide.execute(&mut self.connection())).await?;
        expect_rows("consents", decided, 1)
    }

    async fn release_consent(&self, id: ConsentId, viewer: Viewer) -> Result<bool, StoreError> {
        let release = Release {
            id: id.uuid(),
            seller: viewer.seller.uuid(),
            session: viewer.session.bytes(),
        };
        Ok(self.run(release.execute(&mut self.connection())).await? == 1)
    }

    async fn disconnect(&self, seller: SellerId, client_id: ClientId) -> Result<bool, StoreError> {
        connections::end(self, seller, client_id).await
    }
}

async fn lock(tx: &Tx, id: FamilyId) -> QueryResult<Option<FamilyRow>> {
    let lock = Lock { family: id.uuid() };
    let read = super::families::ReadState { family: id.uuid() };
    let locked = async { lock.get_result(&mut tx.connection()).await.optional() };
    let state = async { read.get_result(&mut tx.connection()).await.optional() };
    let (locked, state) = one_after_other(locked, state).await?;
    Ok(locked
        .zip(state)
        .map(|(locked, state)| FamilyRow { locked, state }))
}

/// Sends a second statement behind the first without waiting for its answer. The server carries the second one out when the
/// first is done, so what it reads has been read after the lock.
async fn one_after_other<A, B>(
    first: impl Future<Output = QueryResult<A>>,
    second: impl Future<Output = QueryResult<B>>,
) -> QueryResult<(A, B)> {
    let (first, second) = join!(first, second);
    Ok((first?, second?))
}

/// A family that there is, and what was read of it.
fn locked<R, T>(
    key: TokenKey,
    family: Option<FamilyRow>,
    row: Option<R>,
    domain: impl FnOnce(R, TokenKey) -> Result<T, StoreError>,
) -> Result<Option<(Family, Option<T>)>, StoreError> {
    let Some(family) = family else { return Ok(None) };
    let stored = row.map(|row| domain(row, key)).transpose()?;
    Ok(Some((family.family(key.family)?, stored)))
}
