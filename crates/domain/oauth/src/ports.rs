//! Where applications, grants and tokens are kept, looked up and counted.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{Change, SellerId, StoreError};

use crate::{
    Admission, Application, ApplicationEvent, ApplicationStatus, ClientId, Code, CodeChallenge,
    ConnectedApplication, Consent, ConsentId, Count, FamiliesOf, Family, FamilyId, Limiter, NewClientToken,
    NewPair, NewToken, RefreshToken, ScopeSet, SecretHash, Subject, TokenKey, Viewer,
};

/// The gate that every request to `/v1` passes.
///
/// An adapter MUST look at the rows at each call and cache nothing, so that a revocation, a suspension or a changed limit
/// is seen by the very next request on every replica. It MUST count each request with a live token exactly once, in the
/// window of the database's clock minute, shared by all replicas. A count that may have reached the store MUST NOT be sent
/// again: the call fails instead.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait Gate: Send + Sync {
    /// Looks up a token and counts the request; nothing when the token is unknown, expired or revoked, or its family,
    /// application or account no longer stands. A request without a live token is not counted.
    async fn admit(&self, token: TokenKey) -> Result<Option<Admission>, StoreError>;
}

/// Counts calls of the OAuth endpoints, shared by all replicas.
///
/// An adapter MUST give each call a place of its own, also where it counts several in one step; a count whose answer is
/// lost is an error, never a second count.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait RateCounter: Send + Sync {
    /// Counts a call in the present window.
    async fn count(&self, limiter: Limiter, subject: Subject) -> Result<Count, StoreError>;
}

/// Issues tokens of the `client_credentials` flow, each by itself.
///
/// An adapter MUST store the family and its token in one step, timed by the store's clock, which is durable before the call
/// succeeds. It may store those of several calls at once, and MUST then tell each its own outcome: one that cannot be stored
/// is nobody else's failure. [`StoreError::Retryable`] says that surely nothing was stored. After any other failure the token
/// may stand or not, so an adapter MUST NOT send again what may have reached the store; nobody knows such a token, and it
/// ends by itself.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait ClientTokens: Send + Sync {
    /// Stores a family with its token; false, and nothing is stored, where the application is not the account's, is suspended
    /// or deleted, has not all of the scopes any more, or the account is closed. Whoever changes one of these at the same
    /// moment is waited for, or waits: no token is issued once such a change has been acknowledged. A long wait ends as
    /// [`StoreError::Retryable`].
    async fn issue(&self, token: NewClientToken) -> Result<bool, StoreError>;
}

/// Reads applications outside a transaction.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait ApplicationReader: Send + Sync {
    /// The application for client authentication: nothing when it is unknown or deleted, or its owner's account is closed.
    async fn client(&self, client_id: ClientId) -> Result<Option<Application>, StoreError>;

    /// The applications that a seller has registered, newest first, the built-in one not among them.
    async fn applications_of(&self, owner: SellerId) -> Result<Vec<Application>, StoreError>;
}

/// Changes applications within a transaction.
#[async_trait]
pub trait ApplicationStore: Send + Sync {
    /// The application with its row locked; nothing when it is unknown or deleted.
    async fn lock_application(&self, client_id: ClientId) -> Result<Option<Application>, StoreError>;

    /// The application that carries the seller's personal tokens.
    async fn built_in_application(&self, seller: SellerId) -> Result<Option<Application>, StoreError>;

    /// Saves a change with its events. A name that is taken, also by a deleted application and without regard to case,
    /// is a conflict on `applications_name_key`.
    async fn save_application(&self, change: Change<Application, ApplicationEvent>)
    -> Result<(), StoreError>;

    /// Deletes an application for good; false when there is none. Its tokens are rejected from the commit on, and its name
    /// stays taken.
    async fn delete_application(&self, client_id: ClientId) -> Result<bool, StoreError>;
}

/// Which applications are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ApplicationFilter {
    /// Only those that stand so.
    pub status: Option<ApplicationStatus>,
    /// Only those of this seller.
    pub owner: Option<SellerId>,
}

/// Looks up applications of any owner, outside a transaction. Deleted ones are nowhere in it.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait ApplicationDirectory: Send + Sync {
    /// One application, whatever its status and its owner's; built-in ones too.
    async fn application(&self, client_id: ClientId) -> Result<Option<Application>, StoreError>;

    /// The application with this name, without regard to case; never a built-in one.
    async fn application_named(&self, name: &str) -> Result<Option<Application>, StoreError>;

    /// Up to `limit` applications made before the one with the id `before`, newest first, built-in ones not among them.
    async fn applications(
        &self,
        filter: ApplicationFilter,
        before: Option<ClientId>,
        limit: u16,
    ) -> Result<Vec<Application>, StoreError>;
}

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
#[async_trait]
pub trait GrantStore: Send + Sync {
    /// Stores a family with its first token.
    async fn issue_token(&self, token: NewToken) -> Result<(), StoreError>;

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
