//! Where consents, codes and refresh tokens are kept, and families are ended.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{SellerId, StoreError};

use crate::{
    ClientId, Code, CodeChallenge, ConnectedApplication, Consent, ConsentId, FamiliesOf, Family, FamilyId,
    NewPair, RefreshToken, ScopeSet, SecretHash, TokenKey, Viewer,
};

/// A consent that was given: a family without tokens yet, and the code that gets the first pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewConsent {
    /// The family's id.
    pub family: FamilyId,
    /// The seller who consented.
    pub seller: SellerId,
    /// The application.
    pub client_id: ClientId,
    /// What the seller consented to.
    pub scopes: ScopeSet,
    /// The hash of the code.
    pub code: SecretHash,
    /// The redirect address of the request.
    pub redirect_uri: String,
    /// What the exchange has to prove.
    pub challenge: CodeChallenge,
    /// When the code ends.
    pub expires_at: DateTime<Utc>,
}

/// Changes families within a transaction.
///
/// An adapter MUST lock the family's row `for no key update` first, together with a `for share` lock of the seller's
/// connection with the application, and read codes and tokens in later statements (which may be sent without waiting for
/// the first one's answer), so that two exchanges, two rotations, a
/// rotation and a replay, or an exchange and a disconnection, are judged one after the other.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait GrantStore: Send + Sync {
    /// Opens the connection where there is none or it was ended, and stores the consent under its generation.
    async fn add_consent(&self, consent: NewConsent) -> Result<(), StoreError>;

    /// A family with its standing, its row locked; nothing when there is none with this id.
    async fn lock_family(&self, id: FamilyId) -> Result<Option<Family>, StoreError>;

    /// The family as by [`Self::lock_family`], and then its code with this key, where it has one.
    async fn lock_code(&self, key: TokenKey) -> Result<Option<(Family, Option<Code>)>, StoreError>;

    /// The family as by [`Self::lock_family`], and then its refresh token with this key, where it has one.
    async fn lock_refresh_token(
        &self,
        key: TokenKey,
    ) -> Result<Option<(Family, Option<RefreshToken>)>, StoreError>;

    /// Notes that the code was used, and stores what it gave. One that was used already is an error.
    async fn use_code(&self, key: TokenKey, pair: NewPair) -> Result<(), StoreError>;

    /// Notes that the refresh token was used, and stores what it gave. One that was used already is an error.
    async fn use_refresh_token(&self, key: TokenKey, pair: NewPair) -> Result<(), StoreError>;

    /// True when the locked family has this access token: that is how a lost COMMIT is found out about.
    async fn has_access_token(&self, key: TokenKey) -> Result<bool, StoreError>;

    /// Ends the locked family and every token of it.
    async fn revoke_family(&self, id: FamilyId) -> Result<(), StoreError>;

    /// Ends every family of an application or a seller that lives, and every token of them; returns how many there were.
    async fn revoke_families(&self, of: FamiliesOf) -> Result<usize, StoreError>;

    /// Ends one access token of the locked family. False when there is none such, or it was ended before.
    async fn revoke_access_token(&self, key: TokenKey) -> Result<bool, StoreError>;

    /// The screen with this id, its row locked; made with this viewer where there is none yet.
    async fn lock_consent(
        &self,
        id: ConsentId,
        viewer: Viewer,
        expires_at: DateTime<Utc>,
    ) -> Result<Consent, StoreError>;

    /// Saves a decision.
    async fn save_consent(&self, consent: Consent) -> Result<(), StoreError>;

    /// Gives up a screen that its viewer has not decided, so that another account can be used for it; false when there is
    /// none such.
    async fn release_consent(&self, id: ConsentId, viewer: Viewer) -> Result<bool, StoreError>;

    /// Ends a connection: its generation rises, its families are dead, and its subscriptions and their pending deliveries
    /// stop. False when the seller has no such connection.
    async fn disconnect(&self, seller: SellerId, client_id: ClientId) -> Result<bool, StoreError>;
}

/// Reads grants outside a transaction.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait GrantReader: Send + Sync {
    /// The client that a code or refresh token was issued to; nothing when there is no such credential.
    async fn holder(&self, key: TokenKey) -> Result<Option<ClientId>, StoreError>;

    /// The applications that the seller is connected with, by name. Own `client_credentials` tokens are no connection, and an application of which no code or token is left is not listed.
    async fn connections(&self, seller: SellerId) -> Result<Vec<ConnectedApplication>, StoreError>;
}
