//! What a recording changes, and the attempts lost with a worker.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::TimeDelta;
use futures_util::join;
use oauth::ClientId;
use testkit::{Fault, StatementProxy};
use tokio::time::timeout;
use webhooks::{
    AttemptFailure, AttemptRecord, Capacity, Delivery, DeliveryState, FailureKind, LOSSES_FORGIVEN, Outcome,
    Phase, Progress, QueueKey, Release,
};

use crate::support::{
    CAPACITY, Fixture, all_ended, ended, given, handle, ids, ids_of, more, release, settings, strangers,
};

#[tokio::test]
async fn recorded_attempts_read_back() {
    let (fixture, _clock) = Fixture::frozen().await;
    let (application, queue) = fixture.subscribed().await;
    let queued = fixture.enqueue(queue, 4).await;
    let claimed = fixture.claim_one().await;
    let failed = |n: usize, failure: AttemptFailure, delay| {
        let end = ended(claimed.lease, &claimed.deliveries[n], 500);
        AttemptRecord {
            outcome: Outcome::Failed(failure),
            phase: Phase::Waiting(delay),
            ..end
        }
    };
    let records = [
        ended(claimed.lease, &claimed.deliveries[0], 204),
        ended(claimed.lease, &claimed.deliveries[1], 999),
        failed(
            2,
            AttemptFailure::tls("certificate: expired"),
            TimeDelta::minutes(5),
        ),
        failed(3, AttemptFailure::Dns, TimeDelta::hours(2)),
    ];
    fixture.record(&records, &[release(claimed.lease)]).await;
    let mut history = fixture.history(application, queue).await.unwrap();
    history.reverse();
    let found: Vec<_> = history.iter().map(|delivery| delivery.id).collect();
    assert_eq!(found, queued);
    let now = fixture.now().await;
    for (delivery, record) in history.iter().zip(&records) {
        let (attempt, last, ahead) = match delivery.state.clone() {
            DeliveryState::Delivered { attempt, last, .. } => (attempt, last, None),
            DeliveryState::Waiting {
                attempt,
                last,
                due_at,
            } => (attempt, last, Some(due_at - now)),
            other => panic!("{other:?}"),
        };
        assert_eq!((attempt, &last.outcome), (1, &record.outcome));
        assert_eq!(last.duration, Duration::from_millis(12));
        let delay = match record.phase {
            Phase::Waiting(delay) => Some(delay),
            _ => None,
        };
        assert_eq!(ahead, delay);
    }
    let minute = Some(TimeDelta::minutes(1));
    assert_eq!(fixture.sleeps(queue).await, minute, "until the next is due");
}

#[tokio::test]
async fn a_lease_records_its_attempts_until_it_is_taken_over() {
    let fixture = Fixture::new().await;
    let clock = fixture.test_database.control_clock().await;
    let queue = fixture.queue().await;
    fixture.enqueue(queue, 1).await;
    let slow = fixture.claim_one().await;
    clock.advance(TimeDelta::seconds(31)).await;
    let other = fixture.claim_one().await;
    fixture.end_all(&slow, 200).await;
    let counts = (fixture.delivered().await, fixture.leased().await);
    assert_eq!(counts, (0, 1), "it belongs to the other worker");
    clock.advance(TimeDelta::minutes(5)).await;
    fixture.end_all(&other, 200).await;
    let rows = fixture
        .rows_of("deliveries where delivered_at is not null and attempt = 1")
        .await;
    assert_eq!(rows, 1);
}

