//! Storage of accounts and their data: sessions, one-time links, personal tokens, mails, operator tokens, the
//! audit log, usage.

use std::net::IpAddr;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{Mail, MailId, SellerId, StoreError};
use oauth::{ClientId, Count, FamilyId, Limiter, ScopeSet, SecretHash, Subject, TokenKey};
use serde_json::Value;
use uuid::Uuid;

use crate::{Action, Actor, Link, LinkKind, NewPersonalToken, NewSeller, PasswordHash, Seller, Session};

/// An account with its password hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub seller: Seller,
    /// None until the seller sets a password.
    pub password: Option<PasswordHash>,
}

/// A personal token as shown to its seller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonalToken {
    pub id: FamilyId,
    /// A label.
    pub name: String,
    pub scopes: ScopeSet,
    pub created_at: DateTime<Utc>,
    /// When it expires; None for never.
    pub expires_at: Option<DateTime<Utc>>,
}

/// The signed-in seller, for one request to the panel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedIn {
    pub seller: Seller,
    pub session: Session,
    pub now: DateTime<Utc>,
}

/// Reads accounts and their data, outside a transaction.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait AccountReader: Send + Sync {
    async fn seller(&self, id: SellerId) -> Result<Option<Seller>, StoreError>;

    /// Up to `limit` accounts with a `seller_no` above `after`, in that order.
    async fn sellers(&self, after: i32, limit: u16) -> Result<Vec<Seller>, StoreError>;

    /// The account with this e-mail address, ignoring case; includes closed ones.
    async fn account(&self, email: &str) -> Result<Option<Account>, StoreError>;

    async fn password(&self, seller: SellerId) -> Result<Option<PasswordHash>, StoreError>;

    /// The seller signed in with this cookie; None if the session has ended or the account is closed. Records
    /// the use, at most once a minute.
    async fn signed_in(&self, session: SecretHash) -> Result<Option<SignedIn>, StoreError>;

    /// The link with this hash if it is still usable, with its account.
    async fn link(&self, hash: SecretHash) -> Result<Option<(Link, Seller)>, StoreError>;

    /// The seller's live personal tokens, newest first.
    async fn personal_tokens(&self, seller: SellerId) -> Result<Vec<PersonalToken>, StoreError>;

    /// Hourly counts of the calls of a seller's application since a time, over all sellers, and the requests counted in
    /// the current minute's window.
    async fn usage(
        &self,
        seller: SellerId,
        client_id: ClientId,
        since: DateTime<Utc>,
    ) -> Result<(Vec<HourlyUsage>, u64), StoreError>;
}

/// Reads operator tokens, outside a transaction.
#[async_trait]
pub trait OperatorReader: Send + Sync {
    /// The live operator token with this hash. The inner error is one that was revoked or has expired; None
    /// if it is unknown. Records the use of a live one, at most once a minute.
    async fn operator(
        &self,
        hash: SecretHash,
    ) -> Result<Result<OperatorTokenRecord, Option<OperatorTokenRecord>>, StoreError>;

    /// Every operator token, oldest first.
    async fn operator_tokens(&self) -> Result<Vec<OperatorTokenRecord>, StoreError>;
}

/// A mail about an account with its one-time link, which is stored sealed.
#[derive(Clone, PartialEq, Eq)]
pub struct AccountMail {
    /// Its id, assigned when it is queued.
    pub id: MailId,
    pub seller: SellerId,
    /// The purpose of its link; never [`LinkKind::SignIn`].
    pub kind: LinkKind,
    pub to: String,
    /// The business name.
    pub name: String,
    pub url: String,
    /// When the link expires.
    pub expires_at: DateTime<Utc>,
}

impl Mail for AccountMail {
    fn id(&self) -> MailId {
        self.id
    }
}

impl std::fmt::Debug for AccountMail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccountMail")
            .field("id", &self.id)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// Changes accounts and their data within a transaction: sellers, sessions, links, personal tokens, operator
