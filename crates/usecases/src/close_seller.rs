//! The marketplace closes a seller's account.

use accounts::{AccountStore, Action, Seller};
use chrono::{DateTime, Utc};
use kernel::SellerId;

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
    accounts: &dyn AccountStore,
    (by, id): (ActingOperator, SellerId),
    now: DateTime<Utc>,
) -> Result<Seller, Failure<Refusal>> {
    let Some(seller) = accounts.lock_seller(id).await? else {
        return refuse(Refusal::NoSuchSeller);
    };
    if seller.closed_at.is_some() {
        return Ok(seller);
    }
    accounts.close_seller(id, now).await?;
    by.note(accounts, Action::SellerClosed, id).await?;
    Ok(Seller {
        closed_at: Some(now),
        ..seller
    })
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{OPERATOR, noting, now, refusal, seller};

    #[tokio::test]
    async fn an_account_is_closed_and_noted_once() {
        let id = SellerId::from(Uuid::from_u128(1));
        let earlier = now() - chrono::TimeDelta::days(1);
        for (closed_at, times) in [(None, 1), (Some(earlier), 0)] {
            let mut tx = noting(times, Action::SellerClosed);
            tx.expect_lock_seller().returning(move |id| {
                Ok(Some(Seller {
                    closed_at,
                    ..seller(id)
                }))
            });
            tx.expect_close_seller().times(times).returning(|_, _| Ok(true));
            let closed = close_seller(&tx, (OPERATOR, id), now()).await.unwrap();
            assert_eq!(closed.closed_at, Some(closed_at.unwrap_or(now())));
        }
        let mut nobody = MockTransaction::new();
        nobody.expect_lock_seller().returning(|_| Ok(None));
        let refused = close_seller(&nobody, (OPERATOR, id), now()).await;
        assert_eq!(refusal(refused), Refusal::NoSuchSeller);
    }
}
