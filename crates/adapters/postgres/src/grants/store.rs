//! Placeholder.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{SellerId, StoreError};
use oauth::{
    ClientId, Code, Consent, ConsentId, Family, FamilyId, GrantStore, NewConsent, NewPair, RefreshToken,
    TokenKey, Viewer,
};

use crate::transaction::Tx;

fn unready<T>() -> Result<T, StoreError> {
    Err(StoreError::unexpected("not there yet"))
}

#[async_trait]
impl GrantStore for Tx {
    async fn add_consent(&self, _consent: NewConsent) -> Result<(), StoreError> {
        unready()
    }

    async fn lock_family(&self, _id: FamilyId) -> Result<Option<Family>, StoreError> {
        unready()
    }

    async fn code(&self, _key: TokenKey) -> Result<Option<Code>, StoreError> {
        unready()
    }

    async fn refresh_token(&self, _key: TokenKey) -> Result<Option<RefreshToken>, StoreError> {
        unready()
    }

    async fn use_code(&self, _key: TokenKey, _pair: NewPair) -> Result<(), StoreError> {
        unready()
    }

    async fn use_refresh_token(&self, _key: TokenKey, _pair: NewPair) -> Result<(), StoreError> {
        unready()
    }

    async fn has_access_token(&self, _key: TokenKey) -> Result<bool, StoreError> {
        unready()
    }

    async fn revoke_family(&self, _id: FamilyId) -> Result<(), StoreError> {
        unready()
    }

    async fn revoke_access_token(&self, _key: TokenKey) -> Result<(), StoreError> {
        unready()
    }

    async fn lock_consent(
        &self,
        _id: ConsentId,
        _viewer: Viewer,
        _expires_at: DateTime<Utc>,
    ) -> Result<Consent, StoreError> {
        unready()
    }

    async fn save_consent(&self, _consent: Consent) -> Result<(), StoreError> {
        unready()
    }

    async fn release_consent(&self, _id: ConsentId, _viewer: Viewer) -> Result<bool, StoreError> {
        unready()
    }

    async fn disconnect(&self, _seller: SellerId, _client_id: ClientId) -> Result<bool, StoreError> {
        unready()
    }
}
