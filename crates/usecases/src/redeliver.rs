//! Deliveries by hand, asked for by a seller in the panel, by the subscription's application or by an operator:
//! an earlier one again, or a sample event.

use std::fmt::Display;

use accounts::{AccountStore, Action};
use chrono::{DateTime, Utc};
use kernel::{Randomness, SellerId, StoreError};
use oauth::{ClientId, Limiter, Quota, Subject};
use uuid::{Builder, Uuid};
use webhooks::{
    Delivery, DeliveryId, Event, LockedDelivery, Subscription, SubscriptionId, SubscriptionStore,
    WebhookEvent,
};

use crate::failure::{ensure, present, refuse};
use crate::{Acting, ActingOperator, ActingSeller, Failure};

/// Limit of test events to one subscription per clock minute, since the receiver has to handle them.
pub const MAX_TEST_EVENTS_PER_MINUTE: u32 = 10;

/// Limit of manual redeliveries to one subscription per clock minute.
pub const MAX_REDELIVERIES_PER_MINUTE: u32 = 30;

/// Who asks for a delivery.
#[derive(Debug, Clone, Copy)]
pub enum Requester {
    /// A seller, in the panel.
    Seller(ActingSeller),
    /// An application, for its own subscriptions at this seller.
    Application(SellerId, ClientId),
    /// An operator, for this seller's subscriptions; without a limit.
    Operator(ActingOperator, SellerId),
}

/// Why nothing is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RedeliveryRefusal {
    #[error("no such delivery")]
    NotFound,
    #[error("the subscription does not have this event")]
    NotSubscribed,
    /// The subscription is inactive, or its application suspended.
    #[error("the subscription is inactive or its application suspended")]
    Inactive,
    #[error("an attempt is under way")]
    UnderWay,
    #[error("the subscription's limit for this minute is reached")]
    TooMany(Quota),
}

/// Queues an earlier delivery again: at once if it waits, with the whole schedule if it has ended.
pub async fn redeliver(
    subscriptions: &dyn SubscriptionStore,
    accounts: &dyn AccountStore,
    requester: Requester,
    (subscription, delivery): (SubscriptionId, DeliveryId),
    now: DateTime<Utc>,
) -> Result<Delivery, Failure<RedeliveryRefusal>> {
    let (seller, client_id) = (requester.seller(), requester.client_id());
    let locked = subscriptions.lock_delivery(seller, client_id, subscription, delivery);
    let found = match locked.await? {
        None => return refuse(RedeliveryRefusal::NotFound),
        Some(LockedDelivery { is_live: false, .. }) => return refuse(RedeliveryRefusal::Inactive),
        Some(LockedDelivery {
            is_under_way: true, ..
        }) => return refuse(RedeliveryRefusal::UnderWay),
        Some(LockedDelivery { delivery, .. }) => delivery,
    };
    let has_ended = found.state.has_ended();
    let queued = subscriptions.requeue_delivery(seller, subscription, delivery, has_ended, now);
    ensure(queued.await?, RedeliveryRefusal::NotFound)?;
    let limit = (Limiter::Redeliveries, MAX_REDELIVERIES_PER_MINUTE);
    requester.count(accounts, subscription, limit).await?;
    requester.log(accounts, Action::Redelivered, delivery).await?;
    Ok(found.again(now))
}

/// Queues a sample of one of the subscription's events; of the first one, unless one is named.
pub async fn send_test_event(
    subscriptions: &dyn SubscriptionStore,
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    requester: Requester,
    subscription: SubscriptionId,
    event: Option<WebhookEvent>,
    now: DateTime<Utc>,
) -> Result<Delivery, Failure<RedeliveryRefusal>> {
    let (seller, client_id) = (requester.seller(), requester.client_id());
    let is_own = |found: &Subscription| client_id.is_none_or(|client_id| client_id == found.client_id);
    let found = subscriptions.subscription(seller, subscription).await?;
    let found = present(found.filter(is_own), RedeliveryRefusal::NotFound)?;
    let is_wanted = |subscribed: &&WebhookEvent| event.is_none_or(|event| event == **subscribed);
    let event = present(
        found.events.iter().find(is_wanted),
        RedeliveryRefusal::NotSubscribed,
    )?;
    let id = at(now, randomness.uuid()).into();
    let body = Event::sample(seller, *event, randomness.uuid()).body(id, randomness.uuid().into(), now);
    let sample = Delivery::queued(id, *event, body.map_err(StoreError::unexpected)?, now);
    let queued = subscriptions.queue_delivery(seller, subscription, &sample);
    ensure(queued.await?, RedeliveryRefusal::Inactive)?;
    let limit = (Limiter::TestEvents, MAX_TEST_EVENTS_PER_MINUTE);
    requester.count(accounts, subscription, limit).await?;
    requester
        .log(accounts, Action::TestEventSent, subscription)
        .await?;
    Ok(sample)
}

