//! Access to an account without its password (invitations, password resets, sign-in links of marketplaces
//! that authenticate their sellers elsewhere), and changing the password. The marketplace can create links
//! for its sellers, too.

use accounts::{AccountMail, AccountStore, Action, Link, LinkKind, LinkSecret, PasswordHash, Seller};
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{Randomness, SellerId, StoreError};
use oauth::{Limiter, SecretHash, Subject};

use crate::failure::{ensure, present};
use crate::sellers::{NotOpen, lock_open};
use crate::sign_in::{NewSession, store_session};
use crate::{Acting, ActingOperator, ActingSeller, Failure};

/// Why a link cannot be used or a password not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LinkRefusal {
    /// The link is unknown, expired or used, or its account is closed.
    #[error("the link is unknown, expired or used")]
    DeadLink,
    #[error(transparent)]
    Account(#[from] NotOpen),
    /// The session that requested the change has ended meanwhile.
    #[error("the session has ended")]
    SessionEnded,
    /// The current password differs, perhaps because it was changed after the given one was verified.
    #[error("wrong current password")]
    WrongPassword,
}

/// The URL of a link. No log shows what follows its path.
pub fn link_url(public_url: &str, kind: LinkKind, secret: &LinkSecret) -> String {
    format!("{public_url}/panel/{}/{}", kind.as_str(), secret.reveal())
}

/// Creates a link for an account.
pub async fn create_link(
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    seller: SellerId,
    kind: LinkKind,
    now: DateTime<Utc>,
) -> Result<(LinkSecret, Link), StoreError> {
    let secret = LinkSecret::from_random(&randomness.secret());
    let link = Link {
        hash: secret.hash(),
        kind,
        seller,
        expires_at: now + kind.lifetime(),
    };
    accounts.add_link(link).await?;
    Ok((secret, link))
}

/// The most mails with links to one account in a clock hour.
const MAX_MAILS_PER_HOUR: u32 = 5;

/// A link by mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MailedLink {
    pub expires_at: DateTime<Utc>,
    /// Whether it was mailed now, not by an earlier mail.
    pub is_new: bool,
}

/// Creates a link and queues its mail, unless the newest link of its kind is younger than `interval` or the
/// account's hourly limit of mails is reached: nobody can flood a mailbox. A zero interval turns both limits
/// off. None if no mail is sent and no earlier link is valid.
pub async fn send_link(
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    seller: &Seller,
    kind: LinkKind,
    public_url: &str,
    interval: TimeDelta,
    now: DateTime<Utc>,
) -> Result<Option<MailedLink>, StoreError> {
    if interval > TimeDelta::zero() {
        let newest = accounts
            .newest_link_expiry(seller.id, kind)
            .await?
            .filter(|end| *end > now);
        let is_young = newest.is_some_and(|end| now < end - kind.lifetime() + interval);
        if is_young || !count_mail(accounts, seller.id).await? {
            let earlier = |expires_at| MailedLink {
                expires_at,
                is_new: false,
            };
            return Ok(newest.map(earlier));
        }
    }
    let (secret, link) = create_link(accounts, randomness, seller.id, kind, now).await?;
    let mail = AccountMail {
        id: randomness.uuid().into(),
        seller: seller.id,
        kind,
        to: seller.email.clone(),
        name: seller.name.clone(),
        url: link_url(public_url, kind, &secret),
        expires_at: link.expires_at,
    };
    accounts.queue_account_mail(mail).await?;
    Ok(Some(MailedLink {
        expires_at: link.expires_at,
        is_new: true,
    }))
}

/// Counts a mail to an account; false beyond the hourly limit.
async fn count_mail(accounts: &dyn AccountStore, seller: SellerId) -> Result<bool, StoreError> {
    let counted = accounts
        .count_action(Limiter::LinkMails, Subject::seller(seller))
        .await?;
    Ok(counted.against(MAX_MAILS_PER_HOUR).admits())
}

/// Sends a password reset link to a seller who forgot the password, as [`send_link`] does.
pub async fn send_reset(
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    by: ActingSeller,
    public_url: &str,
    interval: TimeDelta,
    now: DateTime<Utc>,
) -> Result<(), Failure<LinkRefusal>> {
    let seller = lock_open(accounts, by.seller).await?;
    let kind = LinkKind::PasswordReset;
    let link = send_link(accounts, randomness, &seller, kind, public_url, interval, now).await?;
    if link.is_some_and(|link| link.is_new) {
        by.log(accounts, Action::ResetRequested, by.seller).await?;
    }
    Ok(())
}

