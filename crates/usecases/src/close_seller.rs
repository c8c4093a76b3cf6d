//! The marketplace closes a seller's account.

use chrono::{DateTime, Utc};
use kernel::SellerId;
use oauth::{Action, PanelStore, Seller, SellerStore};

use crate::{ActingOperator, Failure, failure::refuse};

/// Why an account is not closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such account.
    #[error("there is no such seller")]
    NoSuchSeller,
}

/// Closes the account, and returns it: its tokens are rejected from the commit on and so are its sessions.
/// Closing it again changes nothing.
pub async fn close_seller(
    (sellers, panel): (&dyn SellerStore, &dyn PanelStore),
    (by, id): (ActingOperator, SellerId),
    now: DateTime<Utc>,
) -> Result<Seller, Failure<Refusal>> {
    let Some(seller) = sellers.lock_seller(id).await? else {
        return refuse(Refusal::NoSuchSeller);
    };
    if seller.closed_at.is_some() {
        return Ok(seller);
    }
    sellers.close_seller(id, now).await?;
    by.note(panel, Action::SellerClosed, id).await?;
    Ok(Seller {
        closed_at: Some(now),
        ..seller
    })
}

#[cfg(test)]
mod tests {
    use oauth::{MockPanelStore, MockSellerStore};
    use uuid::Uuid;

    use super::*;
    use crate::test_support::{now, seller};

    #[tokio::test]
    async fn an_account_is_closed_and_noted_once() {
        let id = SellerId::from(Uuid::from_u128(1));
        let earlier = now() - chrono::TimeDelta::days(1);
        for (closed_at, times) in [(None, 1), (Some(earlier), 0)] {
            let (mut sellers, mut panel) = (MockSellerStore::new(), MockPanelStore::new());
            sellers.expect_lock_seller().returning(move |id| {
                Ok(Some(Seller {
                    closed_at,
                    ..seller(id)
                }))
            });
            sellers
                .expect_close_seller()
                .times(times)
                .returning(|_, _| Ok(true));
            panel.expect_note().times(times).returning(|_, _, _, _| Ok(()));
            let of = (ActingOperator::CommandLine, id);
            let closed = close_seller((&sellers, &panel), of, now()).await.unwrap();
            assert_eq!(closed.closed_at, Some(closed_at.unwrap_or(now())));
        }
    }

    #[tokio::test]
    async fn nobody_is_not_closed() {
        let mut sellers = MockSellerStore::new();
        sellers.expect_lock_seller().returning(|_| Ok(None));
        let of = (ActingOperator::CommandLine, Uuid::from_u128(1).into());
        let refused = close_seller((&sellers, &MockPanelStore::new()), of, now()).await;
        assert!(matches!(refused, Err(Failure::Refused(Refusal::NoSuchSeller))));
    }
}
