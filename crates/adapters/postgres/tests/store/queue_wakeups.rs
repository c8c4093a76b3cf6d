//! A queue sleeps if it has no due delivery, and never with work; while its application is suspended it stays
//! asleep.

use std::time::Duration;

use chrono::TimeDelta;
use futures_util::FutureExt as _;
use kernel::OfferId;
use oauth::ApplicationStatus;
use offers::Decision;
use tokio::time::Instant;
use usecases::Transaction;
use webhooks::QueueKey;

use crate::support::{
    AWAKE, CAPACITY, Fixture, LEASE, ModerateOffer, Work as _, answer, claim, id, queue_one, set_status,
};

/// An open transaction that has announced an offer's rejection.
async fn open_fan_out(fixture: &Fixture, queue: QueueKey, offer: OfferId) -> Box<dyn Transaction> {
    let claim = claim(queue.seller, &id().to_string(), "x");
    fixture.database.claims().claim(&claim, LEASE).await.unwrap();
    let tx = fixture.begin().await;
    ModerateOffer(queue.seller, offer, Decision::Reject)
        .run(&*tx)
        .await
        .unwrap();
    // The completion also flushes all announcements.
    tx.complete(&claim, &answer("")).await.unwrap();
    tx
}

/// A leased queue with one delivery in hand, and an offer that may be rejected.
async fn leased_queue(fixture: &Fixture) -> (QueueKey, OfferId, webhooks::SubscriptionQueue) {
    let queue = fixture.queue().await;
    let offer = fixture.offer(queue.seller, 1).await;
    fixture.enqueue(queue, 1).await;
    (queue, offer, fixture.claim_one().await)
}

