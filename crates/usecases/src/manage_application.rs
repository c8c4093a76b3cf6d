//! The operator's actions on applications: acceptance, suspension, reinstatement, limits, scopes, deletion.

use accounts::{AccountStore, Action};
use chrono::{DateTime, Utc};
use oauth::{Application, ApplicationStore, ClientId, RateLimit, ScopeSet, Transition, TransitionRefusal};

use crate::acting::log_change;
use crate::failure::{ensure, present};
use crate::{Acting, ActingOperator, Announcement, Failure};

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
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
) -> Result<Application, Failure<Refusal>> {
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
) -> Result<Application, Failure<Refusal>> {
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
) -> Result<(), Failure<Refusal>> {
    let application = locked(applications, client_id).await?;
    ensure(!application.built_in, Refusal::BuiltIn)?;
    applications.delete_application(client_id).await?;
    by.log(accounts, Action::ApplicationDeleted, client_id).await?;
    Ok(())
}

async fn locked(
    applications: &dyn ApplicationStore<Announcement>,
    client_id: ClientId,
) -> Result<Application, Failure<Refusal>> {
    let found = applications.lock_application(client_id).await?;
    present(found, Refusal::NoSuchApplication)
}

#[cfg(test)]
mod tests {
    use oauth::ApplicationStatus;

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{OPERATOR, application, logging, now, refusal};

    fn built_in() -> Application {
        let mut application = application();
        application.built_in = true;
        application
    }

    fn finding(mut tx: MockTransaction, application: Option<Application>) -> MockTransaction {
        tx.expect_lock_application()
            .returning(move |_| Ok(application.clone()));
        tx
    }

    fn id() -> ClientId {
        application().client_id
    }

    #[tokio::test]
    async fn a_transition_and_a_deletion_are_logged() {
        let mut tx = finding(logging(1, Action::ApplicationSuspended), Some(built_in()));
        tx.expect_save_application()
            .once()
            .withf(|change| change.after.status == ApplicationStatus::Suspended)
            .returning(|_| Ok(()));
        let after = change_status(&tx, &tx, OPERATOR, id(), Transition::Suspend, None, now()).await;
        assert_eq!(after.unwrap().status, ApplicationStatus::Suspended);

        let mut tx = finding(logging(1, Action::ApplicationDeleted), Some(application()));
        tx.expect_delete_application().once().returning(|_| Ok(true));
        delete_application(&tx, &tx, OPERATOR, id()).await.unwrap();
    }

    #[tokio::test]
    async fn a_change_without_effect_is_neither_saved_nor_logged() {
        let tx = finding(MockTransaction::new(), Some(built_in()));
        let after = change_status(&tx, &tx, OPERATOR, id(), Transition::Reinstate, None, now()).await;
        assert_eq!(after.unwrap(), built_in());
        let mut decided = built_in();
        decided.granted = Some(decided.scopes);
        let tx = finding(MockTransaction::new(), Some(decided.clone()));
        let after = adjust_application(&tx, &tx, OPERATOR, id(), None, decided.granted, now()).await;
        assert_eq!(after.unwrap(), decided);
    }

    #[tokio::test]
    async fn a_refused_change_saves_nothing() {
        let mut pending = built_in();
        pending.status = ApplicationStatus::Pending;
        let tx = finding(MockTransaction::new(), Some(pending));
        let refused = change_status(&tx, &tx, OPERATOR, id(), Transition::Suspend, None, now()).await;
        assert!(matches!(refusal(refused), Refusal::Transition(_)));
        let refused = delete_application(&tx, &tx, OPERATOR, id()).await;
        assert_eq!(refusal(refused), Refusal::BuiltIn);
        let tx = finding(MockTransaction::new(), None);
        let refused = adjust_application(&tx, &tx, OPERATOR, id(), None, None, now()).await;
        assert_eq!(refusal(refused), Refusal::NoSuchApplication);
    }
}