/// The same id, of this time: a subscription's deliveries are in the order of their ids, and others have theirs from
/// the database.
fn at(now: DateTime<Utc>, id: Uuid) -> Uuid {
    let [_, _, _, _, _, _, random @ ..] = id.into_bytes();
    let milliseconds = u64::try_from(now.timestamp_millis()).unwrap_or_default();
    Builder::from_unix_timestamp_millis(milliseconds, &random).into_uuid()
}

impl Requester {
    const fn seller(self) -> SellerId {
        match self {
            Self::Seller(by) => by.seller,
            Self::Application(seller, _) | Self::Operator(_, seller) => seller,
        }
    }

    /// The application whose subscriptions are meant; None for those of any.
    const fn client_id(self) -> Option<ClientId> {
        match self {
            Self::Application(_, client_id) => Some(client_id),
            Self::Seller(_) | Self::Operator(..) => None,
        }
    }

    /// Counts the delivery after it was queued: a refusal rolls back both, so only accepted ones are counted.
    async fn count(
        self,
        accounts: &dyn AccountStore,
        subscription: SubscriptionId,
        (limiter, most): (Limiter, u32),
    ) -> Result<(), Failure<RedeliveryRefusal>> {
        if matches!(self, Self::Operator(..)) {
            return Ok(());
        }
        let subject = Subject::of_seller(self.seller(), subscription.uuid());
        let quota = accounts.count_action(limiter, subject).await?.against(most);
        ensure(quota.admits(), RedeliveryRefusal::TooMany(quota))
    }

