//! An operator has the event of an earlier delivery delivered again.

use chrono::{DateTime, Utc};
use kernel::{Randomness, SellerId};
use oauth::Action;
use webhooks::{DeliveryId, SubscriptionId};

use crate::own_deliveries::Stores;
use crate::redeliver::{Refusal, redeliver};
use crate::{ActingOperator, Failure};

/// Queues the event of an earlier delivery anew; returns the new delivery's id.
pub async fn deliver_again(
    stores: Stores<'_>,
    randomness: &dyn Randomness,
    (by, seller): (ActingOperator, SellerId),
    which: (SubscriptionId, DeliveryId),
    now: DateTime<Utc>,
) -> Result<DeliveryId, Failure<Refusal>> {
    let id = redeliver(stores.subscriptions, randomness, seller, which, now).await?;
    let (_, earlier) = which;
    by.note(stores.panel, Action::Redelivered, earlier).await?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use oauth::MockPanelStore;
    use uuid::Uuid;
    use webhooks::{Event, MockSubscriptionStore, WebhookEvent};

    use super::*;
    use crate::test_support::{chance, now};

    async fn again(active: bool) -> Result<DeliveryId, Failure<Refusal>> {
        let (mut subscriptions, mut panel) = (MockSubscriptionStore::new(), MockPanelStore::new());
        let earlier = DeliveryId::from(Uuid::from_u128(99));
        subscriptions.expect_delivery_body().returning(|_, _, id| {
            let event = Event::sample(WebhookEvent::OrderPaid, Uuid::max());
            Ok(Some((WebhookEvent::OrderPaid, event.body(id, now()).unwrap())))
        });
        subscriptions
            .expect_queue_delivery()
            .once()
            .returning(move |_, _, _| Ok(active));
        panel
            .expect_note()
            .times(usize::from(active))
            .withf(move |_, _, action, subject| {
                *action == Action::Redelivered && subject == earlier.to_string()
            })
            .returning(|_, _, _, _| Ok(()));
        let stores = Stores {
            subscriptions: &subscriptions,
            panel: &panel,
        };
        let by = (ActingOperator::CommandLine, Uuid::nil().into());
        deliver_again(stores, &chance(), by, (Uuid::nil().into(), earlier), now()).await
    }

    #[tokio::test]
    async fn only_what_is_queued_is_noted() {
        assert_eq!(again(true).await.unwrap(), Uuid::from_u128(1).into());
        let refused = again(false).await;
        assert!(matches!(refused, Err(Failure::Refused(Refusal::Inactive))));
    }
}