/// tokens, the audit log.
#[async_trait]
pub trait AccountStore: Send + Sync {
    /// Registers an account with the next number. An address in use, ignoring case, is a conflict on
    /// `sellers_email_key`.
    async fn add_seller(&self, seller: NewSeller) -> Result<Seller, StoreError>;

    async fn lock_seller(&self, id: SellerId) -> Result<Option<Seller>, StoreError>;

    /// Closes an account; a closed one keeps its first `closed_at`. False if there is no such account. Its
    /// tokens, sessions, applications and subscriptions are rejected from the commit on. Only the account's
    /// row changes, so their number does not matter.
    async fn close_seller(&self, id: SellerId, at: DateTime<Utc>) -> Result<bool, StoreError>;

    async fn open_session(&self, session: Session) -> Result<(), StoreError>;

    /// Ends a session; does nothing if there is none.
    async fn end_session(&self, session: SecretHash) -> Result<(), StoreError>;

    /// Ends every session of an account except the given one, and deletes all its one-time links, so that no
    /// access that another person has obtained survives a new password.
    async fn end_sessions(&self, seller: SellerId, except: Option<SecretHash>) -> Result<(), StoreError>;

    /// Whether the session exists and was not ended; it may have expired.
    async fn has_session(&self, session: SecretHash) -> Result<bool, StoreError>;

    /// The current password of an account, which the caller has locked.
    async fn password_hash(&self, seller: SellerId) -> Result<Option<PasswordHash>, StoreError>;

    async fn set_password(&self, seller: SellerId, password: PasswordHash) -> Result<(), StoreError>;

    /// Stores a one-time link. A sign-in link replaces the earlier one; mailed links stay valid until
    /// [`Self::end_sessions`] ends all.
    async fn add_link(&self, link: Link) -> Result<(), StoreError>;

    /// When the newest link of this kind expires; None if there is none, or it was used.
    async fn newest_link_expiry(
        &self,
        seller: SellerId,
        kind: LinkKind,
    ) -> Result<Option<DateTime<Utc>>, StoreError>;

    /// Consumes a link: returns the account, or None if the link is unknown, expired, used or of another
    /// kind, or its account is closed. Locks the account first, as [`Self::lock_seller`] does, so that this
    /// runs entirely before or after a change of its password.
    async fn use_link(&self, hash: SecretHash, kind: LinkKind) -> Result<Option<Seller>, StoreError>;

    async fn queue_account_mail(&self, mail: AccountMail) -> Result<(), StoreError>;

    /// Records that a session has sent a form, by its one-time number or a digest of it, with sealed content
    /// to be shown once. False if it is recorded already, unless this call adds the first content.
    async fn store_flash(
        &self,
        session: SecretHash,
        form: Uuid,
        sealed: Option<Vec<u8>>,
    ) -> Result<bool, StoreError>;

    /// Takes the content stored under a form's number; None if there is none or it was taken.
    async fn take_flash(&self, session: SecretHash, form: Uuid) -> Result<Option<Vec<u8>>, StoreError>;

    /// Counts an action in the current window, in its transaction: a rollback undoes the count, and
    /// concurrent actions of one subject wait for each other.
    async fn count_action(&self, limiter: Limiter, subject: Subject) -> Result<Count, StoreError>;

    /// Adds an entry to the audit log in the transaction of the action; `changes` as in
    /// [`crate::AuditEntry`].
    async fn log_action(
        &self,
        actor: Actor,
        address: Option<IpAddr>,
        action: Action,
        subject: &str,
        changes: Option<Value>,
    ) -> Result<(), StoreError>;

    /// Stores a personal token with its family, whose id is its own. `client_id` is the seller's built-in
    /// application.
    async fn add_personal_token(
        &self,
        seller: SellerId,
        client_id: ClientId,
        key: TokenKey,
        token: NewPersonalToken,
    ) -> Result<(), StoreError>;