    /// The audit log has what people do, not what applications do with their tokens.
    async fn log(
        self,
        accounts: &dyn AccountStore,
        action: Action,
        subject: impl Display + Send,
    ) -> Result<(), StoreError> {
        match self {
            Self::Seller(by) => by.log(accounts, action, subject).await,
            Self::Operator(by, _) => by.log(accounts, action, subject).await,
            Self::Application(..) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use oauth::Count;
    use uuid::Uuid;
    use webhooks::{AddressPolicy, DeliveryState, WebhookUrl};

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{OPERATOR, by, chance, logging, now, refusal};

    /// The mocked results of the stores.
    #[derive(Clone, Copy)]
    struct Answers {
        /// The subscription and the earlier delivery exist.
        exists: bool,
        /// The subscription is active.
        active: bool,
        /// The earlier delivery is in a worker's hands.
        under_way: bool,
        /// The number of this action within its minute.
        place: u64,
    }

    const FINE: Answers = Answers {
        exists: true,
        active: true,
        under_way: false,
        place: 1,
    };

    fn earlier() -> Delivery {
        let id = Uuid::from_u128(99).into();
        let state = DeliveryState::Stopped {
            attempt: 0,
            last: None,
        };
        let queued = Delivery::queued(id, WebhookEvent::OrderPaid, b"{}".to_vec(), now());
        Delivery { state, ..queued }
    }

    fn to() -> SubscriptionId {
        Uuid::from_u128(3).into()
    }

    fn own() -> ClientId {
        Uuid::from_u128(2).into()
    }

    fn of_seller() -> Requester {
        Requester::Seller(by())
    }

    fn of_application() -> Requester {
        Requester::Application(by().seller, own())
    }

    fn of_operator() -> Requester {
        Requester::Operator(OPERATOR, by().seller)
    }

    /// Only what is queued is counted, within its limit, and logged.
    fn store(
        answers: Answers,
        requester: Requester,
        (limiter, most): (Limiter, u64),
        action: Action,
    ) -> MockTransaction {
        let exists = answers.exists;
        let queued = exists && answers.active && !answers.under_way;
        let (is_seller, is_operator) = (
            matches!(requester, Requester::Seller(_)),
            matches!(requester, Requester::Operator(..)),
        );
        let done = queued && (is_operator || answers.place <= most);
        let logged = done && (is_seller || is_operator);
        let mut tx = logging(usize::from(logged), action);
        tx.expect_lock_delivery()
            .returning(move |_, client_id, id, delivery| {
                assert_eq!((id, delivery), (to(), earlier().id));
                assert_eq!(client_id, requester.client_id());
                Ok(exists.then(|| LockedDelivery {
                    delivery: earlier(),
                    is_live: answers.active,
                    is_under_way: answers.under_way,
                }))
            });
        tx.expect_requeue_delivery()
            .times(usize::from(queued && limiter == Limiter::Redeliveries))
            .returning(|_, _, delivery, has_ended, at| {
                let state = earlier().state;
                assert_eq!(
                    (delivery, has_ended, at),
                    (earlier().id, state.has_ended(), now())
                );
                Ok(true)
            });
        tx.expect_subscription().returning(move |_, id| {
            assert_eq!(id, to());
            Ok(exists.then(|| Subscription {
                id,
                client_id: own(),
                url: WebhookUrl::parse("https://example.com", AddressPolicy::Public).unwrap(),
                events: vec![WebhookEvent::OfferRejected, WebhookEvent::OrderPaid],
                active: true,
                created_at: now(),
            }))
        });
        tx.expect_queue_delivery().returning(move |_, _, delivery| {
            let body = String::from_utf8(delivery.body.clone()).unwrap();
            assert!(
                body.contains(&delivery.id.to_string()) && body.contains("test"),
                "{body}"
            );
            assert_eq!(
                (delivery.id, delivery.created_at),
                (at(now(), Uuid::from_u128(1)).into(), now())
            );
            Ok(answers.active)
        });
        tx.expect_count_action()
            .times(usize::from(queued && !is_operator))
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

    async fn again(answers: Answers, requester: Requester) -> Result<Delivery, Failure<RedeliveryRefusal>> {
        let limit = (Limiter::Redeliveries, 30);
        let tx = store(answers, requester, limit, Action::Redelivered);
        redeliver(&tx, &tx, requester, (to(), earlier().id), now()).await
    }

    async fn sample(answers: Answers, requester: Requester) -> Result<Delivery, Failure<RedeliveryRefusal>> {
        let limit = (Limiter::TestEvents, 10);
        let tx = store(answers, requester, limit, Action::TestEventSent);
        send_test_event(&tx, &tx, &chance(), requester, to(), None, now()).await
    }

    #[tokio::test]
    async fn a_delivery_is_queued_for_anybody_who_may_ask_and_logged_for_people() {
        let [mut missing, mut inactive, mut under_way] = [FINE; 3];
        missing.exists = false;
        inactive.active = false;
        under_way.under_way = true;
        for requester in [of_seller(), of_application(), of_operator()] {
            assert_eq!(again(FINE, requester).await.unwrap(), earlier().again(now()));
            let sent = sample(FINE, requester).await.unwrap();
            assert_eq!(
                (sent.event, sent.state),
                (WebhookEvent::OfferRejected, DeliveryState::Queued)
            );
            let (seconds, _) = sent.id.uuid().get_timestamp().unwrap().to_unix();
            assert_eq!(i64::try_from(seconds).unwrap(), now().timestamp());
            for (answers, why) in [
                (missing, RedeliveryRefusal::NotFound),
                (inactive, RedeliveryRefusal::Inactive),
            ] {
                assert_eq!(refusal(again(answers, requester).await), why);
                assert_eq!(refusal(sample(answers, requester).await), why);
            }
            assert_eq!(
                refusal(again(under_way, requester).await),
                RedeliveryRefusal::UnderWay
            );
        }
    }

    #[tokio::test]
    async fn deliveries_by_hand_are_limited_by_the_minute_but_for_operators() {
        for (place, samples, redeliveries) in [
            (10, true, true),
            (11, false, true),
            (30, false, true),
            (31, false, false),
        ] {
            let answers = Answers { place, ..FINE };
            for requester in [of_seller(), of_application(), of_operator()] {
                let is_free = matches!(requester, Requester::Operator(..));
                for (queued, admitted) in [
                    (sample(answers, requester).await, samples),
                    (again(answers, requester).await, redeliveries),
                ] {
                    if admitted || is_free {
                        queued.unwrap();
                    } else {
                        let RedeliveryRefusal::TooMany(quota) = refusal(queued) else {
                            panic!("{place}")
                        };
                        assert_eq!(quota.retry_after(), 20);
                    }
                }
            }
        }
    }
}