/// Sets the password with an invitation or reset link, which is consumed. All sessions of the account end.
pub async fn set_password(
    accounts: &dyn AccountStore,
    link: SecretHash,
    kind: LinkKind,
    password: PasswordHash,
    address: std::net::IpAddr,
) -> Result<(), Failure<LinkRefusal>> {
    let seller = present(accounts.use_link(link, kind).await?, LinkRefusal::DeadLink)?;
    let by = ActingSeller {
        seller: seller.id,
        address,
    };
    accounts.set_password(by.seller, password).await?;
    accounts.end_sessions(by.seller, None).await?;
    by.log(accounts, Action::PasswordChanged, by.seller).await?;
    Ok(())
}

/// Signs a seller in with a link, which is consumed.
pub async fn sign_in_by_link(
    accounts: &dyn AccountStore,
    link: SecretHash,
    session: SecretHash,
    earlier: SecretHash,
    address: std::net::IpAddr,
    now: DateTime<Utc>,
) -> Result<SellerId, Failure<LinkRefusal>> {
    let seller = accounts.use_link(link, LinkKind::SignIn).await?;
    let seller = present(seller, LinkRefusal::DeadLink)?;
    let by = ActingSeller {
        seller: seller.id,
        address,
    };
    let new = NewSession { by, session, earlier };
    store_session(accounts, new, now).await?;
    Ok(seller.id)
}

/// Changes the password of a signed-in seller; all other sessions of the account end. `change` has the hash
/// that the given current password was verified against, and the new one; None if it was wrong. Verification is
/// slow, so the account is locked and checked again: a session that ended or a password that was replaced
/// meanwhile takes precedence.
pub async fn change_password(
    accounts: &dyn AccountStore,
    by: ActingSeller,
    session: SecretHash,
    change: Option<&(PasswordHash, PasswordHash)>,
) -> Result<(), Failure<LinkRefusal>> {
    lock_open::<LinkRefusal>(accounts, by.seller).await?;
    ensure(accounts.has_session(session).await?, LinkRefusal::SessionEnded)?;
    let current = accounts.password_hash(by.seller).await?;
    let change = change.filter(|(compared, _)| current.as_ref() == Some(compared));
    let (_, password) = present(change, LinkRefusal::WrongPassword)?;
    accounts.set_password(by.seller, password.clone()).await?;
    accounts.end_sessions(by.seller, Some(session)).await?;
    by.log(accounts, Action::PasswordChanged, by.seller).await?;
    Ok(())
}

/// Creates a link to which the marketplace redirects its seller, who is then signed in; invalidates the
/// previous one.
pub async fn create_sign_in_link(
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    by: ActingOperator,
    seller: SellerId,
    now: DateTime<Utc>,
) -> Result<(LinkSecret, Link), Failure<NotOpen>> {
    let seller = lock_open(accounts, seller).await?;
    let created = create_link(accounts, randomness, seller.id, LinkKind::SignIn, now).await?;
    by.log(accounts, Action::SignInLinkCreated, seller.id).await?;
    Ok(created)
}

/// Why a seller is not invited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotInvited {
    #[error(transparent)]
    Account(#[from] NotOpen),
    #[error("the seller has a password; the sign-in page sends a link for a new one")]
    HasPassword,
    #[error(
        "no invitation sent: the account's limit of {MAX_MAILS_PER_HOUR} mails an hour is reached, and no earlier invitation is valid"
    )]
    TooManyMails,
}

/// Sends an invitation again to a seller without a password, as [`send_link`] does. Refused if no invitation
/// is valid afterwards.
pub async fn invite(
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    by: ActingOperator,
    seller: SellerId,
    public_url: &str,
    interval: TimeDelta,
    now: DateTime<Utc>,
) -> Result<MailedLink, Failure<NotInvited>> {
    let seller = lock_open(accounts, seller).await?;
    let password = accounts.password_hash(seller.id).await?;
    ensure(password.is_none(), NotInvited::HasPassword)?;
    let kind = LinkKind::Invitation;
    let link = send_link(accounts, randomness, &seller, kind, public_url, interval, now).await?;
    let link = present(link, NotInvited::TooManyMails)?;
    if link.is_new {
        by.log(accounts, Action::InvitationSent, seller.id).await?;
    }
    Ok(link)
}

#[cfg(test)]
mod tests;
