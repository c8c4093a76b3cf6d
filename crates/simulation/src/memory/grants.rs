//! Codes, refresh tokens and the families they belong to, within a transaction.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{SellerId, StoreError};
use oauth::{
    ClientId, Code, Consent, ConsentId, FamiliesOf, Family, FamilyId, GrantStore, NewConsent, NewPair,
    RefreshToken, TokenKey, Viewer,
};

use super::{
    Database, Flaw, Stored, TxId,
    families::{disconnect, families_of, lock_family, open_consent, store_pair},
    locks::{Row, Strength},
    panel::not_kept,
    tables::CredentialKey,
    transaction::Tx,
};

const fn place(key: &TokenKey) -> CredentialKey {
    (key.family, *key.hash.bytes())
}

/// The family locked, and then what lies in it.
async fn locked<T>(
    database: Database,
    tx: TxId,
    key: TokenKey,
    read: impl Fn(&Stored) -> Option<T> + Send,
) -> Result<Option<(Family, Option<T>)>, StoreError>
where
    T: Send,
{
    let early = database.at_once(|stored| read(stored));
    let Some(family) = lock_family(&database, tx, key.family).await? else {
        return Ok(None);
    };
    if database.has(Flaw::JudgesUnlocked) {
        return Ok(Some((family, early)));
    }
    Ok(Some((family, database.at_once(|stored| read(stored)))))
}

#[async_trait]
impl GrantStore for Tx {
    async fn add_consent(&self, consent: NewConsent) -> Result<(), StoreError> {
        self.run(|database, tx| async move { open_consent(&database, tx, consent).await })
            .await
    }

    async fn lock_family(&self, id: FamilyId) -> Result<Option<Family>, StoreError> {
        self.run(|database, tx| async move { lock_family(&database, tx, id).await })
            .await
    }

    async fn lock_code(&self, key: TokenKey) -> Result<Option<(Family, Option<Code>)>, StoreError> {
        self.run(|database, tx| {
            locked(database, tx, key, move |stored| {
                stored.tables.codes.get(tx, &place(&key)).cloned()
            })
        })
        .await
    }

    async fn lock_refresh_token(
        &self,
        key: TokenKey,
    ) -> Result<Option<(Family, Option<RefreshToken>)>, StoreError> {
        self.run(|database, tx| {
            locked(database, tx, key, move |stored| {
                stored.tables.refresh_tokens.get(tx, &place(&key)).copied()
            })
        })
        .await
    }

    async fn use_code(&self, key: TokenKey, pair: NewPair) -> Result<(), StoreError> {
        self.run(|database, tx| async move {
            let now = database.now();
            database.at_once(|stored| {
                let unused = stored
                    .tables
                    .codes
                    .get(tx, &place(&key))
                    .is_some_and(|code| code.used_at.is_none());
                stored
                    .tables
                    .codes
                    .change(tx, &place(&key), |code| code.used_at = Some(now));
                store_pair(stored, tx, key.family, &pair, unused)
            })
        })
        .await
    }

    async fn use_refresh_token(&self, key: TokenKey, pair: NewPair) -> Result<(), StoreError> {
        self.run(|database, tx| async move {
            let (now, unlocked) = (database.now(), database.has(Flaw::JudgesUnlocked));
            database.at_once(|stored| {
                let tokens = &mut stored.tables.refresh_tokens;
                let unused = tokens
                    .get(tx, &place(&key))
                    .is_some_and(|token| token.used_at.is_none());
                tokens.change(tx, &place(&key), |token| token.used_at = Some(now));
                store_pair(stored, tx, key.family, &pair, unused || unlocked)
            })
        })
        .await
    }

    async fn has_access_token(&self, key: TokenKey) -> Result<bool, StoreError> {
        self.run(|database, tx| async move {
            Ok(database.at_once(|stored| stored.tables.access_tokens.get(tx, &place(&key)).is_some()))
        })
        .await
    }

    async fn revoke_family(&self, id: FamilyId) -> Result<(), StoreError> {
        self.run(|database, tx| async move {
            database.lock(tx, Row::Family(id), Strength::NoKeyUpdate).await?;
            if database.at_once(|stored| stored.tables.families.change(tx, &id, |row| row.revoked = true)) {
                Ok(())
            } else {
                Err(StoreError::unexpected(
                    "0 rows of families were saved instead of 1",
                ))
            }
        })
        .await
    }

    async fn revoke_families(&self, of: FamiliesOf) -> Result<usize, StoreError> {
        self.run(|database, tx| async move {
            let mut ended = 0;
            for id in database.at_once(|stored| families_of(stored, tx, of)) {
                database.lock(tx, Row::Family(id), Strength::NoKeyUpdate).await?;
                ended += database.at_once(|stored| {
                    let families = &mut stored.tables.families;
                    let lives = families.get(tx, &id).is_some_and(|row| !row.revoked);
                    usize::from(lives && families.change(tx, &id, |row| row.revoked = true))
                });
            }
            Ok(ended)
        })
        .await
    }

    async fn revoke_access_token(&self, key: TokenKey) -> Result<bool, StoreError> {
        self.run(|database, tx| async move {
            let (family, hash) = place(&key);
            database
                .lock(tx, Row::AccessToken(family, hash), Strength::NoKeyUpdate)
                .await?;
            Ok(database.at_once(|stored| {
                let tokens = &mut stored.tables.access_tokens;
                let lives = tokens
                    .get(tx, &(family, hash))
                    .is_some_and(|token| !token.revoked);
                lives && tokens.change(tx, &(family, hash), |token| token.revoked = true)
            }))
        })
        .await
    }

    async fn lock_consent(
        &self,
        _id: ConsentId,
        _viewer: Viewer,
        _expires_at: DateTime<Utc>,
    ) -> Result<Consent, StoreError> {
        not_kept("consent screens")
    }

    async fn save_consent(&self, _consent: Consent) -> Result<(), StoreError> {
        not_kept("consent screens")
    }

    async fn release_consent(&self, _id: ConsentId, _viewer: Viewer) -> Result<bool, StoreError> {
        not_kept("consent screens")
    }

    async fn disconnect(&self, seller: SellerId, client_id: ClientId) -> Result<bool, StoreError> {
        self.run(|database, tx| async move { disconnect(&database, tx, seller, client_id).await })
            .await
    }
}
