//! Personal tokens: a seller creates and revokes them, in the panel or through the marketplace.

use accounts::{AccountStore, Action, MAX_PERSONAL_TOKENS, NewPersonalToken, Rule};
use chrono::{DateTime, Datelike as _, Utc};
use kernel::{Randomness, SellerId, StoreError};
use oauth::{ApplicationStatus, ApplicationStore, BearerToken, FamilyId, TokenKind};

use crate::failure::{ensure, refuse};
use crate::sellers::{NotOpen, lock_open};
use crate::{Acting, Announcement, Failure};

/// Why a personal token is not created or revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PersonalTokenRefusal {
    #[error(transparent)]
    Account(#[from] NotOpen),
    /// Its expiry is not in the future, or in a year that RFC 3339 cannot write.
    #[error("{}", Rule::FutureExpiry)]
    Expired,
    #[error("the seller already has {MAX_PERSONAL_TOKENS} live personal tokens: revoke one first")]
    TooMany,
    #[error("the seller's personal tokens are suspended: reinstate their application first")]
    Suspended,
    #[error("no such token")]
    NoSuchToken,
}

/// Creates a personal token, which is shown once. Locks the account's row, so that the limit of live tokens
/// holds under concurrency.
pub async fn issue_personal_token(
    applications: &dyn ApplicationStore<Announcement>,
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    by: impl Acting,
    seller: SellerId,
    new: NewPersonalToken,
    now: DateTime<Utc>,
) -> Result<BearerToken, Failure<PersonalTokenRefusal>> {
    lock_open::<PersonalTokenRefusal>(accounts, seller).await?;
    // A year is written with four digits.
    let may_end = |at: &DateTime<Utc>| *at > now && at.year() <= 9999;
    ensure(
        new.expires_at.as_ref().is_none_or(may_end),
        PersonalTokenRefusal::Expired,
    )?;
    let live = accounts.count_personal_tokens(seller, now).await?;
    ensure(live < MAX_PERSONAL_TOKENS, PersonalTokenRefusal::TooMany)?;
    let application = applications.built_in_application(seller).await?;
    let application =
        application.ok_or_else(|| StoreError::corrupt("sellers", seller, "has no built-in application"))?;
    if application.status == ApplicationStatus::Suspended {
        return refuse(PersonalTokenRefusal::Suspended);
    }
    let family = FamilyId::from(randomness.uuid());
    let token = BearerToken::from_random(TokenKind::Personal, family, &randomness.secret());
    accounts
        .add_personal_token(seller, application.client_id, token.key(), new)
        .await?;
    by.log(accounts, Action::PersonalTokenCreated, family).await?;
    Ok(token)
}

/// Revokes a personal token; it is rejected from the commit on. Refused if it was revoked before.
pub async fn revoke_personal_token(
    accounts: &dyn AccountStore,
    by: impl Acting,
    seller: SellerId,
    id: FamilyId,
) -> Result<(), Failure<PersonalTokenRefusal>> {
    let revoked = accounts.revoke_personal_token(seller, id).await?;
    ensure(revoked, PersonalTokenRefusal::NoSuchToken)?;
    by.log(accounts, Action::PersonalTokenRevoked, id).await?;
    Ok(())
}
