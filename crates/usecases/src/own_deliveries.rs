//! A seller has deliveries sent by hand in the panel: the event of an earlier one again, or a sample.

use chrono::{DateTime, Utc};
use kernel::Randomness;
use oauth::{Action, Limiter, PanelStore, Subject};
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
    let (subscription, earlier) = which;
    let most = (Limiter::Redeliveries, MOST_REDELIVERIES_A_MINUTE);
    count(stores.panel, by, subscription, most).await?;
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
    let most = (Limiter::TestEvents, MOST_TEST_EVENTS_A_MINUTE);
    count(stores.panel, by, subscription, most).await?;
    let note = by.note(stores.panel, Action::TestEventSent, subscription);
    note.await?;
    Ok(id)
}

/// Counts what was queued last of all: the refusal of one too many undoes both, and nothing else is counted.
async fn count(
    panel: &dyn PanelStore,
    by: ActingSeller,
    subscription: SubscriptionId,
    (limiter, most): (Limiter, u32),
) -> Result<(), Failure<Refusal>> {
    let subject = Subject::of_seller(by.seller, subscription.uuid());
    let counted = panel.count_deed(limiter, subject).await?;
    if counted.against(most).admits() {
        Ok(())
    } else {
        refuse(Refusal::TooMany)
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use oauth::{Count, MockPanelStore};
    use uuid::Uuid;
    use webhooks::{AddressPolicy, Event, MockSubscriptionStore, Subscription, WebhookEvent, WebhookUrl};

    use super::*;
    use crate::test_support::{chance, now, sent_form};

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

    fn earlier() -> DeliveryId {
        Uuid::from_u128(99).into()
    }

    fn to() -> SubscriptionId {
        Uuid::from_u128(3).into()
    }

    fn subscriptions(said: Said) -> MockSubscriptionStore {
        let mut store = MockSubscriptionStore::new();
        store.expect_delivery_body().returning(move |_, _, id| {
            assert!(said.first);
            let event = Event::sample(WebhookEvent::OrderPaid, Uuid::max());
            Ok(Some((WebhookEvent::OrderPaid, event.body(id, now()).unwrap())))
        });
        store.expect_subscription().returning(move |_, id| {
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
        store
            .expect_queue_delivery()
            .returning(move |_, _, _| Ok(said.active));
        store
    }

    /// Counts with the given limiter what was queued, and nothing else.
    fn panel(said: Said, limiter: Limiter, noted: (Action, String)) -> MockPanelStore {
        let mut panel = MockPanelStore::new();
        panel.expect_keep_flash().times(2).returning(move |_, _, sealed| {
            assert_eq!(sealed, None);
            Ok(said.first)
        });
        panel
            .expect_count_deed()
            .times(usize::from(said.first && said.active))
            .withf(move |counted, subject| {
                *counted == limiter && *subject == Subject::of_seller(Uuid::from_u128(1).into(), to().uuid())
            })
            .returning(move |_, _| {
                Ok(Count {
                    place: said.place,
                    resets_at: now() + TimeDelta::seconds(20),
                    counted_at: now(),
                })
            });
        let admitted = said.place <= if limiter == Limiter::TestEvents { 10 } else { 30 };
        panel
            .expect_note()
            .times(usize::from(said.first && said.active && admitted))
            .withf(move |_, _, action, subject| (*action, subject.to_owned()) == noted)
            .returning(|_, _, _, _| Ok(()));
        panel
    }

    fn by() -> ActingSeller {
        ActingSeller {
            seller: Uuid::from_u128(1).into(),
            address: std::net::Ipv4Addr::LOCALHOST.into(),
        }
    }

    async fn again(said: Said) -> Result<DeliveryId, Failure<Refusal>> {
        let noted = (Action::Redelivered, earlier().to_string());
        let stores = Stores {
            subscriptions: &subscriptions(said),
            panel: &panel(said, Limiter::Redeliveries, noted),
        };
        deliver_again(stores, &chance(), (by(), sent_form()), (to(), earlier()), now()).await
    }

    async fn sample(said: Said) -> Result<DeliveryId, Failure<Refusal>> {
        let noted = (Action::TestEventSent, to().to_string());
        let stores = Stores {
            subscriptions: &subscriptions(said),
            panel: &panel(said, Limiter::TestEvents, noted),
        };
        send_test_event(stores, &chance(), (by(), sent_form()), to(), now()).await
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
