//! The marketplace registers sellers and closes their accounts.

use accounts::{AccountStore, Action, LinkKind, NewSeller, Seller};
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{Randomness, SellerId, StoreError};
use oauth::{Application, ApplicationStore, ClientId};

use crate::account_links::send_link;
use crate::failure::{present, refuse};
use crate::{Acting, ActingOperator, Announcement, Failure};

/// Another account has the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("another seller has this e-mail address")]
pub struct EmailTaken;

/// Creates the account and its built-in application, which carries its personal tokens. A seller without a
/// password gets an invitation with a link under `public_url` to set one.
pub async fn register_seller(
    applications: &dyn ApplicationStore<Announcement>,
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    by: ActingOperator,
    new: NewSeller,
    public_url: &str,
    link_interval: TimeDelta,
) -> Result<Seller, Failure<EmailTaken>> {
    let (now, is_invited) = (new.created_at, new.password.is_none());
    let seller = accounts.add_seller(new).await.map_err(email_taken)?;
    let client_id = ClientId::from(randomness.uuid());
    let built_in = Application::built_in(client_id, seller.id, now);
    let built_in = Announcement::of_application(built_in, now);
    applications.save_application(built_in).await?;
    if is_invited {
        let kind = LinkKind::Invitation;
        send_link(
            accounts,
            randomness,
            &seller,
            kind,
            public_url,
            link_interval,
            now,
        )
        .await?;
    }
    by.log(accounts, Action::SellerRegistered, seller.id).await?;
    Ok(seller)
}

fn email_taken(error: StoreError) -> Failure<EmailTaken> {
    match error.conflict() {
        Some("sellers_email_key") => Failure::Refused(EmailTaken),
        _ => error.into(),
    }
}

/// Why an account cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotOpen {
    #[error("no such seller")]
    NoSuchSeller,
    #[error("the seller's account is closed")]
    SellerClosed,
}

/// Locks the account; refuses if it is not open.
pub(crate) async fn lock_open<R: From<NotOpen>>(
    accounts: &dyn AccountStore,
    id: SellerId,
) -> Result<Seller, Failure<R>> {
    match accounts.lock_seller(id).await? {
        None => refuse(NotOpen::NoSuchSeller.into()),
        Some(seller) if seller.closed_at.is_some() => refuse(NotOpen::SellerClosed.into()),
        Some(seller) => Ok(seller),
    }
}

/// Closes the account and returns it. Its tokens and sessions are rejected from the commit on. Idempotent.
pub async fn close_seller(
    accounts: &dyn AccountStore,
    by: ActingOperator,
    id: SellerId,
    now: DateTime<Utc>,
) -> Result<Seller, Failure<NotOpen>> {
    let seller = present(accounts.lock_seller(id).await?, NotOpen::NoSuchSeller)?;
    if seller.closed_at.is_some() {
        return Ok(seller);
    }
    accounts.close_seller(id, now).await?;
    by.log(accounts, Action::SellerClosed, id).await?;
    Ok(Seller {
        closed_at: Some(now),
        ..seller
    })
}
