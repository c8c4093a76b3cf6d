//! Subscriptions: their places, and their end.

use futures_util::future::join_all;
use kernel::SellerId;
use oauth::ClientId;
use usecases::create_subscription::{Refusal, Wanted, create_subscription};
use usecases::{Failure, Transaction, Work, transact};
use webhooks::{AddressPolicy, MOST_SUBSCRIPTIONS, WebhookEvent, WebhookUrl};

use super::{
    fixture::{Fixture, Ids, application, begin, lane, queue, seller, subscribed, subscription},
    lanes::{ROOM, claimed, claimed_one},
};

struct Subscribe(SellerId, ClientId);

#[async_trait::async_trait]
impl Work for Subscribe {
    type Done = ();
    type Error = Failure<Refusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<(), Failure<Refusal>> {
        let wanted = Wanted {
            url: WebhookUrl::parse("https://receiver.example/", AddressPolicy::Public).unwrap(),
            events: vec![WebhookEvent::OrderPaid],
        };
        create_subscription(tx, &Ids, (self.0, self.1), &wanted, tx.now()).await?;
        Ok(())
    }
}

/// Twenty have a place, however many ask at once; a place that is given up is free again.
#[tokio::test]
async fn the_limit_is_exact_and_a_place_comes_back() {
    let fixture = &Fixture::new().await;
    let seller = seller(fixture).await;
    let client_id = application(fixture, seller).await;
    let key = subscribed(fixture, seller, client_id).await;
    for _ in 2..MOST_SUBSCRIPTIONS {
        subscribed(fixture, seller, client_id).await;
    }
    let (units, subscribe) = (fixture.units(), Subscribe(seller, client_id));
    let all = join_all((0..4).map(|_| transact(units.as_ref(), &subscribe))).await;
    let made = all.iter().filter(|made| made.is_ok()).count();
    let refused = all
        .iter()
        .filter(|made| matches!(made, Err(Failure::Refused(Refusal::Limit))));
    assert_eq!((made, refused.count()), (1, 3), "{all:?}");
    let tx = begin(fixture).await;
    assert!(
        tx.remove_subscription(seller, client_id, key.subscription)
            .await
            .unwrap()
    );
    assert!(
        !tx.remove_subscription(seller, client_id, key.subscription)
            .await
            .unwrap()
    );
    tx.commit().await.unwrap();
    assert!(transact(units.as_ref(), &subscribe).await.is_ok());
}

/// A subscription that was removed is given out no more and takes nothing in, and what was begun is not recorded.
#[tokio::test]
async fn what_has_ended_is_given_out_no_more() {
    let fixture = &Fixture::new().await;
    let key = lane(fixture).await;
    queue(fixture, key, 2).await;
    let held = claimed_one(fixture).await;
    let tx = begin(fixture).await;
    let client_id = held.client_id;
    let other = subscription(key.seller, client_id, tx.now()).id;
    assert!(
        !tx.remove_subscription(key.seller, client_id, other)
            .await
            .unwrap()
    );
    assert!(
        tx.remove_subscription(key.seller, client_id, key.subscription)
            .await
            .unwrap()
    );
    tx.commit().await.unwrap();
    let end = super::lanes::failed(held.hold, &held.deliveries[0]);
    fixture
        .lanes()
        .settle(&[end], &[super::lanes::release(held.hold)])
        .await
        .unwrap();
    fixture.advance(chrono::TimeDelta::hours(1)).await;
    assert!(claimed(fixture, ROOM).await.is_empty());
    let tx = begin(fixture).await;
    assert_eq!(tx.subscription(key.seller, key.subscription).await.unwrap(), None);
}
