//! Subscriptions and deliveries in the world, and the ports to them.

use kernel::SellerId;
use usecases::MockTransaction;
use uuid::Uuid;
use webhooks::{
    AddressPolicy, Delivery, DeliveryId, DeliveryOfSeller, DeliveryState, Event, MockSubscriptionReader,
    Subscription, SubscriptionId, SubscriptionOfSeller, SubscriptionReader, WebhookEvent, WebhookUrl,
};

use super::world::{Shared, client, seller};

/// A subscription to paid orders, made by application `n`.
pub(crate) fn subscribe(world: &Shared, account: u128, n: u128, active: bool) -> SubscriptionId {
    let id = Uuid::from_u128(0x500 + n).into();
    let mut world = world.get();
    let subscription = Subscription {
        id,
        client_id: client(n),
        url: WebhookUrl::parse(format!("https://hooks{n}.example/in"), AddressPolicy::Public).unwrap(),
        events: vec![WebhookEvent::OrderPaid],
        active,
        created_at: world.now,
    };
    let found = SubscriptionOfSeller {
        subscription,
        app_name: format!("Stock <Sync> {n}"),
    };
    world.subscriptions.push((seller(account), found));
    id
}

/// A delivery to a subscription.
pub(crate) fn delivery(
    world: &Shared,
    account: u128,
    to: SubscriptionId,
    n: u128,
    state: DeliveryState,
) -> DeliveryId {
    let id = Uuid::from_u128(0x600 + n).into();
    let mut world = world.get();
    let delivery = Delivery {
        id,
        event: WebhookEvent::OrderPaid,
        created_at: world.now,
        state,
    };
    let found = DeliveryOfSeller {
        subscription: to,
        delivery,
    };
    world.deliveries.push((seller(account), found));
    id
}

pub(crate) fn subscriptions(world: &Shared) -> impl SubscriptionReader + use<> {
    let mut reader = MockSubscriptionReader::new();
    let there = world.clone();
    reader.expect_subscriptions_of_seller().returning(move |owner| {
        let world = there.there()?;
        let own = world.subscriptions.iter().filter(|(seller, _)| *seller == owner);
        Ok(own.map(|(_, found)| found.clone()).collect())
    });
    let there = world.clone();
    reader
        .expect_deliveries_of_seller()
        .returning(move |owner, filter, limit| {
            let world = there.there()?;
            let fits = |found: &&DeliveryOfSeller| {
                let last = found.delivery.state.last();
                filter.subscription.is_none_or(|id| id == found.subscription)
                    && (!filter.failed || last.is_some_and(|last| !last.outcome.is_success()))
            };
            let own = world.deliveries.iter().filter(|(seller, _)| *seller == owner);
            let own = own.map(|(_, found)| found).filter(fits);
            Ok(own.take(limit.into()).cloned().collect())
        });
    reader
}

pub(crate) fn deliveries(transaction: &mut MockTransaction, world: &Shared) {
    let there = world.clone();
    transaction
        .expect_subscription()
        .returning(move |owner, id| Ok(subscription(&there, owner, id)));
    let there = world.clone();
    transaction
        .expect_delivery_body()
        .returning(move |owner, to, id| {
            let world = there.there()?;
            let known = world.deliveries.iter().any(|(seller, found)| {
                *seller == owner && found.subscription == to && found.delivery.id == id
            });
            let body = Event::sample(WebhookEvent::OrderPaid, Uuid::max()).body(id, world.now);
            Ok(known.then(|| (WebhookEvent::OrderPaid, body.unwrap())))
        });
    let there = world.clone();
    transaction
        .expect_queue_delivery()
        .returning(move |owner, to, new| {
            if !subscription(&there, owner, to).is_some_and(|found| found.active) {
                return Ok(false);
            }
            let delivery = Delivery {
                id: new.id,
                event: new.event,
                created_at: new.created_at,
                state: DeliveryState::Queued,
            };
            let found = DeliveryOfSeller {
                subscription: to,
                delivery,
            };
            there.get().deliveries.insert(0, (owner, found));
            Ok(true)
        });
}

fn subscription(world: &Shared, owner: SellerId, id: SubscriptionId) -> Option<Subscription> {
    let world = world.get();
    let mut all = world.subscriptions.iter();
    let found = all.find(|(seller, found)| *seller == owner && found.subscription.id == id);
    found.map(|(_, found)| found.subscription.clone())
}
