//! A seller signs in to the panel with a password, and out again.
//!
//! Unknown, closed and passwordless accounts and wrong passwords are not told apart, neither by words nor by time. Attempts
//! are counted by address, where those beyond the limit are refused, and by account, where they only have to wait: nobody can
//! lock an owner out.

use std::net::IpAddr;
use std::time::Duration;

use accounts::{AccountStore, Action, PanelReader, PasswordHash, PasswordHasher, Seller, Session};
use kernel::{SellerId, StoreError};
use oauth::{Limiter, Quota, RateCounter, SecretHash, Subject};

use crate::{ActingSeller, Failure, sellers::NotOpen, sellers::lock_open};

/// How many attempts are let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptLimits {
    /// Attempts a minute from one address; those beyond are refused.
    pub per_address: u32,
    /// Attempts a minute for one account that need not wait. Each one beyond waits a second longer than the one before it.
    pub undelayed_per_account: u32,
    /// The longest wait.
    pub longest_delay: Duration,
}

/// How an attempt goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// After this long; zero for most.
    After(Duration),
    /// Not at all: the address has made too many.
    Refused(Quota),
}

/// Counts an attempt to sign in to the account with this e-mail address, or to have its password sent or changed.
pub async fn pace(
    rates: &dyn RateCounter,
    (address, email): (IpAddr, &str),
    limits: AttemptLimits,
) -> Result<Pace, StoreError> {
    let by_address = rates
        .count(Limiter::SignInByAddress, Subject::address(address))
        .await?
        .against(limits.per_address);
    if !by_address.admits() {
        return Ok(Pace::Refused(by_address));
    }
    let by_account = rates
        .count(Limiter::SignInByAccount, Subject::account(email))
        .await?;
    let beyond = by_account
        .place
        .saturating_sub(u64::from(limits.undelayed_per_account));
    Ok(Pace::After(Duration::from_secs(beyond).min(limits.longest_delay)))
}

/// What comes of a password.
#[derive(Debug)]
pub enum Checked {
    /// It is the account's; with the hash that it was compared with.
    Right(Box<Seller>, PasswordHash),
    /// It is not; names the account where there is one, for the audit log alone.
    Wrong(Option<SellerId>),
}

/// Compares a password with the account's. An account that nobody can sign in to takes the same work.
pub async fn check(
    panel: &dyn PanelReader,
    passwords: &dyn PasswordHasher,
    email: &str,
    password: &str,
) -> Result<Checked, StoreError> {
    let account = panel.account(email).await?;
    let known = account.as_ref().map(|account| account.seller.id);
    let open = account.filter(|account| account.seller.closed_at.is_none());
    let (seller, hash) = open.map_or((None, None), |account| (Some(account.seller), account.password));
    let fits = passwords.verify(password, hash.clone()).await?;
    Ok(match (fits, seller, hash) {
        (true, Some(seller), Some(hash)) => Checked::Right(Box::new(seller), hash),
        _ => Checked::Wrong(known),
    })
}

/// A session to be opened.
#[derive(Debug, Clone, Copy)]
pub struct Opening {
    /// Who signs in.
    pub by: ActingSeller,
    /// The hash of the new cookie.
    pub session: SecretHash,
    /// The hash of the cookie that the browser came with: its session, if any, ends.
    pub earlier: Option<SecretHash>,
}

/// Opens a session. The account's row is locked, so that a session is opened before or after the account is closed or its
/// password changed, and not during.
pub async fn open_session(
    accounts: &dyn AccountStore,
    opening: Opening,
    now: chrono::DateTime<chrono::Utc>,
) -> Result<(), Failure<NotOpen>> {
    lock_open::<NotOpen>(accounts, opening.by.seller).await?;
    store_session(accounts, opening, now).await?;
    Ok(())
}

pub(crate) async fn store_session(
    accounts: &dyn AccountStore,
    opening: Opening,
    now: chrono::DateTime<chrono::Utc>,
) -> Result<(), StoreError> {
    if let Some(earlier) = opening.earlier {
        accounts.end_session(earlier).await?;
    }
    let session = Session {
        hash: opening.session,
        seller: opening.by.seller,
        created_at: now,
        seen_at: now,
    };
    accounts.open_session(session).await?;
    let subject = opening.by.seller;
    opening.by.note(accounts, Action::SignedIn, subject).await
}

/// Whether the password that was compared is still the account's. A session that was opened by one that is not is to be ended:
/// the change came between the comparison and the opening, and could not end it.
pub async fn is_still_right(
    panel: &dyn PanelReader,
    seller: SellerId,
    compared: &PasswordHash,
) -> Result<bool, StoreError> {
    Ok(panel.password(seller).await?.as_ref() == Some(compared))
}

/// Ends a session.
pub async fn sign_out(
    accounts: &dyn AccountStore,
    by: ActingSeller,
    session: SecretHash,
) -> Result<(), StoreError> {
    accounts.end_session(session).await?;
    by.note(accounts, Action::SignedOut, by.seller).await
}

/// Ends every session of the account.
pub async fn sign_out_everywhere(accounts: &dyn AccountStore, by: ActingSeller) -> Result<(), StoreError> {
    accounts.end_sessions(by.seller, None).await?;
    by.note(accounts, Action::SignedOutEverywhere, by.seller).await
}

/// Notes a wrong password for an account that exists.
pub async fn note_failure(accounts: &dyn AccountStore, by: ActingSeller) -> Result<(), StoreError> {
    by.note(accounts, Action::SignInFailed, by.seller).await
}

#[cfg(test)]
mod tests;