    /// The number of the seller's personal tokens that are live at `now`. The caller has locked the account's
    /// row, so the number is valid until the transaction ends.
    async fn count_personal_tokens(&self, seller: SellerId, now: DateTime<Utc>) -> Result<usize, StoreError>;

    /// Revokes a personal token; false if the seller has no such live token.
    async fn revoke_personal_token(&self, seller: SellerId, family: FamilyId) -> Result<bool, StoreError>;

    async fn add_operator_token(
        &self,
        id: Uuid,
        hash: SecretHash,
        token: NewOperatorToken,
    ) -> Result<(), StoreError>;

    /// The id of an operator's token, whatever its state.
    async fn operator_token(&self, hash: SecretHash) -> Result<Option<Uuid>, StoreError>;

    /// Revokes a token; false if no live token has this id.
    async fn revoke_operator_token(&self, id: Uuid) -> Result<bool, StoreError>;
}

/// A token for the back office, before it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewOperatorToken {
    /// A label.
    pub name: String,
    /// None for a token that does not expire.
    pub lifetime: Option<TimeDelta>,
    /// Whether it may only read.
    pub read_only: bool,
}

/// An operator token as listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorTokenRecord {
    pub id: Uuid,
    /// A label.
    pub name: String,
    pub created_at: DateTime<Utc>,
    pub revoked_at: Option<DateTime<Utc>>,
    /// When a request last carried it, to the minute.
    pub used_at: Option<DateTime<Utc>>,
    pub expires_at: Option<DateTime<Utc>>,
    /// Whether it may only read.
    pub read_only: bool,
}

/// Hashes passwords.
///
/// An adapter MUST use a slow, salted hash (argon2id) and limit concurrent hashing. If too many calls are
/// waiting, it MUST fail at once with [`HasherBusy`] in a [`StoreError::Unavailable`].
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait PasswordHasher: Send + Sync {
    async fn hash(&self, password: &str) -> Result<PasswordHash, StoreError>;

    /// Whether the password matches the hash. Without a hash it returns false after the same time, so that an
    /// unknown account cannot be distinguished from a wrong password.
    async fn verify(&self, password: &str, hash: Option<PasswordHash>) -> Result<bool, StoreError>;
}

/// The maximum number of passwords is waiting to be hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many passwords are waiting to be hashed")]
pub struct HasherBusy;

/// The key of a call count: seller, application and response status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UsageKey {
    pub seller: SellerId,
    pub client_id: ClientId,
    /// The HTTP status of the responses.
    pub status: u16,
}

/// Calls counted since the last report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageCount {
    pub key: UsageKey,
    pub calls: u32,
}

/// Calls of one application in one hour with one status, over all sellers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HourlyUsage {
    /// The start of the hour.
    pub hour: DateTime<Utc>,
    /// The HTTP status.
    pub status: u16,
    pub calls: u64,
}

/// Stores the call counts that a process collects. They are approximate: a killed process loses the counts of
/// its last seconds.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait UsageLog: Send + Sync {
    /// Adds to the application's counters of the current hour, and records when it was last used for each
    /// seller, to the minute; both by the database's clock.
    async fn add_usage(&self, counts: Vec<UsageCount>) -> Result<(), StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_neither_link_nor_recipient() {
        let mail = AccountMail {
            id: Uuid::nil().into(),
            seller: Uuid::nil().into(),
            kind: LinkKind::Invitation,
            to: "shop@example.com".to_owned(),
            name: "Kettles & Co".to_owned(),
            url: "https://panel.example/link".to_owned(),
            expires_at: DateTime::UNIX_EPOCH,
        };
        let printed = format!("{mail:?}");
        assert!(printed.starts_with("AccountMail"), "{printed}");
        for hidden in [&mail.to, &mail.name, &mail.url] {
            assert!(!printed.contains(hidden), "{printed}");
        }
    }
}
