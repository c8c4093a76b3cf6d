//! The operator's actions on applications: acceptance, suspension, reinstatement, limits, scopes, deletion.

use accounts::{AccountStore, Action};
use chrono::{DateTime, Utc};
use oauth::{Application, ApplicationStore, ClientId, RateLimit, ScopeSet, Transition, TransitionRefusal};

use crate::acting::log_change;
use crate::failure::{ensure, present};
use crate::{Acting, ActingOperator, Announcement, Failure};

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ManagementRefusal {
    #[error("no such application")]
    NoSuchApplication,
    #[error(transparent)]
    Transition(#[from] TransitionRefusal),
    #[error("this application carries the seller's personal tokens: revoke those, or close the account")]
    BuiltIn,
}

/// Applies a transition. Idempotent. An acceptance may name the scopes that the operator saw asked for.
pub async fn change_status(
    applications: &dyn ApplicationStore<Announcement>,
    accounts: &dyn AccountStore,
    by: ActingOperator,
    client_id: ClientId,
    transition: Transition,
    expected: Option<ScopeSet>,
    now: DateTime<Utc>,
) -> Result<Application, Failure<ManagementRefusal>> {
    let before = locked(applications, client_id).await?;
    let action = match transition {
        Transition::Accept => Action::ApplicationAccepted,
        Transition::Suspend => Action::ApplicationSuspended,
        Transition::Reinstate => Action::ApplicationReinstated,
    };
    let change = before
        .clone()
        .moved(transition, expected)
        .map_err(|refused| Failure::Refused(refused.into()))?;
    let after = change.after.clone();
    if after != before {
        let change = Announcement::of_application(change, now);
        applications.save_application(change).await?;
        by.log(accounts, action, client_id).await?;
    }
    Ok(after)
}

/// Sets the limit, the scopes, or both. Narrowed scopes take effect on existing tokens at once.
pub async fn adjust_application(
    applications: &dyn ApplicationStore<Announcement>,
    accounts: &dyn AccountStore,
    by: ActingOperator,
    client_id: ClientId,
    rate_limit: Option<RateLimit>,
    scopes: Option<ScopeSet>,
    now: DateTime<Utc>,
) -> Result<Application, Failure<ManagementRefusal>> {
    let before = locked(applications, client_id).await?;
    let change = before.clone().adjusted(rate_limit, scopes);
    let after = change.after.clone();
    if after != before {
        let change = Announcement::of_application(change, now);
        applications.save_application(change).await?;
        log_change(accounts, by.actor(), &before, &after).await?;
    }
    Ok(after)
}

/// Deletes an application permanently.
pub async fn delete_application(
    applications: &dyn ApplicationStore<Announcement>,
    accounts: &dyn AccountStore,
    by: ActingOperator,
    client_id: ClientId,
) -> Result<(), Failure<ManagementRefusal>> {
    let application = locked(applications, client_id).await?;
    ensure(!application.built_in, ManagementRefusal::BuiltIn)?;
    applications.delete_application(client_id).await?;
    by.log(accounts, Action::ApplicationDeleted, client_id).await?;
    Ok(())
}

async fn locked(
    applications: &dyn ApplicationStore<Announcement>,
    client_id: ClientId,
) -> Result<Application, Failure<ManagementRefusal>> {
    let found = applications.lock_application(client_id).await?;
    present(found, ManagementRefusal::NoSuchApplication)
}
