//! A seller's applications: registered in the panel or through the marketplace; edited, deleted, and given
//! new secrets in the panel.
//!
//! Another seller's application counts as nonexistent, and so does the built-in one that carries personal
//! tokens.

use accounts::{AccountStore, Action};
use chrono::{DateTime, Utc};
use kernel::{Randomness, SellerId, StoreError};
use oauth::{
    Application, ApplicationEdit, ApplicationStatus, ApplicationStore, ChangedSince, ClientId, ClientSecret,
    ClientType, Limiter, Quota, Registrar, Registration, Shown, Subject,
};

use crate::acting::log_change;
use crate::failure::{ensure, present};
use crate::sellers::{NotOpen, lock_open};
use crate::shown_once::ShownSecret;
use crate::{Acting, ActingSeller, Announcement, Failure};

/// A registered application, with its secret, which is shown only once.
#[derive(Debug)]
pub struct Registered {
    pub client_id: ClientId,
    /// None for a public client.
    pub client_secret: Option<ClientSecret>,
    /// Active, or pending if it needs acceptance.
    pub status: ApplicationStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RegistrationRefusal {
    #[error(transparent)]
    Account(#[from] NotOpen),
    #[error("another application has this name, or had it before it was deleted")]
    NameTaken,
    #[error("the seller's limit of applications is reached: delete one first")]
    TooMany,
    /// The seller has registered as many in this hour as allowed.
    #[error("the seller's limit of registrations in this hour is reached")]
    TooOften(Quota),
}

/// How many applications a seller may have, and register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApplicationLimits {
    /// Those that exist.
    pub per_seller: u32,
    /// Those that are registered in the panel in a clock hour.
    pub registered_per_hour: u32,
}

/// Registers an application of `owner`, who has fewer than `most`, on behalf of the owner or of the
/// marketplace.
#[expect(clippy::too_many_arguments, reason = "two stores")]
pub async fn register_application(
    applications: &dyn ApplicationStore<Announcement>,
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    owner: SellerId,
    by: Registrar,
    registration: Registration,
    most: u32,
    now: DateTime<Utc>,
) -> Result<Registered, Failure<RegistrationRefusal>> {
    lock_open::<RegistrationRefusal>(accounts, owner).await?;
    let living = applications.count_applications(owner).await?;
    let has_room = u32::try_from(living).is_ok_and(|living| living < most);
    ensure(has_room, RegistrationRefusal::TooMany)?;
    let secret = ClientSecret::from_random(&randomness.secret());
    let id = ClientId::from(randomness.uuid());
    let change = Application::register(registration, id, &secret, owner, by, now);
    let (client_id, status) = (change.after.client_id, change.after.status);
    let confidential = change.after.client_type == ClientType::Confidential;
    let change = Announcement::of_application(change, now);
    applications.save_application(change).await.map_err(name_taken)?;
    Ok(Registered {
        client_id,
        client_secret: confidential.then_some(secret),
        status,
    })
}

fn name_taken(error: StoreError) -> Failure<RegistrationRefusal> {
    match error.conflict() {
        Some("applications_name_key") => Failure::Refused(RegistrationRefusal::NameTaken),
        _ => error.into(),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OwnApplicationRefusal {
    #[error("no such application")]
    NoSuchApplication,
    #[error("a public application has no secret")]
    NoSecret,
    #[error(transparent)]
    Changed(#[from] ChangedSince),
}

/// Registers an application in the panel, within both limits, and logs it; its secret is to be shown once.
pub async fn register_in_panel(
    applications: &dyn ApplicationStore<Announcement>,
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    by: ActingSeller,
    registration: Registration,
    limits: ApplicationLimits,
    now: DateTime<Utc>,
) -> Result<ShownSecret, Failure<RegistrationRefusal>> {
    let (registrar, most) = (Registrar::Seller, limits.per_seller);
    let registered = register_application(
        applications,
        accounts,
        randomness,
        by.seller,
        registrar,
        registration,
        most,
        now,
    );
    let registered = registered.await?;
    // Counted after it: a refusal rolls back both.
    let counted = accounts
        .count_action(Limiter::Registrations, Subject::seller(by.seller))
        .await?;
    let quota = counted.against(limits.registered_per_hour);
    ensure(quota.admits(), RegistrationRefusal::TooOften(quota))?;
    let id = registered.client_id;
    by.log(accounts, Action::ApplicationRegistered, id).await?;
    let secret = registered.client_secret.map(|secret| secret.reveal().to_owned());
    Ok(ShownSecret::Registered(id.uuid(), secret))
}

/// Saves the editable fields, if one differs. With `shown`, only if the application still is what the form
/// showed.
pub async fn edit(
    applications: &dyn ApplicationStore<Announcement>,
    accounts: &dyn AccountStore,
    by: ActingSeller,
    client_id: ClientId,
    edit: ApplicationEdit,
    shown: Option<Shown>,
    now: DateTime<Utc>,
) -> Result<(), Failure<OwnApplicationRefusal>> {
    let before = owned(applications, by, client_id).await?;
    let change = before
        .clone()
        .edited(edit, shown)
        .map_err(|changed| Failure::Refused(changed.into()))?;
    let after = change.after.clone();
    if after != before {
        let change = Announcement::of_application(change, now);
        applications.save_application(change).await?;
        log_change(accounts, by.actor(), &before, &after).await?;
    }
    Ok(())
}

/// Replaces the secret of a confidential application: the old one stops working at once, tokens stay valid.
/// The new one is to be shown once.
pub async fn rotate_secret(
    applications: &dyn ApplicationStore<Announcement>,
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    by: ActingSeller,
    client_id: ClientId,
    now: DateTime<Utc>,
) -> Result<ShownSecret, Failure<OwnApplicationRefusal>> {
    let application = owned(applications, by, client_id).await?;
    ensure(
        application.client_type != ClientType::Public,
        OwnApplicationRefusal::NoSecret,
    )?;
    let secret = ClientSecret::from_random(&randomness.secret());
    let change = Announcement::of_application(application.with_secret(&secret), now);
    applications.save_application(change).await?;
    by.log(accounts, Action::SecretRotated, client_id).await?;
    Ok(ShownSecret::Rotated(client_id.uuid(), secret.reveal().to_owned()))
}

/// Deletes an application permanently: its tokens are invalid at every seller.
pub async fn delete(
    applications: &dyn ApplicationStore<Announcement>,
    accounts: &dyn AccountStore,
    by: ActingSeller,
    client_id: ClientId,
) -> Result<(), Failure<OwnApplicationRefusal>> {
    owned(applications, by, client_id).await?;
    applications.delete_application(client_id).await?;
    by.log(accounts, Action::ApplicationDeleted, client_id).await?;
    Ok(())
}

/// Whether this seller sees the application in the panel.
pub fn is_own(application: &Application, by: SellerId) -> bool {
    application.owner == by && !application.built_in
}

async fn owned(
    applications: &dyn ApplicationStore<Announcement>,
    by: ActingSeller,
    client_id: ClientId,
) -> Result<Application, Failure<OwnApplicationRefusal>> {
    let found = applications.lock_application(client_id).await?;
    let own = found.filter(|application| is_own(application, by.seller));
    present(own, OwnApplicationRefusal::NoSuchApplication)
}
