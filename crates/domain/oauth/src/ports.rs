//! Ports: storage of applications, grants and tokens, and rate limits.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{Change, SellerId, StoreError, TransactionError};

use crate::{
    Admission, Application, ClientId, CodeChallenge, ConnectedApplication, Consent, ConsentId, Count,
    DeadToken, Exchange, FamiliesOf, Family, FamilyId, Grant, InvalidClient, Limiter, NewClientToken,
    NewPair, Principal, ScopeSet, SecretHash, StoredCredential, Subject, TokenKey, Viewer,
};

/// The gate that every request to `/v1` passes.
///
/// An adapter MUST read the rows at each call and cache nothing, so that the next request on every replica
/// sees a revocation, a suspension or a changed limit. [`Self::admit`] MUST count each request with a live
/// token exactly once, in the window of the database's clock minute, shared by all replicas. A count that may
/// have reached the store MUST NOT be sent again: the call fails instead.
///
/// `GET /v1/events` is the exception: [`Self::look_up`], then [`RateCounter::count`], against a limit of its
/// own.
#[async_trait]
pub trait Gate: Send + Sync {
    /// Looks up a token and counts the request. The inner error is a token that is expired or revoked, or
    /// whose family, application or account is no longer valid; None if it is unknown. A request without a
    /// live token is not counted.
    async fn admit(&self, token: TokenKey) -> Result<Result<Admission, Option<DeadToken>>, StoreError>;

    /// Looks up a token in the same way, and counts nothing.
    async fn look_up(&self, token: TokenKey) -> Result<Result<Principal, Option<DeadToken>>, StoreError>;
}

/// Counts calls against all limits other than an application's requests, for all replicas: see [`Limiter`].
///
/// An adapter MUST give each call its own number in the window, even if it counts several in one step. A
/// count whose response is lost is an error and MUST NOT be repeated.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait RateCounter: Send + Sync {
    /// Counts a call in the current window.
    async fn count(&self, limiter: Limiter, subject: Subject) -> Result<Count, StoreError>;
}

/// Issues tokens without a transaction of the caller.
///
/// An adapter MUST do each call atomically and durably before it returns, by the store's clock. It may
/// combine calls, but MUST then give each its own outcome: one that cannot be stored MUST NOT fail the
/// others. What may have reached the store MUST NOT be sent again.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait TokenIssuer: Send + Sync {
    /// Stores a family with its token. False, without an effect, if the application is not the account's, is
    /// suspended or deleted, or no longer has all of the scopes, or if the account is closed. A token that is
    /// stored while such a change or a revocation is committed is subject to it: the gate judges by the
    /// present state. After [`StoreError::Retryable`] nothing was stored. After any other failure the token
    /// may be stored; it is then unknown to all clients, and expires.
    async fn issue(&self, token: NewClientToken) -> Result<bool, StoreError>;

    /// Uses the credential and stores its pair if [`Presented::judge`](crate::Presented::judge) issues it;
    /// returns the pair's grant. None, without an effect, if it does not, or if other work holds or changes
    /// one of the rows.
    ///
    /// Fails after `time_left` unless the exchange has been sent by then; from then on its outcome is
    /// awaited. An exchange that reaches the store more than a few seconds after `asked_at` MUST change
    /// nothing: its client may have repeated the request by then.
    async fn exchange(
        &self,
        exchange: Exchange,
        time_left: Duration,
    ) -> Result<Option<Grant>, TransactionError>;
}

/// Reads applications outside a transaction.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait ApplicationReader: Send + Sync {
    /// The application; None if it is unknown or deleted, or its owner's account is closed.
    async fn client(&self, client_id: ClientId) -> Result<Option<Application>, StoreError>;

    /// The application with this id, and why its clients are rejected if it is deleted or its owner's account
    /// is closed.
    async fn known_client(
        &self,
        client_id: ClientId,
    ) -> Result<Option<(Application, Option<InvalidClient>)>, StoreError>;

    /// Up to `limit` applications that a seller has registered before the one with the id `before`, newest
    /// first, without the built-in one.
    async fn applications_of(
        &self,
        owner: SellerId,
        before: Option<ClientId>,
        limit: u16,
    ) -> Result<Vec<Application>, StoreError>;
}

/// Changes applications within a transaction. `A` is how an event is announced: the use cases decide it.
#[async_trait]
pub trait ApplicationStore<A>: Send + Sync {
    /// The application with its row locked; None if it is unknown or deleted.
    async fn lock_application(&self, client_id: ClientId) -> Result<Option<Application>, StoreError>;

    /// The application that carries the seller's personal tokens.
    async fn built_in_application(&self, seller: SellerId) -> Result<Option<Application>, StoreError>;

    /// The number of applications of a seller, without the built-in one. The caller has locked the account's
    /// row, so the number is valid until the transaction ends.
    async fn count_applications(&self, owner: SellerId) -> Result<usize, StoreError>;

    /// Saves a change with its announcements. A name in use, ignoring case, is a conflict on
    /// `applications_name_key`. So is the name of a deleted application that other sellers could see: one
    /// that was accepted, and not for own use.
    async fn save_application(&self, change: Change<Application, A>) -> Result<(), StoreError>;

    /// Deletes an application permanently; false if there is none. Its tokens are rejected from the commit
    /// on. Subscriptions follow in batches, and nothing is delivered to them meanwhile.
    async fn delete_application(&self, client_id: ClientId) -> Result<bool, StoreError>;
}

