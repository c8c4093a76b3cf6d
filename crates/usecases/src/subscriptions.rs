//! An application subscribes to a seller's events, and unsubscribes.

use chrono::{DateTime, Utc};
use kernel::{Randomness, SellerId};
use oauth::ClientId;
use webhooks::{NewSubscription, SubscriptionId, SubscriptionStore, WebhookEvent, WebhookSecret, WebhookUrl};

use crate::{Failure, failure::refuse};

/// The application has as many subscriptions at the seller as are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("subscription limit reached")]
pub struct LimitReached;

/// The requested subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionRequest {
    pub url: WebhookUrl,
    /// The events to deliver; duplicates count once.
    pub events: Vec<WebhookEvent>,
}

/// Creates the subscription. Its secret is returned here and never again.
pub async fn create_subscription(
    subscriptions: &dyn SubscriptionStore,
    randomness: &dyn Randomness,
    seller: SellerId,
    client_id: ClientId,
    request: &SubscriptionRequest,
    now: DateTime<Utc>,
) -> Result<NewSubscription, Failure<LimitReached>> {
    if !subscriptions.take_subscription_place(seller, client_id).await? {
        return refuse(LimitReached);
    }
    let subscription = NewSubscription {
        seller,
        client_id,
        id: randomness.uuid().into(),
        url: request.url.clone(),
        events: without_duplicates(&request.events),
        secret: WebhookSecret::from_random(&randomness.secret()),
        created_at: now,
    };
    subscriptions.add_subscription(subscription.clone()).await?;
    Ok(subscription)
}

fn without_duplicates(events: &[WebhookEvent]) -> Vec<WebhookEvent> {
    let mut unique = Vec::new();
    for event in events {
        if !unique.contains(event) {
            unique.push(*event);
        }
    }
    unique
}

/// The application has no such subscription at this seller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no such subscription")]
pub struct NoSuchSubscription;

/// Deletes the subscription: pending deliveries stop, its history is deleted, and its place is free (D57).
pub async fn delete_subscription(
    subscriptions: &dyn SubscriptionStore,
    seller: SellerId,
    client_id: ClientId,
    subscription: SubscriptionId,
) -> Result<(), Failure<NoSuchSubscription>> {
    let removed = subscriptions.remove_subscription(seller, client_id, subscription);
    if removed.await? {
        Ok(())
    } else {
        refuse(NoSuchSubscription)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;
    use webhooks::AddressPolicy;

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{chance, now, refusal};

    fn request() -> SubscriptionRequest {
        use WebhookEvent::{OfferRejected, OrderPaid};
        SubscriptionRequest {
            url: WebhookUrl::parse("https://example.com/hook", AddressPolicy::Public).unwrap(),
            events: vec![OrderPaid, OfferRejected, OrderPaid],
        }
    }

    async fn create(place: bool) -> Result<NewSubscription, Failure<LimitReached>> {
        let (mut store, times) = (MockTransaction::new(), usize::from(place));
        let places = store.expect_take_subscription_place().once();
        places.returning(move |_, _| Ok(place));
        store.expect_add_subscription().times(times).returning(|stored| {
            assert_eq!(stored.secret, WebhookSecret::from_random(&[7; 32]));
            Ok(())
        });
        let (seller, client_id) = (Uuid::from_u128(1).into(), Uuid::from_u128(2).into());
        create_subscription(&store, &chance(), seller, client_id, &request(), now()).await
    }

    #[tokio::test]
    async fn the_stored_subscription_is_returned_unless_there_is_no_place() {
        let created = create(true).await.unwrap();
        assert_eq!(created.events, request().events[..2]);
        assert_eq!(created.url, request().url);
        assert_eq!(created.secret, WebhookSecret::from_random(&[7; 32]));
        assert!(created.subscription().active);
        assert_eq!(refusal(create(false).await), LimitReached);
    }

    #[tokio::test]
    async fn an_unknown_subscription_cannot_be_deleted() {
        let mut store = MockTransaction::new();
        let known: SubscriptionId = Uuid::from_u128(3).into();
        store
            .expect_remove_subscription()
            .returning(move |_, _, id| Ok(id == known));
        let delete = |id| delete_subscription(&store, Uuid::nil().into(), Uuid::nil().into(), id);
        delete(known).await.unwrap();
        let refused = delete(Uuid::from_u128(4).into()).await;
        assert_eq!(refusal(refused), NoSuchSubscription);
    }
}