/// The queue is due at once, or once it was examined again.
async fn is_given_out(fixture: &Fixture) {
    let started = Instant::now();
    loop {
        for queue in fixture.claim().await {
            if !queue.deliveries.is_empty() {
                return;
            }
            fixture.release(queue.lease).await;
        }
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "asleep with due deliveries"
        );
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_released_before_or_while_deliveries_are_committed_does_not_sleep() {
    let fixture = Fixture::new().await;
    let (queue, offer, claimed) = leased_queue(&fixture).await;
    let tx = open_fan_out(&fixture, queue, offer).await;
    // It waits for no other transaction.
    fixture.end_all(&claimed, 200).await;
    assert!(fixture.claim().await.is_empty());
    tx.commit().await.unwrap();
    let holder = fixture.test_database.connect().await;
    holder
        .batch_execute("begin; select from subscriptions for update")
        .await
        .unwrap();
    assert!(fixture.claim().await.is_empty());
    holder.batch_execute("commit").await.unwrap();
    is_given_out(&fixture).await;

    let fixture = Fixture::new().await;
    let (queue, offer, claimed) = leased_queue(&fixture).await;
    open_fan_out(&fixture, queue, offer).await.commit().await.unwrap();
    fixture.end_all(&claimed, 200).await;
    assert!(fixture.sleeps(queue).await.unwrap() <= TimeDelta::zero());
    assert_eq!(fixture.claim_one().await.deliveries.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_being_released_while_deliveries_are_queued_is_woken() {
    let fixture = Fixture::new().await;
    let (queue, offer, _leased) = leased_queue(&fixture).await;
    // Its own statement is faster, and locks less.
    let mut owner = fixture.test_database.connect().await;
    let recording = owner.transaction().await.unwrap();
    recording
        .execute("select from subscriptions for update", &[])
        .await
        .unwrap();
    let fan_out = async { open_fan_out(&fixture, queue, offer).await.commit().await.unwrap() };
    let release = async {
        fixture.wait_for_blocked_session().await;
        let sleep = "update subscriptions set leased = false, fence = null, wake_at = null";
        recording.execute(sleep, &[]).await.unwrap();
        recording.commit().await.unwrap();
    };
    futures_util::join!(fan_out, release);
    is_given_out(&fixture).await;
}

#[tokio::test]
async fn a_fan_out_wakes_sleeping_queues_and_leaves_due_and_leased_ones_alone() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let application = fixture.client_of(seller).await;
    let mut expected = Vec::new();
    for (set, woken) in [
        ("wake_at = null", true),
        ("wake_at = api_now() + interval '1 hour'", true),
        ("wake_at = api_now() - interval '1 hour'", false),
        (
            "wake_at = api_now() + interval '30 s', leased = true, fence = id",
            false,
        ),
    ] {
        let queue = fixture.subscribe(seller, application).await;
        fixture.set_queue(queue, set).await;
        expected.push((set, queue, fixture.sleeps_until(queue).await, woken));
    }
    let offer = fixture.offer(seller, 5).await;
    fixture.place_order(&[(seller, offer)]).await;
    assert_eq!(fixture.rows_of("deliveries").await, 4);
    for (what, queue, before, woken) in expected {
        let after = fixture.sleeps_until(queue).await;
        assert_eq!(after != before, woken, "{what}");
        assert!(!woken || after.unwrap() <= fixture.now().await, "{what}");
    }
}

#[tokio::test]
async fn reconciliation_wakes_queues_with_due_deliveries_that_are_not_resting() {
    let (fixture, _clock) = Fixture::frozen().await;
    let mut queues = Vec::new();
    for n in 0..6 {
        queues.push(fixture.queue().await);
        fixture.enqueue(queues[n], usize::from(n < 5)).await;
    }
    fixture.tamper("update subscriptions set wake_at = null").await;
    fixture
        .set_queue(queues[1], "wake_at = api_now() + interval '10 s'")
        .await;
    fixture
        .set_queue(queues[2], "wake_at = api_now() + interval '2 s'")
        .await;
    let later = format!(
        "update deliveries set due_at = api_now() + interval '1 minute' where subscription_id = '{}'",
        queues[3].subscription
    );
    fixture.tamper(&later).await;
    // A worker has it, and its delivery was committed more than half a minute after it was due.
    let leased = "leased = true, fence = id, wake_at = api_now() + interval '20 s', \
                  none_due_before = api_now() + interval '1 s'";
    fixture.set_queue(queues[4], leased).await;
    for woken in [3, 0] {
        assert_eq!(fixture.queues().reconcile().await.unwrap(), woken);
    }
    let lease_end = fixture.sleeps_until(queues[4]).await.unwrap();
    assert_eq!(lease_end - fixture.now().await, TimeDelta::seconds(20));
    assert_eq!(fixture.claim_keys().await, queues[..2]);
}

#[tokio::test]
async fn a_delivery_queued_by_hand_notifies_the_worker_at_its_commit() {
    let fixture = Fixture::new().await;
    let queue = fixture.queue().await;
    let hint = fixture.database.queued();
    let is_notified = || hint.notified().now_or_never().is_some();
    let tx = fixture.begin().await;
    assert!(queue_one(&*tx, queue).await.is_some());
    assert!(!is_notified());
    tx.commit().await.unwrap();
    assert!(is_notified());
    // Nothing is queued for a deleted subscription, without a wait.
    let unknown = QueueKey {
        subscription: id().into(),
        ..queue
    };
    let queued = fixture.tx(async |tx| queue_one(tx, unknown).await).await;
    assert!(queued.is_none());
    assert!(!is_notified());
}

#[tokio::test]
async fn a_suspension_puts_queues_to_sleep_and_its_end_wakes_them() {
    let fixture = Fixture::new().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let application = fixture.client_of(seller).await;
    fixture.connect(other, application).await;
    let queues = [
        fixture.subscribe(seller, application).await,
        fixture.subscribe(other, application).await,
    ];
    let idle = fixture.subscribe(seller, application).await;
    for queue in queues {
        fixture.enqueue(queue, 2).await;
    }
    fixture.suspend(application).await;
    for more in [true, false] {
        let claimed = fixture.queues().claim(id(), CAPACITY).await.unwrap();
        assert_eq!((claimed.queues.len(), claimed.healthy.more), (0, more));
    }
    assert_eq!(fixture.waiting().await, 4);
    let resting = fixture
        .rows_of("subscriptions where active and wake_at is null")
        .await;
    assert_eq!(resting, 3, "the idle one, and those that rest");
    assert_eq!(fixture.queues().reconcile().await.unwrap(), 0);
    assert_eq!(queue_one(&*fixture.begin().await, queues[0]).await, None);

    // A concurrent claim still sees the suspension, and does not wait.
    let tx = fixture.begin().await;
    set_status(&*tx, application, ApplicationStatus::Active).await;
    assert!(fixture.claim().await.is_empty());
    tx.commit().await.unwrap();
    fixture.follow_up().await;
    assert_eq!(fixture.claim_keys().await, queues);
    assert_eq!(fixture.sleeps(idle).await, None);
}

#[tokio::test]
async fn a_lease_that_ends_in_a_suspension_leaves_nothing_and_a_reinstatement_wakes_its_own_queues() {
    let (fixture, clock) = Fixture::frozen().await;
    let seller = fixture.seller().await;
    let (one, other) = (fixture.client_of(seller).await, fixture.client_of(seller).await);
    let queue = fixture.subscribe(seller, one).await;
    let others = fixture.subscribe(seller, other).await;
    for queue in [queue, others] {
        fixture.enqueue(queue, 1).await;
    }
    assert_eq!(fixture.claim().await.len(), 2);
    for application in [one, other] {
        fixture.suspend(application).await;
    }
    clock.advance(TimeDelta::seconds(31)).await;
    assert!(fixture.claim().await.is_empty());
    let left = "select concat_ws(' ', leased, fence, in_hand, wake_at) from subscriptions";
    assert_eq!(fixture.texts(left).await, ["f {}", "f {}"]);
    // The other one is suspended again before its queues are woken.
    for (application, status) in [
        (one, ApplicationStatus::Active),
        (other, ApplicationStatus::Active),
        (other, ApplicationStatus::Suspended),
        // It is active already.
        (one, ApplicationStatus::Active),
    ] {
        fixture.set_status(application, status).await;
    }
    // Each is done, and none with it.
    let mut left = fixture.rows_of("follow_ups").await;
    assert_eq!(left, 2, "one for each reinstatement");
    while left > 0 {
        assert!(fixture.database.follow_up().await.unwrap());
        let now = fixture.rows_of("follow_ups").await;
        assert!(now >= left - 1, "{now} of {left}");
        left = now;
    }
    assert_eq!(fixture.sleeps_until(others).await, None);
    assert_eq!(fixture.claim_keys().await, [queue]);
}

#[tokio::test]
async fn a_queue_that_is_locked_during_a_reinstatement_is_woken_afterwards() {
    let fixture = Fixture::new().await;
    let (application, queue) = fixture.subscribed().await;
    fixture.enqueue(queue, 1).await;
    fixture.suspend(application).await;
    assert!(fixture.claim().await.is_empty());
    fixture.set_status(application, ApplicationStatus::Active).await;
    let mut owner = fixture.test_database.connect().await;
    let change = owner.transaction().await.unwrap();
    let lock = "select from subscriptions for no key update";
    change.execute(lock, &[]).await.unwrap();
    assert!(fixture.database.follow_up().await.unwrap());
    change.rollback().await.unwrap();
    fixture.follow_up().await;
    assert_eq!(fixture.claim_keys().await, [queue]);
}

#[tokio::test]
async fn few_claims_meet_a_suspended_application_however_many_queues_it_has() {
    let fixture = Fixture::new().await;
    let (application, queue) = fixture.subscribed().await;
    fixture.enqueue(queue, 1).await;
    fixture.copies(1_500).await;
    fixture.suspend(application).await;
    let active = fixture.queue().await;
    fixture.enqueue(active, 1).await;
    let mut claimed = Vec::new();
    for _ in 0..3 {
        claimed.extend(fixture.claim().await);
    }
    assert_eq!((claimed.len(), claimed[0].lease.queue), (1, active));
    assert_eq!(fixture.rows_of(AWAKE).await, 0);
    fixture.set_status(application, ApplicationStatus::Active).await;
    fixture.follow_up().await;
    let woken = fixture.claim_one().await.lease.queue;
    assert_eq!(woken, queue, "only the queue with deliveries wakes");
}
