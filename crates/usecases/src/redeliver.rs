//! Manual deliveries, by a seller in the panel or by an operator: an earlier event again, or a sample event.

use accounts::{AccountStore, Action};
use chrono::{DateTime, Utc};
use kernel::{Randomness, SellerId, StoreError};
use oauth::{Limiter, Subject};
use webhooks::{DeliveryId, Event, NewDelivery, SubscriptionId, SubscriptionStore, with_delivery_id};

use crate::failure::refuse;
use crate::shown_once::{NumberUsed, SentForm};
use crate::{ActingOperator, ActingSeller, Failure};

/// Limit of test events to one subscription per clock minute, since the receiver has to handle them.
pub const MAX_TEST_EVENTS_PER_MINUTE: u32 = 10;

/// Limit of manual redeliveries to one subscription per clock minute.
pub const MAX_REDELIVERIES_PER_MINUTE: u32 = 30;

/// Why nothing is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("no such delivery")]
    NotFound,
    /// The subscription is inactive, or its application suspended.
    #[error("the subscription is inactive or its application suspended")]
    Inactive,
    #[error("the subscription's limit for this minute is reached")]
    TooMany,
    #[error(transparent)]
    Form(#[from] NumberUsed),
}

/// Queues the event of an earlier delivery again; returns the new delivery's id.
pub async fn deliver_again(
    subscriptions: &dyn SubscriptionStore,
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    form: SentForm,
    (subscription, delivery): (SubscriptionId, DeliveryId),
    now: DateTime<Utc>,
) -> Result<DeliveryId, Failure<Refusal>> {
    form.claim::<Refusal>(accounts, None).await?;
    let by = form.by;
    let id = queue_again(subscriptions, randomness, by.seller, subscription, delivery, now).await?;
    let (limiter, most) = (Limiter::Redeliveries, MAX_REDELIVERIES_PER_MINUTE);
    count(accounts, by, subscription, limiter, most).await?;
    by.log(accounts, Action::Redelivered, delivery).await?;
    Ok(id)
}

/// Queues a sample of the subscription's first event; returns the delivery's id.
pub async fn send_test_event(
    subscriptions: &dyn SubscriptionStore,
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    form: SentForm,
    subscription: SubscriptionId,
    now: DateTime<Utc>,
) -> Result<DeliveryId, Failure<Refusal>> {
    form.claim::<Refusal>(accounts, None).await?;
    let seller = form.by.seller;
    let id = queue_sample(subscriptions, randomness, seller, subscription, now).await?;
    let (limiter, most) = (Limiter::TestEvents, MAX_TEST_EVENTS_PER_MINUTE);
    count(accounts, form.by, subscription, limiter, most).await?;
    form.by.log(accounts, Action::TestEventSent, subscription).await?;
    Ok(id)
}

/// Counts the delivery after it was queued: a refusal rolls back both, so only accepted ones are counted.
async fn count(
    accounts: &dyn AccountStore,
    by: ActingSeller,
    subscription: SubscriptionId,
    limiter: Limiter,
    most: u32,
) -> Result<(), Failure<Refusal>> {
    let subject = Subject::of_seller(by.seller, subscription.uuid());
    let counted = accounts.count_action(limiter, subject).await?;
    if counted.against(most).admits() {
        Ok(())
    } else {
        refuse(Refusal::TooMany)
    }
}

/// As [`deliver_again`], by an operator, without a limit.
pub async fn deliver_again_for_operator(
    subscriptions: &dyn SubscriptionStore,
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    by: ActingOperator,
    seller: SellerId,
    (subscription, delivery): (SubscriptionId, DeliveryId),
    now: DateTime<Utc>,
) -> Result<DeliveryId, Failure<Refusal>> {
    let id = queue_again(subscriptions, randomness, seller, subscription, delivery, now).await?;
    by.log(accounts, Action::Redelivered, delivery).await?;
    Ok(id)
}

