//! Where accounts are kept, and what hangs on them: sessions, one-time links, personal tokens, mails, operators' tokens, the
//! audit log, usage.

use std::net::IpAddr;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{Mail, MailId, SellerId, StoreError};
use oauth::{ClientId, Count, FamilyId, Limiter, ScopeSet, SecretHash, Subject};
use uuid::Uuid;

use crate::{Action, Actor, AuditEntry, Link, LinkKind, NewSeller, PasswordHash, Seller, Session};

/// Reads accounts outside a transaction.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait SellerReader: Send + Sync {
    /// One account.
    async fn seller(&self, id: SellerId) -> Result<Option<Seller>, StoreError>;

    /// Up to `limit` accounts with a `seller_no` above `after`, in that order.
    async fn sellers(&self, after: i32, limit: u16) -> Result<Vec<Seller>, StoreError>;
}

/// An account with what signing in needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The account.
    pub seller: Seller,
    /// None until the seller sets a password.
    pub password: Option<PasswordHash>,
}

/// A personal token as its seller sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonalToken {
    /// Its id, to revoke it by.
    pub id: FamilyId,
    /// To recognise it by.
    pub name: String,
    /// What it may do.
    pub scopes: ScopeSet,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it ends; none = never.
    pub expires_at: Option<DateTime<Utc>>,
}

/// Who is signed in, for one request of the panel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedIn {
    /// The account.
    pub seller: Seller,
    /// The session.
    pub session: Session,
    /// The database's clock.
    pub now: DateTime<Utc>,
}

/// Reads what the panel shows, outside a transaction.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait PanelReader: Send + Sync {
    /// The account with this e-mail address, whatever its case; closed ones included.
    async fn account(&self, email: &str) -> Result<Option<Account>, StoreError>;

    /// The password of an account.
    async fn password(&self, seller: SellerId) -> Result<Option<PasswordHash>, StoreError>;

    /// Who is signed in with this cookie; nothing when the session has ended or the account is closed. Notes the use, at
    /// most once a minute.
    async fn signed_in(&self, session: SecretHash) -> Result<Option<SignedIn>, StoreError>;

    /// The link with this hash, where it can still be used, with its account and the database's clock.
    async fn link(&self, hash: SecretHash) -> Result<Option<(Link, Seller)>, StoreError>;

    /// The seller's personal tokens that are alive, newest first.
    async fn personal_tokens(&self, seller: SellerId) -> Result<Vec<PersonalToken>, StoreError>;

    /// The calls of one of the owner's applications since an instant, hour by hour; and how many of the present minute's
    /// limit are used.
    async fn usage(
        &self,
        client_id: ClientId,
        since: DateTime<Utc>,
    ) -> Result<(Vec<HourlyUsage>, u64), StoreError>;
}

/// A mail about an account, with the one-time link that it carries. The link is sealed wherever the mail is kept.
#[derive(Clone, PartialEq, Eq)]
pub struct AccountMail {
    /// Its id, fixed when it is queued.
    pub id: MailId,
    /// Whom it concerns.
    pub seller: SellerId,
    /// What its link is for; never [`LinkKind::SignIn`].
    pub kind: LinkKind,
    /// Where to.
    pub to: String,
    /// The name of the business.
    pub name: String,
    /// The link.
    pub url: String,
    /// When the link can no longer be used.
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

/// Changes accounts and what hangs on them, within a transaction: sellers, sessions, links, personal tokens, operators' tokens,
/// the audit log.
#[async_trait]
pub trait AccountStore: Send + Sync {
    /// Registers an account and gives it the next number. An address that is taken, without regard to case, is a conflict
    /// on `sellers_email_key`.
    async fn add_seller(&self, seller: NewSeller) -> Result<Seller, StoreError>;

    /// The account with its row locked.
    async fn lock_seller(&self, id: SellerId) -> Result<Option<Seller>, StoreError>;

    /// Closes an account; keeps the first instant when it is closed already. False when there is no such account.
    async fn close_seller(&self, id: SellerId, at: DateTime<Utc>) -> Result<bool, StoreError>;

    /// Opens a session.
    async fn open_session(&self, session: Session) -> Result<(), StoreError>;

