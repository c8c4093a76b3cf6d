//! A seller signs in to the panel with a password, and signs out.
//!
//! Unknown, closed and passwordless accounts and wrong passwords are indistinguishable, both by message and
//! by response time. Attempts are counted per address, where those beyond the limit are refused, and per
//! account, where they are only delayed, so that no attacker can lock an owner out.

use std::net::IpAddr;
use std::time::Duration;

use accounts::{AccountReader, AccountStore, Action, PasswordHash, PasswordHasher, Session};
use kernel::{SellerId, StoreError};
use oauth::{Limiter, Quota, RateCounter, SecretHash, Subject};

use crate::{Acting, ActingSeller};

/// Attempts a minute for one account without a delay. Each further one waits one second longer than the one
/// before.
const UNDELAYED_PER_ACCOUNT: u64 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptLimits {
    /// Attempts a minute from one address; those beyond are refused.
    pub per_address: u32,
    /// The longest wait of an attempt.
    pub longest_delay: Duration,
}

/// Counts an attempt to sign in to the account with this e-mail address, or to request or make a change of
/// its password. Returns its delay, usually zero; the inner error is the quota of an address that has made too
/// many attempts.
pub async fn count_attempt(
    rates: &dyn RateCounter,
    address: IpAddr,
    email: &str,
    limits: AttemptLimits,
) -> Result<Result<Duration, Quota>, StoreError> {
    let by_address = rates
        .count(Limiter::SignInByAddress, Subject::address(address))
        .await?
        .against(limits.per_address);
    if !by_address.admits() {
        return Ok(Err(by_address));
    }
    let by_account = rates
        .count(Limiter::SignInByAccount, Subject::account(email))
        .await?;
    let beyond = by_account.place.saturating_sub(UNDELAYED_PER_ACCOUNT);
    Ok(Ok(Duration::from_secs(beyond).min(limits.longest_delay)))
}

/// The result of a password check.
#[derive(Debug)]
pub enum PasswordCheck {
    /// The password matches this hash of the account.
    Right(SellerId, PasswordHash),
    /// It does not match. Names the account, if there is one, for the audit log only.
    Wrong(Option<SellerId>),
}

/// Compares a password with the account's. An account that cannot be signed in to costs the same work.
pub async fn check_password(
    panel: &dyn AccountReader,
    passwords: &dyn PasswordHasher,
    email: &str,
    password: &str,
) -> Result<PasswordCheck, StoreError> {
    let account = panel.account(email).await?;
    let known = account.as_ref().map(|account| account.seller.id);
    let open = account.filter(|account| account.seller.closed_at.is_none());
    let hash = open.and_then(|account| account.password);
    let fits = passwords.verify(password, hash.clone()).await?;
    Ok(match (fits, known, hash) {
        (true, Some(seller), Some(hash)) => PasswordCheck::Right(seller, hash),
        _ => PasswordCheck::Wrong(known),
    })
}

#[derive(Debug, Clone, Copy)]
pub struct NewSession {
    pub by: ActingSeller,
    pub session: SecretHash,
    /// The hash of the browser's current cookie: its session, if any, ends.
    pub earlier: SecretHash,
}

/// Opens a session after the password was `compared` with this hash. False if the account was closed or its
/// password changed since: its row is locked, so that this runs entirely before or after such a change.
pub async fn open_session(
    accounts: &dyn AccountStore,
    new: NewSession,
    compared: &PasswordHash,
    now: chrono::DateTime<chrono::Utc>,
) -> Result<bool, StoreError> {
    let account = accounts.lock_seller(new.by.seller).await?;
    let is_open = account.is_some_and(|seller| seller.closed_at.is_none());
    if !is_open || accounts.password_hash(new.by.seller).await?.as_ref() != Some(compared) {
        return Ok(false);
    }
    store_session(accounts, new, now).await?;
    Ok(true)
}

pub(crate) async fn store_session(
    accounts: &dyn AccountStore,
    new: NewSession,
    now: chrono::DateTime<chrono::Utc>,
) -> Result<(), StoreError> {
    accounts.end_session(new.earlier).await?;
    let session = Session {
        hash: new.session,
        seller: new.by.seller,
        created_at: now,
        seen_at: now,
    };
    accounts.open_session(session).await?;
    let subject = new.by.seller;
    new.by.log(accounts, Action::SignedIn, subject).await
}

/// Ends the session, or all of its account. If it has ended, nothing is logged: a form that is sent many times
/// at once would fill the audit log.
pub async fn sign_out(
    accounts: &dyn AccountStore,
    by: ActingSeller,
    session: SecretHash,
    everywhere: bool,
) -> Result<(), StoreError> {
    accounts.lock_seller(by.seller).await?;
    if !accounts.has_session(session).await? {
        return Ok(());
    }
    let action = if everywhere {
        accounts.end_sessions(by.seller, None).await?;
        Action::SignedOutEverywhere
    } else {
        accounts.end_session(session).await?;
        Action::SignedOut
    };
    by.log(accounts, action, by.seller).await
}

#[cfg(test)]
mod tests;
