//! The operator's moves over applications: acceptance, suspension, reinstatement, limits, scopes, deletion.

use std::num::NonZeroU32;

use oauth::{Application, ApplicationStatus, ApplicationStore, ClientId, ImpossibleMove, ScopeSet};

use crate::{Failure, failure::refuse};

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

/// Moves an application; repeating a move is harmless.
pub async fn move_application(
    applications: &dyn ApplicationStore,
    client_id: ClientId,
    step: Move,
) -> Result<Application, Failure<Refusal>> {
    let application = locked(applications, client_id).await?;
    let command = match step {
        Move::Accept => ApplicationStatus::accept,
        Move::Suspend => ApplicationStatus::suspend,
        Move::Reinstate => ApplicationStatus::reinstate,
    };
    let change = application
        .moved(command)
        .map_err(|refused| Failure::Refused(refused.into()))?;
    let after = change.after.clone();
    applications.save_application(change).await?;
    Ok(after)
}

/// Sets the limit, the scopes, or both. Narrowed scopes take effect on existing tokens at once.
pub async fn adjust_application(
    applications: &dyn ApplicationStore,
    client_id: ClientId,
    rate_limit: Option<NonZeroU32>,
    scopes: Option<ScopeSet>,
) -> Result<Application, Failure<Refusal>> {
    let change = locked(applications, client_id)
        .await?
        .adjusted(rate_limit, scopes);
    let after = change.after.clone();
    applications.save_application(change).await?;
    Ok(after)
}

/// Deletes an application for good.
pub async fn delete_application(
    applications: &dyn ApplicationStore,
    client_id: ClientId,
) -> Result<(), Failure<Refusal>> {
    if locked(applications, client_id).await?.built_in {
        return refuse(Refusal::BuiltIn);
    }
    applications.delete_application(client_id).await?;
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
    use oauth::MockApplicationStore;
    use uuid::Uuid;

    use super::*;
    use crate::test_support::now;

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

    #[tokio::test]
    async fn a_move_is_saved_once() {
        let mut store = store(Some(built_in()));
        store
            .expect_save_application()
            .once()
            .withf(|change| change.after.status == ApplicationStatus::Suspended)
            .returning(|_| Ok(()));
        let after = move_application(&store, id(), Move::Suspend).await.unwrap();
        assert_eq!(after.status, ApplicationStatus::Suspended);
    }

    #[tokio::test]
    async fn what_is_refused_saves_nothing() {
        let pending = Application {
            status: ApplicationStatus::Pending,
            ..built_in()
        };
        let failure = move_application(&store(Some(pending)), id(), Move::Suspend)
            .await
            .unwrap_err();
        assert!(matches!(failure, Failure::Refused(Refusal::Impossible(_))));
        let failure = adjust_application(&store(None), id(), None, None)
            .await
            .unwrap_err();
        assert!(matches!(failure, Failure::Refused(Refusal::NoSuchApplication)));
        let failure = delete_application(&store(Some(built_in())), id())
            .await
            .unwrap_err();
        assert!(matches!(failure, Failure::Refused(Refusal::BuiltIn)));
    }
}
