//! Subscriptions that end: deleted, disconnected, their application deleted, the seller's account closed.

use kernel::SellerId;
use oauth::ClientId;
use usecases::Transaction;
use webhooks::{Delivery, DeliveryState, QueueKey, SubscriptionQueue};

use crate::support::{Fixture, ids, more, queue_one};

/// Another seller's application that the seller has connected, and its subscription.
async fn let_in(fixture: &Fixture) -> (SellerId, ClientId, QueueKey) {
    let (seller, owner) = (fixture.seller().await, fixture.seller().await);
    let application = fixture.client_of(owner).await;
    fixture.connect(seller, application).await;
    let queue = fixture.subscribe(seller, application).await;
    (seller, application, queue)
}

async fn disconnect(tx: &dyn Transaction, (seller, application, _): (SellerId, ClientId, QueueKey)) {
    assert!(tx.disconnect(seller, application).await.unwrap());
}

/// No deliveries are queued or given out any more. The running attempt is recorded if its delivery still exists.
async fn nothing_more(fixture: &Fixture, queue: QueueKey, held: &SubscriptionQueue, recorded: i64) {
    fixture.end_all(held, 200).await;
    assert_eq!(fixture.delivered().await, recorded);
    assert_eq!(fixture.tx(async |tx| queue_one(tx, queue).await).await, None);
    assert!(fixture.claim().await.is_empty());
    assert_eq!(fixture.waiting().await, 0);
}

async fn active(fixture: &Fixture, seller: SellerId, application: ClientId) -> Vec<bool> {
    let reader = fixture.database.subscriptions();
    let all = reader.subscriptions(seller, application).await.unwrap();
    all.iter().map(|one| one.active).collect()
}

#[tokio::test]
async fn a_removed_subscription_is_gone_with_its_history() {
    let fixture = Fixture::new().await;
    let (seller, application, queue) = let_in(&fixture).await;
    let other = fixture.subscribe(seller, application).await;
    let told = fixture.enqueue(queue, 20).await;
    let held = fixture.claim_one().await;
    let stranger = fixture.client_of(seller).await;
    let remove = async |client_id| {
        fixture
            .tx(async |tx| {
                tx.remove_subscription(seller, client_id, queue.subscription)
                    .await
                    .unwrap()
            })
            .await
    };
    assert!(!remove(stranger).await && remove(application).await && !remove(application).await);
    assert_eq!(fixture.history(application, queue).await, None);
    let left = fixture
        .database
        .subscriptions()
        .subscriptions(seller, application)
        .await
        .unwrap();
    assert_eq!((left.len(), left[0].id), (1, other.subscription));
    nothing_more(&fixture, queue, &held, 0).await;
    let tx = fixture.begin().await;
    assert_eq!(
        tx.delivery_body(seller, queue.subscription, told[0])
            .await
            .unwrap(),
        None
    );
    assert_eq!(tx.subscription(seller, queue.subscription).await.unwrap(), None);
}

#[tokio::test]
async fn a_disconnected_applications_subscriptions_are_inactive_for_good() {
    let fixture = Fixture::new().await;
    let pair = let_in(&fixture).await;
    let (seller, application, queue) = pair;
    fixture.enqueue(queue, 2).await;
    let held = fixture.claim_one().await;
    // Only those of the pair: neither another application's nor another seller's.
    let (other, owner) = (fixture.client_of(seller).await, fixture.seller().await);
    fixture.connect(owner, application).await;
    fixture.subscribe(seller, other).await;
    fixture.subscribe(owner, application).await;
    fixture.tx(async |tx| disconnect(tx, pair).await).await;
    assert_eq!(active(&fixture, seller, application).await, [false]);
    assert_eq!(active(&fixture, seller, other).await, [true]);
    assert_eq!(active(&fixture, owner, application).await, [true]);
    nothing_more(&fixture, queue, &held, 2).await;
    let history = fixture.history(application, queue).await.unwrap();
    let delivered = |told: &Delivery| matches!(told.state, DeliveryState::Delivered { attempt: 1, .. });
    assert!(history.len() == 2 && history.iter().all(delivered), "{history:?}");
    fixture.subscribe(seller, application).await;
    assert_eq!(
        active(&fixture, seller, application).await,
        [false, false],
        "made after the end"
    );

    fixture
        .tamper("update connections set disconnected_at = null")
        .await;
    let new = fixture.subscribe(seller, application).await;
    assert_eq!(active(&fixture, seller, application).await, [false, false, true]);
    fixture.enqueue(new, 1).await;
    assert_eq!(
        fixture.claim_one().await.lease.queue,
        new,
        "a new one lives with the new connection"
    );
}

