//! An operator has the event of an earlier delivery delivered again.

use accounts::{AccountStore, Action};
use chrono::{DateTime, Utc};
use kernel::{Randomness, SellerId};
use webhooks::{DeliveryId, SubscriptionId, SubscriptionStore};

use crate::redeliver::{Refusal, redeliver};
use crate::{ActingOperator, Failure};

/// Queues the event of an earlier delivery anew; returns the new delivery's id.
pub async fn deliver_again(
    subscriptions: &dyn SubscriptionStore,
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    (by, seller): (ActingOperator, SellerId),
    which: (SubscriptionId, DeliveryId),
    now: DateTime<Utc>,
) -> Result<DeliveryId, Failure<Refusal>> {
    let id = redeliver(subscriptions, randomness, seller, which, now).await?;
    let (_, earlier) = which;
    by.note(accounts, Action::Redelivered, earlier).await?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;
    use webhooks::{Event, WebhookEvent};

    use super::*;
    use crate::test_support::{OPERATOR, chance, noting, now, refusal};

    #[tokio::test]
    async fn only_what_is_queued_is_noted() {
        let again = async |active| {
            let mut tx = noting(usize::from(active), Action::Redelivered);
            tx.expect_delivery_body().returning(|_, _, id| {
                let event = Event::sample(WebhookEvent::OrderPaid, Uuid::max());
                Ok(Some((WebhookEvent::OrderPaid, event.body(id, now()).unwrap())))
            });
            tx.expect_queue_delivery()
                .once()
                .returning(move |_, _, _| Ok(active));
            let which = (Uuid::nil().into(), Uuid::from_u128(99).into());
            deliver_again(&tx, &tx, &chance(), (OPERATOR, Uuid::nil().into()), which, now()).await
        };
        assert_eq!(again(true).await.unwrap(), Uuid::from_u128(1).into());
        assert_eq!(refusal(again(false).await), Refusal::Inactive);
    }
}
