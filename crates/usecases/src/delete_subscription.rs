//! An application ends one of its subscriptions.

use kernel::SellerId;
use oauth::ClientId;
use webhooks::{SubscriptionId, SubscriptionStore};

use crate::{Failure, failure::refuse};

/// Why nothing is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The application has no such subscription at this seller.
    #[error("there is no such subscription")]
    NoSuchSubscription,
}

/// Ends the subscription: what is pending stops, its history is gone, its place is free (D57).
pub async fn delete_subscription(
    subscriptions: &dyn SubscriptionStore,
    seller: SellerId,
    client_id: ClientId,
    subscription: SubscriptionId,
) -> Result<(), Failure<Refusal>> {
    let removed = subscriptions.remove_subscription(seller, client_id, subscription);
    if removed.await? {
        Ok(())
    } else {
        refuse(Refusal::NoSuchSubscription)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::refusal;

    #[tokio::test]
    async fn what_is_not_there_cannot_be_ended() {
        let mut store = MockTransaction::new();
        let there: SubscriptionId = Uuid::from_u128(3).into();
        store
            .expect_remove_subscription()
            .returning(move |_, _, id| Ok(id == there));
        let delete = |id| delete_subscription(&store, Uuid::nil().into(), Uuid::nil().into(), id);
        delete(there).await.unwrap();
        let refused = delete(Uuid::from_u128(4).into()).await;
        assert_eq!(refusal(refused), Refusal::NoSuchSubscription);
    }
}