/// Queues the earlier event under a new id, with attempts of its own.
async fn queue_again(
    subscriptions: &dyn SubscriptionStore,
    randomness: &dyn Randomness,
    seller: SellerId,
    subscription: SubscriptionId,
    delivery: DeliveryId,
    now: DateTime<Utc>,
) -> Result<DeliveryId, Failure<Refusal>> {
    let earlier = subscriptions.delivery_body(seller, subscription, delivery);
    let Some((event, body)) = earlier.await? else {
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

async fn queue_sample(
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
    let body = Event::sample(event, randomness.uuid()).body(id, randomness.uuid().into(), now);
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
    use chrono::TimeDelta;
    use oauth::Count;
    use uuid::Uuid;
    use webhooks::{AddressPolicy, Event, Subscription, WebhookEvent, WebhookUrl};

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{OPERATOR, by, chance, logging, now, refusal, sent_form};

    /// The mocked results of the stores.
    #[derive(Clone, Copy)]
    struct Answers {
        /// The form's number is new.
        first: bool,
        /// The subscription and the earlier delivery exist.
        exists: bool,
        /// The subscription is active.
        active: bool,
        /// The number of this action within its minute.
        place: u64,
    }

    const FINE: Answers = Answers {
        first: true,
        exists: true,
        active: true,
        place: 1,
    };

    fn earlier() -> DeliveryId {
        Uuid::from_u128(99).into()
    }

    fn to() -> SubscriptionId {
        Uuid::from_u128(3).into()
    }

    fn new() -> DeliveryId {
        Uuid::from_u128(1).into()
    }

    /// Only a queued delivery is counted, with the given limiter, and logged.
    fn store(answers: Answers, limits: Option<(Limiter, u64)>, logged: Action) -> MockTransaction {
        let queued = answers.first && answers.exists && answers.active;
        let (limiter, most) = limits.unwrap_or((Limiter::Api, u64::MAX));
        let mut tx = logging(usize::from(queued && answers.place <= most), logged);
        tx.expect_delivery_body().returning(move |_, _, id| {
            assert!(answers.first && id == earlier());
            let event = Event::sample(WebhookEvent::OrderPaid, Uuid::max());
            let body = event.body(id, Uuid::nil().into(), now()).unwrap();
            Ok(answers.exists.then_some((WebhookEvent::OrderPaid, body)))
        });
        tx.expect_subscription().returning(move |_, id| {
            assert!(answers.first && id == to());
            Ok(answers.exists.then(|| Subscription {
                id,
                client_id: Uuid::from_u128(2).into(),
                url: WebhookUrl::parse("https://example.com", AddressPolicy::Public).unwrap(),
                events: vec![WebhookEvent::OfferRejected, WebhookEvent::OrderPaid],
                active: true,
                created_at: now(),
            }))
        });
        tx.expect_queue_delivery().returning(move |_, _, delivery| {
            let body = String::from_utf8(delivery.body).unwrap();
            assert!(body.contains(&new().to_string()));
            assert_eq!((delivery.id, delivery.created_at), (new(), now()));
            Ok(answers.active)
        });
        let forms = if limits.is_some() { 2 } else { 0 };
        tx.expect_store_flash()
            .times(forms)
            .returning(move |_, _, sealed| {
                assert_eq!(sealed, None);
                Ok(answers.first)
            });
        tx.expect_count_action()
            .times(usize::from(queued && limits.is_some()))
            .withf(move |counted, subject| {
                *counted == limiter && *subject == Subject::of_seller(by().seller, to().uuid())
            })
            .returning(move |_, _| {
                Ok(Count {
                    place: answers.place,
                    resets_at: now() + TimeDelta::seconds(20),
                    counted_at: now(),
                })
            });
        tx
    }

    async fn again(answers: Answers) -> Result<DeliveryId, Failure<Refusal>> {
        let limits = Some((Limiter::Redeliveries, 30));
        let tx = store(answers, limits, Action::Redelivered);
        let which = (to(), earlier());
        deliver_again(&tx, &tx, &chance(), sent_form(), which, now()).await
    }

    async fn sample(answers: Answers) -> Result<DeliveryId, Failure<Refusal>> {
        let limits = Some((Limiter::TestEvents, 10));
        let tx = store(answers, limits, Action::TestEventSent);
        send_test_event(&tx, &tx, &chance(), sent_form(), to(), now()).await
    }

    async fn by_operator(answers: Answers) -> Result<DeliveryId, Failure<Refusal>> {
        let tx = store(answers, None, Action::Redelivered);
        let which = (to(), earlier());
        deliver_again_for_operator(&tx, &tx, &chance(), OPERATOR, by().seller, which, now()).await
    }

    #[tokio::test]
    async fn a_delivery_is_queued_once_for_a_form_and_logged() {
        let [mut used, mut missing, mut inactive] = [FINE; 3];
        used.first = false;
        missing.exists = false;
        inactive.active = false;
        assert_eq!(again(FINE).await.unwrap(), new());
        assert_eq!(sample(FINE).await.unwrap(), new());
        assert_eq!(by_operator(FINE).await.unwrap(), new());
        for (answers, why) in [
            (used, Refusal::Form(NumberUsed::BySame)),
            (missing, Refusal::NotFound),
            (inactive, Refusal::Inactive),
        ] {
            assert_eq!(refusal(again(answers).await), why);
            assert_eq!(refusal(sample(answers).await), why);
            if answers.first {
                assert_eq!(refusal(by_operator(answers).await), why);
            }
        }
    }

    #[tokio::test]
    async fn a_sellers_deliveries_are_limited_by_the_minute() {
        for (place, samples, redeliveries) in [
            (10, true, true),
            (11, false, true),
            (30, false, true),
            (31, false, false),
        ] {
            let answers = Answers { place, ..FINE };
            for (queued, admitted) in [
                (sample(answers).await, samples),
                (again(answers).await, redeliveries),
                (by_operator(answers).await, true),
            ] {
                if admitted {
                    queued.unwrap();
                } else {
                    assert_eq!(refusal(queued), Refusal::TooMany, "{place}");
                }
            }
        }
    }
}