#[tokio::test]
async fn several_queues_are_recorded_together_and_only_the_released_ones_freed() {
    let fixture = Fixture::new().await;
    let (one, two) = (fixture.queue().await, fixture.queue().await);
    fixture.enqueue(one, 2).await;
    fixture.enqueue(two, 2).await;
    let claimed = fixture.claim().await;
    let ends: Vec<_> = claimed.iter().flat_map(|queue| all_ended(queue, 200)).collect();
    let mut leases = claimed.iter().map(|queue| queue.lease);
    let first = leases.find(|lease| lease.queue == one).unwrap();
    fixture
        .record(&ends, &[release(first), release(strangers(first))])
        .await;
    assert_eq!((fixture.delivered().await, fixture.leased().await), (4, 1));
    assert_eq!(fixture.sleeps(one).await, None);
}

#[tokio::test]
async fn a_locked_queue_is_named_and_not_waited_for() {
    let fixture = Fixture::new().await;
    let [locked, free] = fixture.several_queues().await;
    fixture.enqueue(locked, 2).await;
    fixture.enqueue(free, 2).await;
    let claimed = fixture.claim().await;
    let ends: Vec<_> = claimed.iter().flat_map(|queue| all_ended(queue, 200)).collect();
    let back: Vec<_> = claimed.iter().map(|queue| release(queue.lease)).collect();
    let lease = claimed
        .iter()
        .find(|queue| queue.lease.queue == locked)
        .unwrap()
        .lease;
    let holder = fixture.test_database.connect().await;
    let lock = format!(
        "begin; select from subscriptions where id = '{}' for update",
        locked.subscription
    );
    holder.batch_execute(&lock).await.unwrap();
    let record = async |records| fixture.queues().record(records, &back).await.unwrap();
    assert_eq!(record(&ends).await, BTreeSet::from([lease]));
    assert_eq!((fixture.delivered().await, fixture.leased().await), (2, 1));
    // The other one's lease has ended.
    assert_eq!(record(&[]).await, BTreeSet::from([lease]));
    assert_eq!(fixture.refill(more(lease, &[], 2, 2)).await, None);
    holder.batch_execute("commit").await.unwrap();
    assert_eq!(record(&ends).await, BTreeSet::new());
    assert_eq!((fixture.delivered().await, fixture.leased().await), (4, 0));
}

#[tokio::test]
async fn the_failing_mark_of_a_queue_is_stored_until_it_changes() {
    let fixture = Fixture::new().await;
    let queue = fixture.queue().await;
    fixture.enqueue(queue, 1).await;
    for (change, failing) in [
        (Some(true), true),
        (None, true),
        (Some(false), false),
        (None, false),
    ] {
        let claimed = fixture.claim_one().await;
        let back = Release {
            failing: change,
            ..release(claimed.lease)
        };
        fixture.record(&all_ended(&claimed, 200), &[back]).await;
        fixture.enqueue(queue, 1).await;
        let claimed = fixture.claim_one().await;
        assert_eq!(claimed.failing, failing, "{change:?}");
        fixture.release(claimed.lease).await;
    }
}