/// Looks up applications of all owners, outside a transaction. Deleted ones are never returned.
#[async_trait]
pub trait ApplicationDirectory: Send + Sync {
    /// One application, regardless of its status and its owner's; includes built-in ones.
    async fn application(&self, client_id: ClientId) -> Result<Option<Application>, StoreError>;

    /// The application with this name, ignoring case; never a built-in one.
    async fn application_named(&self, name: &str) -> Result<Option<Application>, StoreError>;

    /// Up to `limit` applications that a seller has registered or connected, with an id below `before`,
    /// newest first. Built-in ones, and connected ones that were disconnected, are left out.
    async fn applications_at(
        &self,
        seller: SellerId,
        before: Option<ClientId>,
        limit: u16,
    ) -> Result<Vec<ListedApplication>, StoreError>;
}

/// An application of a seller's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedApplication {
    pub application: Application,
    /// Since when it is connected; None if it is only the seller's own.
    pub connected_at: Option<DateTime<Utc>>,
}

/// A consent: a family without tokens yet, and the code that is exchanged for its first pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewConsent {
    pub family: FamilyId,
    pub seller: SellerId,
    pub client_id: ClientId,
    pub scopes: ScopeSet,
    pub code: SecretHash,
    /// The redirect URI of the request.
    pub redirect_uri: String,
    pub challenge: CodeChallenge,
    /// When the code expires.
    pub expires_at: DateTime<Utc>,
}

/// A stored access token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessToken {
    pub scopes: ScopeSet,
    /// When it expires, or was revoked if that is earlier; None for a personal token that does not expire.
    pub expires_at: Option<DateTime<Utc>>,
}

/// Changes families within a transaction.
///
/// An adapter MUST first lock the family's row `for no key update`, together with a `for share` lock of the
/// seller's connection with the application, and read codes and tokens in later statements (which may be
/// pipelined). So exchanges, replays and disconnections of one family are judged one after the other.
#[async_trait]
pub trait GrantStore: Send + Sync {
    /// Opens the connection if there is none or it has ended, and stores the consent under its generation.
    async fn add_consent(&self, consent: NewConsent) -> Result<(), StoreError>;

    /// The family with its status, with its row locked; None if the id is unknown.
    async fn lock_family(&self, id: FamilyId) -> Result<Option<Family>, StoreError>;

    /// The family as with [`Self::lock_family`], and its code or refresh token with this key; None if it has
    /// neither.
    async fn lock_credential(&self, key: TokenKey) -> Result<Option<(Family, StoredCredential)>, StoreError>;

    /// Marks the code or refresh token as used and stores its token pair. An already used one is an error.
    async fn use_credential(&self, key: TokenKey, pair: NewPair) -> Result<(), StoreError>;

    /// This access token of the locked family; None if it was not stored, or has expired and was deleted.
    async fn access_token(&self, key: TokenKey) -> Result<Option<AccessToken>, StoreError>;

    /// Revokes the locked family with all its tokens.
    async fn revoke_family(&self, id: FamilyId) -> Result<(), StoreError>;

    /// Revokes all families of an application or a seller with all their tokens, however many there are, by
    /// changing one row. An adapter MUST reject them from the commit on, also those that are being issued.
    async fn revoke_families(&self, of: FamiliesOf) -> Result<(), StoreError>;

    /// Revokes one access token of the locked family. False if there is none, or it was revoked before.
    async fn revoke_access_token(&self, key: TokenKey) -> Result<bool, StoreError>;

    /// The screen with this id, with its row locked; created for this viewer if it does not exist yet.
    async fn lock_consent(
        &self,
        id: ConsentId,
        viewer: Viewer,
        expires_at: DateTime<Utc>,
    ) -> Result<Consent, StoreError>;

    async fn save_consent(&self, consent: Consent) -> Result<(), StoreError>;

    /// Releases a screen that its viewer has not decided, so that another account can use it; false if there
    /// is none.
    async fn release_consent(&self, id: ConsentId, viewer: Viewer) -> Result<bool, StoreError>;

    /// Ends a connection: its generation is incremented, which invalidates all its tokens and subscriptions.
    /// Pending deliveries follow in batches. False if the seller has no such connection.
    async fn disconnect(&self, seller: SellerId, client_id: ClientId) -> Result<bool, StoreError>;
}

/// The client and the seller of a code or token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    pub client_id: ClientId,
    pub seller: SellerId,
    /// It is a code or a refresh token, and can still be used.
    pub is_usable: bool,
}

/// Reads grants outside a transaction.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait GrantReader: Send + Sync {
    /// The holder of the code or token with this key; None if it is unknown. Strangers present keys too: an
    /// adapter MUST keep their look-ups from using up the connections of others.
    async fn holder(&self, key: TokenKey) -> Result<Option<Holder>, StoreError>;

    /// Up to `limit` of the seller's connected applications after one with this name, by name: those with a
    /// consent since the last disconnection, also where no token is left. `client_credentials` tokens do not
    /// count, nor applications of a closed account.
    async fn connections(
        &self,
        seller: SellerId,
        after: Option<String>,
        limit: u16,
    ) -> Result<Vec<ConnectedApplication>, StoreError>;

    /// One of them.
    async fn connection(
        &self,
        seller: SellerId,
        client_id: ClientId,
    ) -> Result<Option<ConnectedApplication>, StoreError>;
}
