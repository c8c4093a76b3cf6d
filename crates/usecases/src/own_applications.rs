//! A seller registers, edits and deletes applications in the panel, and replaces their secrets.
//!
//! Another seller's application counts as nonexistent, and so does the built-in one that carries personal tokens.

use accounts::{AccountStore, Action};
use chrono::{DateTime, Utc};
use kernel::Randomness;
use oauth::{
    Application, ApplicationEdit, ApplicationStore, ClientId, ClientSecret, ClientType, Registrar,
    Registration,
};

use crate::register_application::{self, register_application};
use crate::shown_once::NumberUsed;
use crate::shown_once::{Drawn, Sent, Shown};
use crate::{ActingSeller, Failure, failure::refuse};

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The seller has no such application.
    #[error("there is no such application")]
    NoSuchApplication,
    /// The rules of registration refuse it.
    #[error(transparent)]
    Registration(#[from] register_application::Refusal),
    /// A public application has no secret.
    #[error("a public application has no secret")]
    NoSecret,
    /// The form's number was used before.
    #[error(transparent)]
    Form(#[from] NumberUsed),
}

/// Registers an application; its secret is stored to be shown once.
pub async fn register(
    applications: &dyn ApplicationStore,
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    (by, sent): (ActingSeller, Sent<'_>),
    registration: Registration,
    now: DateTime<Utc>,
) -> Result<(), Failure<Refusal>> {
    let drawn = Drawn::from(randomness);
    let client_id = ClientId::from(drawn.id);
    let secret = (registration.client_type == ClientType::Confidential)
        .then(|| ClientSecret::from_random(&drawn.secret).reveal().to_owned());
    sent.keep::<Refusal>(accounts, &Shown::Registered(client_id, secret))
        .await?;
    let of = (by.seller, Registrar::Seller);
    register_application(applications, accounts, &drawn, of, registration, now)
        .await
        .map_err(Failure::refused_as)?;
    by.note(accounts, Action::ApplicationRegistered, client_id)
        .await?;
    Ok(())
}

pub async fn edit(
    applications: &dyn ApplicationStore,
    accounts: &dyn AccountStore,
    by: ActingSeller,
    client_id: ClientId,
    edit: ApplicationEdit,
) -> Result<(), Failure<Refusal>> {
    let application = owned(applications, by, client_id).await?;
    applications.save_application(application.edited(edit)).await?;
    by.note(accounts, Action::ApplicationChanged, client_id).await?;
    Ok(())
}

/// Replaces the secret of a confidential application: the old one stops working at once, tokens stay valid. The new one
/// is stored to be shown once.
pub async fn rotate_secret(
    applications: &dyn ApplicationStore,
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    (by, sent): (ActingSeller, Sent<'_>),
    client_id: ClientId,
) -> Result<(), Failure<Refusal>> {
    let secret = ClientSecret::from_random(&randomness.secret());
    let shown = Shown::Rotated(client_id, secret.reveal().to_owned());
    sent.keep::<Refusal>(accounts, &shown).await?;
    let application = owned(applications, by, client_id).await?;
    if application.client_type == ClientType::Public {
        return refuse(Refusal::NoSecret);
    }
    let change = application.with_secret(&secret);
    applications.save_application(change).await?;
    by.note(accounts, Action::SecretRotated, client_id).await?;
    Ok(())
}

/// Deletes an application permanently: its tokens are invalid at every seller.
pub async fn delete(
    applications: &dyn ApplicationStore,
    accounts: &dyn AccountStore,
    by: ActingSeller,
    client_id: ClientId,
) -> Result<(), Failure<Refusal>> {
    owned(applications, by, client_id).await?;
    applications.delete_application(client_id).await?;
    by.note(accounts, Action::ApplicationDeleted, client_id).await?;
    Ok(())
}

/// Whether this seller sees the application in the panel.
pub fn is_own(application: &Application, by: kernel::SellerId) -> bool {
    application.owner == by && !application.built_in
}

async fn owned(
    applications: &dyn ApplicationStore,
    by: ActingSeller,
    client_id: ClientId,
) -> Result<Application, Failure<Refusal>> {
    let found = applications.lock_application(client_id).await?;
    match found.filter(|application| is_own(application, by.seller)) {
        Some(application) => Ok(application),
        None => refuse(Refusal::NoSuchApplication),
    }
}

#[cfg(test)]
mod tests;