#[tokio::test]
async fn a_connection_is_usable_after_a_failed_recording() {
    let fixture = Fixture::new().await;
    let queue = fixture.queue().await;
    fixture.enqueue(queue, 1).await;
    let claimed = fixture.claim_one().await;
    let end = ended(claimed.lease, &claimed.deliveries[0], 500);
    let impossible = AttemptRecord {
        duration_ms: -1,
        ..end.clone()
    };
    for _ in 0..20 {
        let back = [release(claimed.lease)];
        let recorded = fixture
            .queues()
            .record(std::slice::from_ref(&impossible), &back)
            .await;
        assert!(recorded.is_err());
    }
    fixture.record(&[end], &[release(claimed.lease)]).await;
    assert_eq!(fixture.rows_of("deliveries where attempt = 1").await, 1);
    let open = "pg_stat_activity where datname = current_database() and state like 'idle in%'";
    assert_eq!(fixture.rows_of(open).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_waits_for_no_statement_of_a_recording() {
    let fixture = Fixture::new().await;
    let queue = fixture.queue().await;
    let offer = fixture.offer(queue.seller, 100).await;
    let proxy = StatementProxy::to(&fixture.test_database);
    let worker = handle(settings(proxy.url(), 1)).subscription_queues();
    let record = async || {
        fixture.enqueue(queue, 1).await;
        let claimed = fixture.claim_one().await;
        let back = [release(claimed.lease)];
        worker.record(&all_ended(&claimed, 200), &back).await.unwrap();
    };
    // The second one without the statements that look into the catalogue.
    record().await;
    proxy.record();
    record().await;
    let statements = proxy.recorded();
    assert!(statements.len() >= 2, "{statements:?}");
    for statement in statements {
        proxy.arm(&statement, Fault::Waits);
        let order = async {
            proxy.reached().await;
            let lines = [(queue.seller, offer)];
            let placed = timeout(Duration::from_secs(10), fixture.place_order(&lines)).await;
            proxy.resume();
            assert!(placed.is_ok(), "it waits for {statement:?}");
        };
        join!(record(), order);
    }
    assert_eq!(given(&fixture.claim().await), 1, "the last order's");
}

#[tokio::test]
async fn a_queue_is_due_after_its_pause_with_all_its_deliveries() {
    let (fixture, clock) = Fixture::frozen().await;
    let queue = fixture.queue().await;
    let queued = fixture.enqueue(queue, 3).await;
    let pause = TimeDelta::milliseconds(250);
    let back = |lease| Release {
        pause,
        ..release(lease)
    };
    let claimed = fixture.claim_one().await;
    fixture
        .record(&all_ended(&claimed, 200)[..1], &[back(claimed.lease)])
        .await;
    assert_eq!(fixture.sleeps(queue).await, Some(pause));
    assert!(fixture.claim().await.is_empty());
    clock.advance(pause).await;
    let again = fixture.claim_one().await;
    assert_eq!(ids(&again), queued[1..]);
    let mut progress = again.deliveries.iter().map(|due| due.progress);
    assert!(progress.all(|progress| progress == Progress::default()));
    // A queue without pending deliveries sleeps, too.
    fixture
        .record(&all_ended(&again, 200), &[back(again.lease)])
        .await;
    assert_eq!(fixture.sleeps(queue).await, None);
}

#[tokio::test]
async fn a_queue_is_taken_over_after_its_lease_and_its_running_attempts_are_lost() {
    let (fixture, clock) = Fixture::frozen().await;
    let queue = fixture.queue().await;
    let queued = fixture.enqueue(queue, 2).await;
    let first = fixture.claim_one().await;
    assert!(ids(&first) == queued && first.deliveries.iter().all(|due| due.progress.lost == 0));
    let end = ended(first.lease, &first.deliveries[0], 500);
    fixture.record(std::slice::from_ref(&end), &[]).await;
    clock.advance(TimeDelta::milliseconds(29_999)).await;
    assert!(fixture.claim().await.is_empty());
    // By now the delivery whose attempt ended is due again, which does not count as a loss.
    clock.advance(TimeDelta::minutes(2)).await;
    let second = fixture.claim_one().await;
    let given = second.deliveries.iter().map(|due| (due.id, due.progress));
    let lost = Progress { attempt: 0, lost: 1 };
    let expected = [(queued[1], lost), (queued[0], end.next)];
    assert_eq!(given.collect::<Vec<_>>(), expected);
    fixture.release(second.lease).await;
    let third = fixture.claim_one().await;
    let mut losses = third.deliveries.iter().map(|due| due.progress.lost);
    assert!(losses.all(|lost| lost < 2), "released is not lost");
}

#[tokio::test]
async fn the_last_attempt_is_the_one_that_was_lost_until_another_ends() {
    let (fixture, clock) = Fixture::frozen().await;
    let (application, queue) = fixture.subscribed().await;
    fixture.enqueue(queue, 1).await;
    let last = async || {
        let delivery = fixture.history(application, queue).await.unwrap().remove(0);
        let failure = delivery.outcome().and_then(Outcome::failure);
        (delivery.state.attempt(), failure)
    };
    assert_eq!(last().await, (0, None));
    for (attempt, failure) in [(0, None), (1, Some(FailureKind::Status))] {
        fixture.claim_one().await;
        assert_eq!(last().await, (attempt, failure));
        clock.advance(TimeDelta::seconds(31)).await;
        let again = fixture.claim_one().await;
        assert_eq!(last().await, (attempt, Some(FailureKind::SenderLost)));
        let delivery = fixture.history(application, queue).await.unwrap().remove(0);
        assert_eq!(delivery.last(), None, "it had no response");
        fixture.end_all(&again, 500).await;
        assert_eq!(last().await, (attempt + 1, Some(FailureKind::Status)));
        clock.advance(TimeDelta::minutes(2)).await;
    }
}

#[tokio::test]
async fn a_record_counts_for_the_state_alone_on_which_it_was_decided() {
    let fixture = Fixture::new().await;
    let (application, queue) = fixture.subscribed().await;
    let another = fixture.subscribe(queue.seller, application).await;
    fixture.enqueue(queue, 1).await;
    let claimed = fixture.claim_one().await;
    fixture.enqueue(another, 1).await;
    let record = || ended(claimed.lease, &claimed.deliveries[0], 500);
    let (mut earlier, mut lost) = (record(), record());
    earlier.from.attempt += 1;
    lost.from.lost += 1;
    for (record, attempt) in [(earlier, 0), (lost, 0), (record(), 1)] {
        fixture.record(&[record], &[]).await;
        let history = fixture.history(application, queue).await.unwrap();
        let attempts: Vec<_> = history.iter().map(|delivery| delivery.state.attempt()).collect();
        assert_eq!(attempts, [attempt]);
    }
}

/// A finished delivery that is queued anew is given out, and a record of its former attempt that is sent once
/// more changes nothing.
#[tokio::test]
async fn a_delivery_that_is_queued_anew_is_ended_by_its_new_attempt_alone() {
    let (fixture, clock) = Fixture::frozen().await;
    let (application, queue) = fixture.subscribed().await;
    let queued = fixture.enqueue(queue, 2).await;
    let sister = fixture.subscribe(queue.seller, application).await;
    let before = fixture.row_of(sister).await;
    let again = async || {
        let tx = fixture.begin().await;
        let locked = tx.lock_delivery(queue.seller, None, queue.subscription, queued[0]);
        let locked = locked.await.unwrap().unwrap();
        if !locked.is_under_way {
            let has_ended = locked.delivery.state.has_ended();
            for (judged, expected) in [(!has_ended, false), (has_ended, true)] {
                let now = tx.now();
                let requeue = tx.requeue_delivery(queue.seller, queue.subscription, queued[0], judged, now);
                assert_eq!(requeue.await.unwrap(), expected);
            }
        }
        let expected = locked.delivery.again(tx.now());
        tx.commit().await.unwrap();
        if !locked.is_under_way {
            assert_eq!(first(&fixture, application, queue).await, expected);
        }
        !locked.is_under_way
    };
    assert!(again().await, "it waits");
    let claimed = fixture.claim_one().await;
    assert!(!again().await, "under way");
    let end = ended(claimed.lease, &claimed.deliveries[0], 204);
    fixture.record(std::slice::from_ref(&end), &[]).await;
    assert!(again().await, "the queue is still leased");
    // It names what was running before the end was recorded.
    let late = fixture.refill(more(claimed.lease, &queued, 4, 4)).await;
    assert_eq!(ids_of(&late.unwrap()), []);
    fixture.record(std::slice::from_ref(&end), &[]).await;
    let new = first(&fixture, application, queue).await;
    assert_eq!(new.state, DeliveryState::Queued, "of the former attempt");
    let refill = fixture.refill(more(claimed.lease, &queued[1..], 4, 4)).await;
    assert_eq!(ids_of(&refill.unwrap()), queued[..1]);
    assert!(!again().await, "under way");
    clock.advance(TimeDelta::seconds(31)).await;
    assert!(again().await, "its worker is lost");
    let claimed = fixture.claim_one().await;
    fixture.end_all(&claimed, 500).await;
    let waits = first(&fixture, application, queue).await;
    let in_a_minute = fixture.now().await + TimeDelta::minutes(1);
    assert_eq!(waits.state.next_retry_at(), Some(in_a_minute));
    assert!(again().await);
    assert_eq!(fixture.row_of(sister).await, before);
    let waits = first(&fixture, application, queue).await;
    assert_eq!(waits.state.next_retry_at(), Some(fixture.now().await));
    assert_eq!(ids(&fixture.claim_one().await), queued[..1], "its queue is woken");
}

/// The first delivery of a queue, as its application sees it.
async fn first(fixture: &Fixture, application: ClientId, queue: QueueKey) -> Delivery {
    fixture.history(application, queue).await.unwrap().pop().unwrap()
}

#[tokio::test]
async fn a_third_loss_counts_as_a_failure_until_it_is_recorded() {
    let (fixture, clock) = Fixture::frozen().await;
    let queue = fixture.queue().await;
    fixture.enqueue(queue, 1).await;
    for lost in 0..=LOSSES_FORGIVEN + 1 {
        let claimed = fixture.claim_one().await;
        let due = &claimed.deliveries[0];
        let progress = due.progress;
        assert_eq!((progress.lost, progress.has_failed_by_loss()), (lost, lost > 2));
        if lost > LOSSES_FORGIVEN {
            fixture
                .record(&[ended(claimed.lease, due, 500)], &[release(claimed.lease)])
                .await;
        } else {
            clock.advance(TimeDelta::seconds(31)).await;
        }
    }
    clock.advance(TimeDelta::minutes(2)).await;
    // Its attempt was recorded, it is due again, and then it is lost once more.
    for failed in [false, true] {
        assert_eq!(
            fixture.claim_one().await.deliveries[0]
                .progress
                .has_failed_by_loss(),
            failed
        );
        clock.advance(TimeDelta::seconds(31)).await;
    }
}

#[tokio::test]
async fn a_loss_beyond_the_capacity_is_reported_by_the_next_claim() {
    let (fixture, clock) = Fixture::frozen().await;
    let queue = fixture.queue().await;
    let queued = fixture.enqueue(queue, 4).await;
    for _ in 0..3 {
        assert_eq!(given([&fixture.claim_one().await]), 4);
        clock.advance(TimeDelta::seconds(31)).await;
    }
    let claimed = fixture
        .claim_within(Capacity {
            per_queue: 3,
            ..CAPACITY
        })
        .await
        .remove(0);
    assert_eq!(ids(&claimed), queued[..3]);
    assert!(claimed.deliveries.iter().all(|due| due.progress.lost == 3));
    fixture.end_all(&claimed, 500).await;
    assert_eq!(fixture.claim_one().await.deliveries[0].progress.lost, 3);
}

#[tokio::test]
async fn refilled_deliveries_can_be_lost_too() {
    let (fixture, clock) = Fixture::frozen().await;
    let queue = fixture.queue().await;
    let queued = fixture.enqueue(queue, 17).await;
    let claimed = fixture.claim_one().await;
    fixture
        .record(&[ended(claimed.lease, &claimed.deliveries[0], 200)], &[])
        .await;
    let refill = fixture.refill(more(claimed.lease, &queued[1..16], 1, 1)).await;
    assert_eq!(ids_of(&refill.unwrap()), queued[16..]);
    clock.advance(TimeDelta::seconds(31)).await;
    let claimed = fixture.claim_one().await;
    assert_eq!(ids(&claimed), queued[1..]);
    assert!(claimed.deliveries.iter().all(|due| due.progress.lost == 1));
}
