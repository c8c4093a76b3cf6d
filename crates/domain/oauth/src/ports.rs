//! Where applications, accounts and tokens are kept, looked up and counted.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{Change, SellerId, StoreError};
use uuid::Uuid;

use crate::{
    Admission, Application, ApplicationEvent, ClientId, Count, FamilyId, Limiter, NewClientToken, NewSeller,
    NewToken, PasswordHash, SecretHash, Seller, Subject, TokenKey,
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
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
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

/// Reads accounts outside a transaction.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait SellerReader: Send + Sync {
    /// One account.
    async fn seller(&self, id: SellerId) -> Result<Option<Seller>, StoreError>;

    /// Up to `limit` accounts with a `seller_no` above `after`, in that order.
    async fn sellers(&self, after: i32, limit: u16) -> Result<Vec<Seller>, StoreError>;
}

/// Changes accounts within a transaction.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait SellerStore: Send + Sync {
    /// Registers an account and gives it the next number. An address that is taken, without regard to case, is a conflict
    /// on `sellers_email_key`.
    async fn add_seller(&self, seller: NewSeller) -> Result<Seller, StoreError>;

    /// The account with its row locked.
    async fn lock_seller(&self, id: SellerId) -> Result<Option<Seller>, StoreError>;

    /// Closes an account; keeps the first instant when it is closed already. False when there is no such account.
    async fn close_seller(&self, id: SellerId, at: DateTime<Utc>) -> Result<bool, StoreError>;
}

/// Issues tokens within a transaction.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait TokenStore: Send + Sync {
    /// Stores a family with its first token.
    async fn issue_token(&self, token: NewToken) -> Result<(), StoreError>;

    /// Stores what a seller sees of a personal token; `family` is its id.
    async fn add_personal_token(
        &self,
        seller: SellerId,
        family: FamilyId,
        name: &str,
    ) -> Result<(), StoreError>;

    /// How many of the seller's personal tokens are alive at `now`. The caller holds the account's row locked, so that the
    /// number holds until the transaction ends.
    async fn count_personal_tokens(&self, seller: SellerId, now: DateTime<Utc>) -> Result<usize, StoreError>;

    /// Revokes a personal token; false when the seller has no such token.
    async fn revoke_personal_token(&self, seller: SellerId, family: FamilyId) -> Result<bool, StoreError>;
}

/// An operator's token as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorTokenRow {
    /// Its id.
    pub id: Uuid,
    /// To recognise it by.
    pub name: String,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it was revoked.
    pub revoked_at: Option<DateTime<Utc>>,
}

/// Reads operators' tokens outside a transaction.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait OperatorTokens: Send + Sync {
    /// The living token with this hash.
    async fn operator(&self, hash: SecretHash) -> Result<Option<OperatorTokenRow>, StoreError>;

    /// Every token, oldest first.
    async fn operator_tokens(&self) -> Result<Vec<OperatorTokenRow>, StoreError>;
}

/// Changes operators' tokens within a transaction.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait OperatorTokenStore: Send + Sync {
    /// Stores a new token.
    async fn add_operator_token(&self, id: Uuid, name: &str, hash: SecretHash) -> Result<(), StoreError>;

    /// Revokes a token; false when there is none alive with this id.
    async fn revoke_operator_token(&self, id: Uuid) -> Result<bool, StoreError>;
}

/// Hashes passwords.
///
/// An adapter MUST use a slow, salted hash (argon2id) and bound how many run at a time. Where too many wait already, it MUST fail at
/// once with [`Overcrowded`] in a [`StoreError::Unavailable`].
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait PasswordHasher: Send + Sync {
    /// The hash of a new password.
    async fn hash(&self, password: &str) -> Result<PasswordHash, StoreError>;

    /// Whether the password is the one that was hashed. Without a hash it takes the same time all the same, so that nobody
    /// can tell an unknown account from a wrong password, and is false.
    async fn verify(&self, password: &str, hash: Option<PasswordHash>) -> Result<bool, StoreError>;
}

/// As many passwords wait to be hashed as may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("as many passwords wait to be hashed as may")]
pub struct Overcrowded;
