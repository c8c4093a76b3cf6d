//! A seller has deliveries sent by hand in the panel: the event of an earlier one again, or a sample.

use accounts::{AccountStore, Action};
use chrono::{DateTime, Utc};
use kernel::Randomness;
use oauth::{Limiter, Subject};
use webhooks::{DeliveryId, SubscriptionId, SubscriptionStore};

use crate::failure::refuse;
use crate::sent_form::{NumberUsed, SentForm};
use crate::{ActingSeller, Failure, redeliver};

/// Test events to one subscription in a clock minute: it is the receiver that gets them.
pub const MOST_TEST_EVENTS_A_MINUTE: u32 = 10;

/// Repeated deliveries to one subscription in a clock minute.
pub const MOST_REDELIVERIES_A_MINUTE: u32 = 30;

/// Why nothing is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The seller has no such subscription, or it no such delivery.
    #[error("there is no such delivery")]
    NotFound,
    /// The subscription is inactive, or its application suspended.
    #[error("the subscription gets nothing at present")]
    Inactive,
    /// The subscription has had as much as one minute allows.
    #[error("the subscription has had enough for this minute")]
    TooMany,
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

/// Queues the event of an earlier delivery anew; returns the new delivery's id.
pub async fn deliver_again(
    subscriptions: &dyn SubscriptionStore,
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    (by, form): (ActingSeller, SentForm),
    which: (SubscriptionId, DeliveryId),
    now: DateTime<Utc>,
) -> Result<DeliveryId, Failure<Refusal>> {
    form.take::<Refusal>(accounts, None).await?;
    let id = redeliver::redeliver(subscriptions, randomness, by.seller, which, now)
        .await
        .map_err(Failure::refused_as)?;
    let (subscription, earlier) = which;
    let most = (Limiter::Redeliveries, MOST_REDELIVERIES_A_MINUTE);
    count(accounts, by, subscription, most).await?;
    by.note(accounts, Action::Redelivered, earlier).await?;
    Ok(id)
}

/// Queues a sample of the first event that the subscription hears of; returns the delivery's id.
pub async fn send_test_event(
    subscriptions: &dyn SubscriptionStore,
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    (by, form): (ActingSeller, SentForm),
    subscription: SubscriptionId,
    now: DateTime<Utc>,
) -> Result<DeliveryId, Failure<Refusal>> {
    form.take::<Refusal>(accounts, None).await?;
    let seller = by.seller;
    let id = redeliver::send_test_event(subscriptions, randomness, seller, subscription, now)
        .await
        .map_err(Failure::refused_as)?;
    let most = (Limiter::TestEvents, MOST_TEST_EVENTS_A_MINUTE);
    count(accounts, by, subscription, most).await?;
    let note = by.note(accounts, Action::TestEventSent, subscription);
    note.await?;
    Ok(id)
}

/// Counts what was queued last of all: the refusal of one too many undoes both, and nothing else is counted.
async fn count(
    accounts: &dyn AccountStore,
    by: ActingSeller,
    subscription: SubscriptionId,
    (limiter, most): (Limiter, u32),
) -> Result<(), Failure<Refusal>> {
    let subject = Subject::of_seller(by.seller, subscription.uuid());
    let counted = accounts.count_deed(limiter, subject).await?;
    if counted.against(most).admits() {
        Ok(())
    } else {
        refuse(Refusal::TooMany)
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use oauth::Count;
    use uuid::Uuid;
    use webhooks::{AddressPolicy, Event, Subscription, WebhookEvent, WebhookUrl};

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{by, chance, noting, now, sent_form};

    /// What the stores say.
    #[derive(Clone, Copy)]
    struct Said {
        /// The form's number is new.
        first: bool,
        /// The subscription is active.
        active: bool,
        /// The place of the deed in its minute.
        place: u64,
    }

    const FINE: Said = Said {
        first: true,
        active: true,
        place: 1,
    };

    fn to() -> SubscriptionId {
        Uuid::from_u128(3).into()
    }

    /// What is queued is counted with the given limiter, and nothing else is.
    fn store(said: Said, (limiter, most): (Limiter, u64), noted: Action) -> MockTransaction {
        let queued = said.first && said.active;
        let mut tx = noting(usize::from(queued && said.place <= most), noted);
        tx.expect_delivery_body().returning(move |_, _, id| {
            assert!(said.first);
            let event = Event::sample(WebhookEvent::OrderPaid, Uuid::max());
            Ok(Some((WebhookEvent::OrderPaid, event.body(id, now()).unwrap())))
        });
        tx.expect_subscription().returning(move |_, id| {
            assert!(said.first);
            Ok(Some(Subscription {
                id,
                client_id: Uuid::from_u128(2).into(),
                url: WebhookUrl::parse("https://example.com", AddressPolicy::Public).unwrap(),
                events: vec![WebhookEvent::OrderPaid],
                active: true,
                created_at: now(),
            }))
        });
        tx.expect_queue_delivery()
            .returning(move |_, _, _| Ok(said.active));
        tx.expect_keep_flash().times(2).returning(move |_, _, sealed| {
            assert_eq!(sealed, None);
            Ok(said.first)
        });
        tx.expect_count_deed()
            .times(usize::from(queued))
            .withf(move |counted, subject| {
                *counted == limiter && *subject == Subject::of_seller(by().seller, to().uuid())
            })
            .returning(move |_, _| {
                Ok(Count {
                    place: said.place,
                    resets_at: now() + TimeDelta::seconds(20),
                    counted_at: now(),
                })
            });
        tx
    }

    async fn again(said: Said) -> Result<DeliveryId, Failure<Refusal>> {
        let tx = store(said, (Limiter::Redeliveries, 30), Action::Redelivered);
        let which = (to(), Uuid::from_u128(99).into());
        deliver_again(&tx, &tx, &chance(), (by(), sent_form()), which, now()).await
    }

    async fn sample(said: Said) -> Result<DeliveryId, Failure<Refusal>> {
        let tx = store(said, (Limiter::TestEvents, 10), Action::TestEventSent);
        send_test_event(&tx, &tx, &chance(), (by(), sent_form()), to(), now()).await
    }

    #[tokio::test]
    async fn a_form_sends_once_and_what_is_sent_is_noted() {
        let (used, stopped) = (
            Said { first: false, ..FINE },
            Said {
                active: false,
                ..FINE
            },
        );
        assert!(again(FINE).await.is_ok() && sample(FINE).await.is_ok());
        for (refused, why) in [
            (again(used).await, Refusal::Form(NumberUsed::BySame)),
            (sample(used).await, Refusal::Form(NumberUsed::BySame)),
            (again(stopped).await, Refusal::Inactive),
            (sample(stopped).await, Refusal::Inactive),
        ] {
            assert!(matches!(refused, Err(Failure::Refused(refusal)) if refusal == why));
        }
    }

    #[tokio::test]
    async fn a_receiver_gets_so_many_a_minute_and_no_more() {
        let at = |place| Said { place, ..FINE };
        for (place, test_event, redelivery) in [
            (10, true, true),
            (11, false, true),
            (30, false, true),
            (31, false, false),
        ] {
            for (answer, admitted) in [
                (sample(at(place)).await, test_event),
                (again(at(place)).await, redelivery),
            ] {
                match answer {
                    Ok(_) => assert!(admitted, "{place}"),
                    Err(Failure::Refused(Refusal::TooMany)) => assert!(!admitted, "{place}"),
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
}