    /// Ends a session; nothing happens when there is none.
    async fn end_session(&self, session: SecretHash) -> Result<(), StoreError>;

    /// Ends every session of an account but the given one, and every one-time link into it: nothing that somebody else has
    /// obtained outlives a new password.
    async fn end_sessions(&self, seller: SellerId, but: Option<SecretHash>) -> Result<(), StoreError>;

    /// Whether there is such a session, be it alive or not.
    async fn has_session(&self, session: SecretHash) -> Result<bool, StoreError>;

    /// The password of an account as it is now: the caller holds the account locked.
    async fn present_password(&self, seller: SellerId) -> Result<Option<PasswordHash>, StoreError>;

    /// Sets the password of an account.
    async fn set_password(&self, seller: SellerId, password: PasswordHash) -> Result<(), StoreError>;

    /// Stores a one-time link, and makes every earlier one of its kind and account useless.
    async fn add_link(&self, link: Link) -> Result<(), StoreError>;

    /// Uses a link up: the account, or nothing when it is unknown, expired, used, of another kind, or its account is closed.
    /// The account is locked first, as [`Self::lock_seller`] does: a link is used before or after the account's
    /// password is changed, and not during.
    async fn use_link(&self, hash: SecretHash, kind: LinkKind) -> Result<Option<Seller>, StoreError>;

    /// Queues a mail about an account.
    async fn queue_account_mail(&self, mail: AccountMail) -> Result<(), StoreError>;

    /// Keeps something that is to be shown once to a session, sealed by the caller, under the one-time number of the form
    /// that asked for it; false when that form was sent before: then nothing else may be done.
    async fn keep_flash(
        &self,
        session: SecretHash,
        form: Uuid,
        sealed: Option<Vec<u8>>,
    ) -> Result<bool, StoreError>;

    /// Takes what was kept under a form's number; nothing when there is none or it was taken.
    async fn take_flash(&self, session: SecretHash, form: Uuid) -> Result<Option<Vec<u8>>, StoreError>;

    /// Counts a deed in the present window, in its transaction: what is undone is not counted, and of two at a time the
    /// second waits for the first one's end.
    async fn count_deed(&self, limiter: Limiter, subject: Subject) -> Result<Count, StoreError>;

    /// Notes what was done, in the transaction of its deed.
    async fn note(
        &self,
        actor: Actor,
        address: Option<IpAddr>,
        action: Action,
        subject: &str,
    ) -> Result<(), StoreError>;

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

    /// Stores a new token.
    async fn add_operator_token(&self, id: Uuid, name: &str, hash: SecretHash) -> Result<(), StoreError>;

    /// Revokes a token; false when there is none alive with this id.
    async fn revoke_operator_token(&self, id: Uuid) -> Result<bool, StoreError>;
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

/// Reads the audit log.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait AuditReader: Send + Sync {
    /// Up to `limit` entries older than `before`, newest first, of one actor or subject where given.
    async fn entries(
        &self,
        about: Option<String>,
        before: Option<Uuid>,
        limit: u16,
    ) -> Result<Vec<AuditEntry>, StoreError>;
}

/// Calls of one application for one seller with one status, since the last time they were noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UsageKey {
    /// For whom.
    pub seller: SellerId,
    /// By whom.
    pub client_id: ClientId,
    /// The HTTP status of the answers.
    pub status: u16,
}

/// How often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageCount {
    /// Who and with what success.
    pub key: UsageKey,
    /// How many.
    pub calls: u32,
}

/// An hour's calls of one application with one status, over all sellers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HourlyUsage {
    /// When the hour began.
    pub hour: DateTime<Utc>,
    /// The HTTP status.
    pub status: u16,
    /// How many.
    pub calls: u64,
}

/// Takes the counts of calls that a process gathers. They tell a seller roughly what goes on: a process that is killed loses
/// those of the last seconds.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait UsageLog: Send + Sync {
    /// Adds to the counters of the present hour, by the database's clock.
    async fn add_usage(&self, counts: Vec<UsageCount>) -> Result<(), StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_prints_neither_its_link_nor_whom_it_goes_to() {
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
