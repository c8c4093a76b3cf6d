//! A seller has an event delivered by hand: one that was told before, or a sample.

use chrono::{DateTime, Utc};
use kernel::{Randomness, SellerId, StoreError};
use webhooks::{DeliveryId, Event, NewDelivery, SubscriptionId, SubscriptionStore, with_delivery_id};

use crate::{Failure, failure::refuse};

/// Why nothing is queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The seller has no such subscription, or it no such delivery.
    #[error("there is no such delivery")]
    NotFound,
    /// The subscription is inactive, or its application suspended.
    #[error("the subscription gets nothing at present")]
    Inactive,
}

/// Queues the event of an earlier delivery anew, with an id and attempts of its own, and returns the id.
pub async fn redeliver(
    subscriptions: &dyn SubscriptionStore,
    randomness: &dyn Randomness,
    seller: SellerId,
    (subscription, delivery): (SubscriptionId, DeliveryId),
    now: DateTime<Utc>,
) -> Result<DeliveryId, Failure<Refusal>> {
    let told = subscriptions.delivery_body(seller, subscription, delivery);
    let Some((event, body)) = told.await? else {
        return refuse(Refusal::NotFound);
    };
    let id = randomness.uuid().into();
    let body = with_delivery_id(&body, id)
        .ok_or_else(|| StoreError::corrupt("deliveries", delivery, "a body without its id"))?;
    let again = NewDelivery {
        id,
        event,
        body,
        created_at: now,
    };
    queue(subscriptions, seller, subscription, again).await
}

/// Queues a sample of the first event that the subscription hears of, and returns the delivery's id.
pub async fn send_test_event(
    subscriptions: &dyn SubscriptionStore,
    randomness: &dyn Randomness,
    seller: SellerId,
    subscription: SubscriptionId,
    now: DateTime<Utc>,
) -> Result<DeliveryId, Failure<Refusal>> {
    let found = subscriptions.subscription(seller, subscription).await?;
    let Some(event) = found.and_then(|found| found.events.first().copied()) else {
        return refuse(Refusal::NotFound);
    };
    let id = randomness.uuid().into();
    let body = Event::sample(event, randomness.uuid()).body(id, now);
    let sample = NewDelivery {
        id,
        event,
        body: body.map_err(StoreError::unexpected)?,
        created_at: now,
    };
    queue(subscriptions, seller, subscription, sample).await
}

async fn queue(
    subscriptions: &dyn SubscriptionStore,
    seller: SellerId,
    subscription: SubscriptionId,
    delivery: NewDelivery,
) -> Result<DeliveryId, Failure<Refusal>> {
    let id = delivery.id;
    let queued = subscriptions.queue_delivery(seller, subscription, delivery);
    if queued.await? {
        Ok(id)
    } else {
        refuse(Refusal::Inactive)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;
    use webhooks::{AddressPolicy, Subscription, WebhookEvent, WebhookUrl};

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{chance, now, refusal};

    const EARLIER: u128 = 99;

    fn subscription() -> Subscription {
        Subscription {
            id: Uuid::from_u128(3).into(),
            client_id: Uuid::from_u128(2).into(),
            url: WebhookUrl::parse("https://example.com", AddressPolicy::Public).unwrap(),
            events: vec![WebhookEvent::OfferRejected, WebhookEvent::OrderPaid],
            active: true,
            created_at: now(),
        }
    }

    fn earlier_body() -> Vec<u8> {
        let event = Event::sample(WebhookEvent::OrderPaid, Uuid::max());
        event.body(Uuid::from_u128(EARLIER).into(), now()).unwrap()
    }

    /// A store that holds the subscription and the earlier delivery.
    fn store(active: bool) -> MockTransaction {
        let mut store = MockTransaction::new();
        store.expect_delivery_body().returning(|_, _, id| {
            let known = id == Uuid::from_u128(EARLIER).into();
            Ok(known.then(|| (WebhookEvent::OrderPaid, earlier_body())))
        });
        store
            .expect_subscription()
            .returning(|_, id| Ok((id == subscription().id).then(subscription)));
        store.expect_queue_delivery().returning(move |_, _, new| {
            assert!(String::from_utf8(new.body).unwrap().contains(&new.id.to_string()));
            assert_eq!(new.created_at, now());
            Ok(active)
        });
        store
    }

    async fn again(store: &MockTransaction, delivery: u128) -> Result<DeliveryId, Failure<Refusal>> {
        let which = (subscription().id, Uuid::from_u128(delivery).into());
        redeliver(store, &chance(), Uuid::nil().into(), which, now()).await
    }

    async fn sample(store: &MockTransaction, id: u128) -> Result<DeliveryId, Failure<Refusal>> {
        let id = Uuid::from_u128(id).into();
        send_test_event(store, &chance(), Uuid::nil().into(), id, now()).await
    }

    #[tokio::test]
    async fn what_is_told_again_has_an_id_of_its_own() {
        assert_eq!(
            again(&store(true), EARLIER).await.unwrap(),
            Uuid::from_u128(1).into()
        );
        assert_eq!(sample(&store(true), 3).await.unwrap(), Uuid::from_u128(1).into());
    }

    #[tokio::test]
    async fn what_nobody_hears_is_not_told() {
        for refused in [
            again(&store(false), EARLIER).await,
            sample(&store(false), 3).await,
        ] {
            assert_eq!(refusal(refused), Refusal::Inactive);
        }
        for refused in [again(&store(true), 1).await, sample(&store(true), 4).await] {
            assert_eq!(refusal(refused), Refusal::NotFound);
        }
    }
}
