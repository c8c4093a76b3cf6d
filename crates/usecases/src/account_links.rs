//! Getting into an account without its password: invitations, forgotten passwords, links of marketplaces that sign their
//! sellers in elsewhere; and changing the password. The marketplace makes links for its sellers, too.

use accounts::{AccountMail, AccountStore, Action, Link, LinkKind, LinkSecret, PasswordHash, Seller};
use chrono::{DateTime, Utc};
use kernel::{Randomness, SellerId, StoreError};
use oauth::SecretHash;

use crate::{
    ActingOperator, ActingSeller, Failure, failure::refuse, sellers::NotOpen, sellers::lock_open,
    sign_in::Opening, sign_in::store_session,
};

/// Why a link or a change of the password does nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The link is unknown, expired or used, or its account is closed.
    #[error("the link cannot be used, or not any more")]
    DeadLink,
    /// The account is closed.
    #[error(transparent)]
    Account(#[from] NotOpen),
    /// The session from which the password was to be changed has ended meanwhile.
    #[error("the session has ended")]
    SessionEnded,
    /// The password is another one by now than the one that was given as the present one.
    #[error("the password has been changed meanwhile")]
    PasswordReplaced,
}

/// The address of a link. The panel takes what follows its path out of every log.
pub fn link_url(public_url: &str, kind: LinkKind, secret: &LinkSecret) -> String {
    format!("{public_url}/panel/{}/{}", kind.as_str(), secret.reveal())
}

/// Makes a link for an account, and every earlier one of its kind useless.
pub async fn make_link(
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

/// Makes a link and queues the mail that carries it; what is returned of it cannot be used.
pub async fn send_link(
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    (seller, kind): (&Seller, LinkKind),
    public_url: &str,
    now: DateTime<Utc>,
) -> Result<Link, StoreError> {
    let (secret, link) = make_link(accounts, randomness, seller.id, kind, now).await?;
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
    Ok(link)
}

/// Sends a seller who has forgotten the password a link for a new one.
pub async fn send_reset(
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    by: ActingSeller,
    public_url: &str,
    now: DateTime<Utc>,
) -> Result<(), Failure<Refusal>> {
    let seller = lock_open(accounts, by.seller).await?;
    send_link(
        accounts,
        randomness,
        (&seller, LinkKind::PasswordReset),
        public_url,
        now,
    )
    .await?;
    by.note(accounts, Action::ResetAsked, by.seller).await?;
    Ok(())
}

/// Sets the password by an invitation or a reset link, which is used up. Every session of the account ends.
pub async fn set_password(
    accounts: &dyn AccountStore,
    (link, kind): (SecretHash, LinkKind),
    password: PasswordHash,
    address: std::net::IpAddr,
) -> Result<(), Failure<Refusal>> {
    let Some(seller) = accounts.use_link(link, kind).await? else {
        return refuse(Refusal::DeadLink);
    };
    let by = ActingSeller {
        seller: seller.id,
        address,
    };
    accounts.set_password(by.seller, password).await?;
    accounts.end_sessions(by.seller, None).await?;
    by.note(accounts, Action::PasswordChanged, by.seller).await?;
    Ok(())
}

/// Signs in by a link, which is used up.
pub async fn sign_in_by_link(
    accounts: &dyn AccountStore,
    link: SecretHash,
    (session, earlier): (SecretHash, Option<SecretHash>),
    address: std::net::IpAddr,
    now: DateTime<Utc>,
) -> Result<(), Failure<Refusal>> {
    let Some(seller) = accounts.use_link(link, LinkKind::SignIn).await? else {
        return refuse(Refusal::DeadLink);
    };
    let by = ActingSeller {
        seller: seller.id,
        address,
    };
    let opening = Opening { by, session, earlier };
    store_session(accounts, opening, now).await?;
    Ok(())
}

/// Changes the password of somebody who is signed in; every other session of the account ends. `compared` is the hash that
/// fits what was given as the present password: comparing takes long, so whatever has ended the session or replaced the
/// password since then is looked for with the account locked, and prevails.
pub async fn change_password(
    accounts: &dyn AccountStore,
    (by, session): (ActingSeller, SecretHash),
    (compared, password): (&PasswordHash, PasswordHash),
) -> Result<(), Failure<Refusal>> {
    lock_open::<Refusal>(accounts, by.seller).await?;
    if !accounts.has_session(session).await? {
        return refuse(Refusal::SessionEnded);
    }
    if accounts.present_password(by.seller).await?.as_ref() != Some(compared) {
        return refuse(Refusal::PasswordReplaced);
    }
    accounts.set_password(by.seller, password).await?;
    accounts.end_sessions(by.seller, Some(session)).await?;
    by.note(accounts, Action::PasswordChanged, by.seller).await?;
    Ok(())
}

/// A link for the marketplace to send its seller to.
#[derive(Clone, PartialEq, Eq)]
pub struct SignInLink {
    /// Its address.
    pub url: String,
    /// When it can no longer be used.
    pub expires_at: DateTime<Utc>,
}

impl std::fmt::Debug for SignInLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SignInLink")
    }
}

/// Makes a link that signs a seller in; the one before it is useless from then on.
pub async fn make_sign_in_link(
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    (by, seller): (ActingOperator, SellerId),
    public_url: &str,
    now: DateTime<Utc>,
) -> Result<SignInLink, Failure<NotOpen>> {
    let seller = lock_open(accounts, seller).await?;
    let (secret, link) = make_link(accounts, randomness, seller.id, LinkKind::SignIn, now).await?;
    by.note(accounts, Action::SignInLinkMade, seller.id).await?;
    Ok(SignInLink {
        url: link_url(public_url, LinkKind::SignIn, &secret),
        expires_at: link.expires_at,
    })
}

/// Sends an invitation again; the one before it is useless from then on.
pub async fn invite(
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    (by, seller): (ActingOperator, SellerId),
    public_url: &str,
    now: DateTime<Utc>,
) -> Result<Link, Failure<NotOpen>> {
    let seller = lock_open(accounts, seller).await?;
    let of = (&seller, LinkKind::Invitation);
    let link = send_link(accounts, randomness, of, public_url, now).await?;
    by.note(accounts, Action::InvitationSent, seller.id).await?;
    Ok(link)
}

#[cfg(test)]
mod tests;
