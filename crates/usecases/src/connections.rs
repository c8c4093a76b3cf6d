//! A seller ends the connection with an application that it has let in.

use accounts::{AccountStore, Action};
use oauth::{ClientId, GrantStore};

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
    accounts: &dyn AccountStore,
    by: ActingSeller,
    client_id: ClientId,
) -> Result<(), Failure<Refusal>> {
    if !grants.disconnect(by.seller, client_id).await? {
        return refuse(Refusal::NoSuchConnection);
    }
    by.note(accounts, Action::Disconnected, client_id).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::test_support::{by, noting, refusal};

    #[tokio::test]
    async fn only_a_connection_is_ended_and_noted() {
        let ended = async |connected| {
            let mut tx = noting(usize::from(connected), Action::Disconnected);
            tx.expect_disconnect().returning(move |_, _| Ok(connected));
            disconnect(&tx, &tx, by(), Uuid::from_u128(2).into()).await
        };
        ended(true).await.unwrap();
        assert_eq!(refusal(ended(false).await), Refusal::NoSuchConnection);
    }
}
