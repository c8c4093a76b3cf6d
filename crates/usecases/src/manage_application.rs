//! The operator's moves over applications: acceptance, suspension, reinstatement, limits, scopes, deletion.

use oauth::{
    Action, Application, ApplicationStatus, ApplicationStore, ClientId, ImpossibleMove, PanelStore,
    RateLimit, ScopeSet,
};

use crate::{ActingOperator, Failure, failure::refuse};

/// A move over an application's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// Pending becomes active.
    Accept,
    /// Active becomes suspended: its tokens are rejected from the commit on.
    Suspend,
    /// Suspended becomes active: unexpired tokens work again.
    Reinstate,
}

/// Why a move is not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such application, or it was deleted.
    #[error("there is no such application")]
    NoSuchApplication,
    /// The status does not allow it.
    #[error(transparent)]
    Impossible(#[from] ImpossibleMove),
    /// The built-in application carries a seller's personal tokens and stays.
    #[error("this application carries the seller's personal tokens: revoke those, or close the account")]
    BuiltIn,
}

/// The ports that the moves need.
#[derive(Clone, Copy)]
pub struct Stores<'a> {
    /// Applications.
    pub applications: &'a dyn ApplicationStore,
    /// The audit log.
    pub panel: &'a dyn PanelStore,
}

impl std::fmt::Debug for Stores<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stores")
    }
}

/// Moves an application; repeating a move is harmless.
pub async fn move_application(
    stores: Stores<'_>,
    by: ActingOperator,
    client_id: ClientId,
    step: Move,
) -> Result<Application, Failure<Refusal>> {
    let application = locked(stores.applications, client_id).await?;
    let before = application.status;
    let (command, action): (fn(_) -> _, _) = match step {
        Move::Accept => (ApplicationStatus::accept, Action::ApplicationAccepted),
        Move::Suspend => (ApplicationStatus::suspend, Action::ApplicationSuspended),
        Move::Reinstate => (ApplicationStatus::reinstate, Action::ApplicationReinstated),
    };
    let change = application
        .moved(command)
        .map_err(|refused| Failure::Refused(refused.into()))?;
    let after = change.after.clone();
    if after.status != before {
        stores.applications.save_application(change).await?;
        by.note(stores.panel, action, client_id).await?;
    }
    Ok(after)
}

/// Sets the limit, the scopes, or both. Narrowed scopes take effect on existing tokens at once.
pub async fn adjust_application(
    stores: Stores<'_>,
    by: ActingOperator,
    client_id: ClientId,
    (rate_limit, scopes): (Option<RateLimit>, Option<ScopeSet>),
) -> Result<Application, Failure<Refusal>> {
    let before = locked(stores.applications, client_id).await?;
    let change = before.clone().adjusted(rate_limit, scopes);
    let after = change.after.clone();
    if after != before {
        stores.applications.save_application(change).await?;
        by.note(stores.panel, Action::ApplicationChanged, client_id)
            .await?;
    }
    Ok(after)
}

/// Deletes an application for good.
pub async fn delete_application(
    stores: Stores<'_>,
    by: ActingOperator,
    client_id: ClientId,
) -> Result<(), Failure<Refusal>> {
    if locked(stores.applications, client_id).await?.built_in {
        return refuse(Refusal::BuiltIn);
    }
    stores.applications.delete_application(client_id).await?;
    by.note(stores.panel, Action::ApplicationDeleted, client_id)
        .await?;
    Ok(())
}

async fn locked(
    applications: &dyn ApplicationStore,
    client_id: ClientId,
) -> Result<Application, Failure<Refusal>> {
    match applications.lock_application(client_id).await? {
        Some(application) => Ok(application),
        None => refuse(Refusal::NoSuchApplication),
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use oauth::{MockApplicationStore, MockPanelStore};
    use uuid::Uuid;

    use super::*;
    use crate::test_support::now;

    const BY: ActingOperator = ActingOperator::CommandLine;

    fn id() -> ClientId {
        Uuid::from_u128(1).into()
    }

    fn store(application: Option<Application>) -> MockApplicationStore {
        let mut store = MockApplicationStore::new();
        store
            .expect_lock_application()
            .returning(move |_| Ok(application.clone()));
        store
    }

    fn built_in() -> Application {
        Application::built_in(id(), Uuid::from_u128(2).into(), now()).after
    }

    /// Notes this once.
    fn noting(action: Action) -> MockPanelStore {
        let mut panel = MockPanelStore::new();
        panel
            .expect_note()
            .once()
            .withf(move |_, _, noted, subject| *noted == action && subject == id().to_string())
            .returning(|_, _, _, _| Ok(()));
        panel
    }

    fn stores<'a>(applications: &'a MockApplicationStore, panel: &'a MockPanelStore) -> Stores<'a> {
        Stores { applications, panel }
    }

    #[tokio::test]
    async fn a_move_is_saved_and_noted() {
        let mut store = store(Some(built_in()));
        store
            .expect_save_application()
            .once()
            .withf(|change| change.after.status == ApplicationStatus::Suspended)
            .returning(|_| Ok(()));
        let panel = noting(Action::ApplicationSuspended);
        let after = move_application(stores(&store, &panel), BY, id(), Move::Suspend)
            .await
            .unwrap();
        assert_eq!(after.status, ApplicationStatus::Suspended);
    }

    #[tokio::test]
    async fn what_changes_nothing_is_neither_saved_nor_noted() {
        let (store, panel) = (store(Some(built_in())), MockPanelStore::new());
        let stores = stores(&store, &panel);
        let after = move_application(stores, BY, id(), Move::Reinstate).await.unwrap();
        assert_eq!(after, built_in());
        let same = (None, Some(built_in().scopes));
        let after = adjust_application(stores, BY, id(), same).await.unwrap();
        assert_eq!(after, built_in());
    }

    #[tokio::test]
    async fn a_new_limit_and_a_deletion_are_noted() {
        let own = Application {
            built_in: false,
            ..built_in()
        };
        let mut store = store(Some(own));
        store.expect_save_application().once().returning(|_| Ok(()));
        store.expect_delete_application().once().returning(|_| Ok(true));
        let panel = noting(Action::ApplicationChanged);
        let seven = NonZeroU32::new(7);
        let limit = (seven.map(RateLimit::Own), None);
        let after = adjust_application(stores(&store, &panel), BY, id(), limit)
            .await
            .unwrap();
        assert_eq!(after.rate_limit, seven);
        let panel = noting(Action::ApplicationDeleted);
        delete_application(stores(&store, &panel), BY, id())
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn what_is_refused_saves_nothing() {
        let panel = MockPanelStore::new();
        let pending = store(Some(Application {
            status: ApplicationStatus::Pending,
            ..built_in()
        }));
        let failure = move_application(stores(&pending, &panel), BY, id(), Move::Suspend)
            .await
            .unwrap_err();
        assert!(matches!(failure, Failure::Refused(Refusal::Impossible(_))));
        let nobody = store(None);
        let failure = adjust_application(stores(&nobody, &panel), BY, id(), (None, None))
            .await
            .unwrap_err();
        assert!(matches!(failure, Failure::Refused(Refusal::NoSuchApplication)));
        let kept = store(Some(built_in()));
        let failure = delete_application(stores(&kept, &panel), BY, id())
            .await
            .unwrap_err();
        assert!(matches!(failure, Failure::Refused(Refusal::BuiltIn)));
    }
}
