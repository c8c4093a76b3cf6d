//! A seller has deliveries sent by hand in the panel: the event of an earlier one again, or a sample.

use chrono::{DateTime, Utc};
use kernel::Randomness;
use oauth::{Action, PanelStore};
use webhooks::{DeliveryId, SubscriptionId, SubscriptionStore};

use crate::sent_form::{NumberUsed, SentForm};
use crate::{ActingSeller, Failure, redeliver};

/// Why nothing is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The seller has no such subscription, or it no such delivery.
    #[error("there is no such delivery")]
    NotFound,
    /// The subscription is inactive, or its application suspended.
    #[error("the subscription gets nothing at present")]
    Inactive,
    /// The form's number was used before.
    #[error(transparent)]
    Form(#[from] NumberUsed),
}

impl From<redeliver::Refusal> for Refusal {
    fn from(refusal: redeliver::Refusal) -> Self {
        match refusal {
            redeliver::Refusal::NotFound => Self::NotFound,
            redeliver::Refusal::Inactive => Self::Inactive,
        }
    }
}

/// The stores that it takes.
#[derive(Clone, Copy)]
pub struct Stores<'a> {
    /// Subscriptions and deliveries.
    pub subscriptions: &'a dyn SubscriptionStore,
    /// The forms that were sent, and the audit log.
    pub panel: &'a dyn PanelStore,
}

/// Queues the event of an earlier delivery anew; returns the new delivery's id.
pub async fn deliver_again(
    stores: Stores<'_>,
    randomness: &dyn Randomness,
    (by, form): (ActingSeller, SentForm),
    which: (SubscriptionId, DeliveryId),
    now: DateTime<Utc>,
) -> Result<DeliveryId, Failure<Refusal>> {
    form.take::<Refusal>(stores.panel, None).await?;
    let id = redeliver::redeliver(stores.subscriptions, randomness, by.seller, which, now)
        .await
        .map_err(Failure::refused_as)?;
    let (_, earlier) = which;
    by.note(stores.panel, Action::Redelivered, earlier).await?;
    Ok(id)
}

/// Queues a sample of the first event that the subscription hears of; returns the delivery's id.
pub async fn send_test_event(
    stores: Stores<'_>,
    randomness: &dyn Randomness,
    (by, form): (ActingSeller, SentForm),
    subscription: SubscriptionId,
    now: DateTime<Utc>,
) -> Result<DeliveryId, Failure<Refusal>> {
    form.take::<Refusal>(stores.panel, None).await?;
    let seller = by.seller;
    let id = redeliver::send_test_event(stores.subscriptions, randomness, seller, subscription, now)
        .await
        .map_err(Failure::refused_as)?;
    let note = by.note(stores.panel, Action::TestEventSent, subscription);
    note.await?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use oauth::MockPanelStore;
    use uuid::Uuid;
    use webhooks::{Event, MockSubscriptionStore, WebhookEvent};

    use super::*;
    use crate::test_support::{chance, now, sent_form};

    async fn again(first: bool, active: bool) -> Result<DeliveryId, Failure<Refusal>> {
        let (mut subscriptions, mut panel) = (MockSubscriptionStore::new(), MockPanelStore::new());
        let earlier = DeliveryId::from(Uuid::from_u128(99));
        subscriptions
            .expect_delivery_body()
            .times(usize::from(first))
            .returning(move |_, _, id| {
                let event = Event::sample(WebhookEvent::OrderPaid, Uuid::max());
                Ok(Some((WebhookEvent::OrderPaid, event.body(id, now()).unwrap())))
            });
        subscriptions
            .expect_queue_delivery()
            .returning(move |_, _, _| Ok(active));
        panel.expect_keep_flash().times(2).returning(move |_, _, sealed| {
            assert_eq!(sealed, None);
            Ok(first)
        });
        panel
            .expect_note()
            .times(usize::from(first && active))
            .withf(move |_, _, action, subject| {
                *action == Action::Redelivered && subject == earlier.to_string()
            })
            .returning(|_, _, _, _| Ok(()));
        let by = ActingSeller {
            seller: Uuid::from_u128(1).into(),
            address: std::net::Ipv4Addr::LOCALHOST.into(),
        };
        let stores = Stores {
            subscriptions: &subscriptions,
            panel: &panel,
        };
        deliver_again(
            stores,
            &chance(),
            (by, sent_form()),
            (Uuid::nil().into(), earlier),
            now(),
        )
        .await
    }

    #[tokio::test]
    async fn a_form_sends_once_and_what_is_sent_is_noted() {
        assert_eq!(again(true, true).await.unwrap(), Uuid::from_u128(1).into());
        for (refused, why) in [
            (again(false, true).await, Refusal::Form(NumberUsed::BySame)),
            (again(true, false).await, Refusal::Inactive),
        ] {
            assert!(matches!(refused, Err(Failure::Refused(refusal)) if refusal == why));
        }
    }
}