#[tokio::test]
async fn a_failure_of_what_ran_at_the_end_is_recorded_and_nothing_is_tried_again() {
    let fixture = Fixture::new().await;
    let pair = let_in(&fixture).await;
    let (_, application, queue) = pair;
    fixture.enqueue(queue, 17).await;
    let held = fixture.claim_one().await;
    fixture.tx(async |tx| disconnect(tx, pair).await).await;
    assert_eq!(fixture.refill(more(held.lease, &ids(&held), 4, 4)).await, None);
    for _ in 0..2 {
        fixture.end_all(&held, 500).await;
    }
    let history = fixture.history(application, queue).await.unwrap();
    let stopped = |attempts: u8| {
        let is = |told: &&Delivery| match &told.state {
            DeliveryState::Stopped { attempt, last } => {
                *attempt == attempts && last.is_some() == (attempts > 0)
            }
            _ => false,
        };
        history.iter().filter(is).count()
    };
    assert_eq!((stopped(1), stopped(0)), (16, 1), "{history:?}");
    assert_eq!(fixture.sleeps(queue).await, None);
    assert!(fixture.claim().await.is_empty());
}

#[tokio::test]
async fn a_deleted_applications_subscriptions_are_removed_with_their_places() {
    let fixture = Fixture::new().await;
    let (seller, application, queue) = let_in(&fixture).await;
    let (other_seller, _, _) = let_in(&fixture).await;
    fixture.enqueue(queue, 2).await;
    let held = fixture.claim_one().await;
    assert!(
        fixture
            .tx(async |tx| tx.delete_application(application).await.unwrap())
            .await
    );
    assert_eq!(fixture.count("select sum(used) from subscription_quota").await, 1);
    let reader = fixture.database.subscriptions();
    for (seller, left) in [(seller, 0), (other_seller, 1)] {
        assert_eq!(reader.subscriptions_of_seller(seller).await.unwrap().len(), left);
    }
    nothing_more(&fixture, queue, &held, 0).await;
}

#[tokio::test]
async fn with_a_sellers_account_end_what_is_told_of_it_and_what_its_applications_hear() {
    let fixture = Fixture::new().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let (own, guest) = (fixture.client_of(seller).await, fixture.client_of(other).await);
    fixture.connect(other, own).await;
    fixture.connect(seller, guest).await;
    for (of, application) in [(seller, own), (seller, guest), (other, own)] {
        let ended = fixture.subscribe(of, application).await;
        fixture.enqueue(ended, 1).await;
    }
    let lives = fixture.subscribe(other, guest).await;
    fixture.close(seller).await;
    assert!(fixture.claim().await.is_empty());
    assert_eq!(
        (
            fixture.waiting().await,
            fixture.rows_of("subscriptions where active").await
        ),
        (0, 1)
    );
    fixture.enqueue(lives, 1).await;
    assert_eq!(fixture.claim_one().await.lease.queue, lives);
}

#[tokio::test]
async fn what_a_transaction_could_not_stop_the_workers_do() {
    let fixture = Fixture::new().await;
    let pair = let_in(&fixture).await;
    let (_, application, queue) = pair;
    fixture.fill(queue, 2_600, 0).await;
    fixture.tx(async |tx| disconnect(tx, pair).await).await;
    assert!(fixture.waiting().await > 0);
    let history = fixture.history(application, queue).await.unwrap();
    let ended = |told: &Delivery| told.state.next_retry_at().is_none() && told.state != DeliveryState::Queued;
    assert!(history.iter().all(ended), "{history:?}");
    for _ in 0..10 {
        assert!(fixture.claim().await.is_empty());
    }
    assert_eq!(fixture.waiting().await, 0);
    assert_eq!(fixture.sleeps(queue).await, None);
}

#[tokio::test]
async fn a_claim_looks_again_whether_the_queue_lives() {
    let fixture = Fixture::new().await;
    for end in [
        "update applications set deleted_at = api_now() where client_id = '{client}'",
        "update connections set generation = 2 where client_id = '{client}'",
        "update connections set disconnected_at = api_now() where client_id = '{client}'",
        "update subscriptions set active = false where client_id = '{client}'",
        "update sellers set closed_at = api_now() where id = '{seller}'",
        "update sellers set closed_at = api_now() where id = (select owner_id from applications where client_id = '{client}')",
    ] {
        let (seller, application, queue) = let_in(&fixture).await;
        fixture.enqueue(queue, 3).await;
        let end = end.replace("{client}", &application.uuid().to_string());
        fixture
            .tamper(&end.replace("{seller}", &seller.to_string()))
            .await;
        for _ in 0..2 {
            assert!(fixture.claim().await.is_empty(), "{end}");
        }
        assert_eq!(
            (fixture.waiting().await, fixture.sleeps(queue).await),
            (0, None),
            "{end}"
        );
    }
}
