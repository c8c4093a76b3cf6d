//! A seller ends the connection with an application that it has let in.

use oauth::{Action, ClientId, GrantStore, PanelStore};

use crate::{ActingSeller, Failure, failure::refuse};

/// Why nothing is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The seller has no connection with this application.
    #[error("there is no such connection")]
    NoSuchConnection,
}

/// Disconnects: all that the application holds by this seller's consent is dead from the commit on, and what is in the making
/// dies too.
pub async fn disconnect(
    grants: &dyn GrantStore,
    panel: &dyn PanelStore,
    by: ActingSeller,
    client_id: ClientId,
) -> Result<(), Failure<Refusal>> {
    if !grants.disconnect(by.seller, client_id).await? {
        return refuse(Refusal::NoSuchConnection);
    }
    by.note(panel, Action::Disconnected, client_id).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use oauth::{MockGrantStore, MockPanelStore};
    use uuid::Uuid;

    use super::*;

    async fn ended(connected: bool) -> Result<(), Failure<Refusal>> {
        let (mut grants, mut panel) = (MockGrantStore::new(), MockPanelStore::new());
        grants.expect_disconnect().returning(move |_, _| Ok(connected));
        panel
            .expect_note()
            .times(usize::from(connected))
            .withf(|_, _, action, _| *action == Action::Disconnected)
            .returning(|_, _, _, _| Ok(()));
        let by = ActingSeller {
            seller: Uuid::from_u128(1).into(),
            address: std::net::Ipv4Addr::LOCALHOST.into(),
        };
        disconnect(&grants, &panel, by, Uuid::from_u128(2).into()).await
    }

    #[tokio::test]
    async fn only_a_connection_is_ended_and_noted() {
        assert!(ended(true).await.is_ok());
        let refused = ended(false).await;
        assert!(matches!(
            refused,
            Err(Failure::Refused(Refusal::NoSuchConnection))
        ));
    }
}
