//! Claims of queues: who gets a queue, which deliveries, in which order, and how many.

use std::collections::BTreeMap;
use std::time::Duration;

use adapter_postgres::ANSWER_TIMEOUT;
use chrono::TimeDelta;
use futures_util::future::join_all;
use tokio::time::sleep;
use tokio_postgres::Client;
use webhooks::{Capacity, DeliveryId, Load};

use crate::support::{
    CAPACITY, Fixture, each_once, ended, free, given, id, ids, ids_of, instant, more, release, strangers,
    take_all,
};

fn attempts(due: &[webhooks::Due]) -> Vec<u8> {
    due.iter().map(|due| due.progress.attempt).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_claims_lease_each_queue_and_delivery_once() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    for _ in 0..5 {
        let application = fixture.client_of(seller).await;
        for _ in 0..10 {
            let queue = fixture.subscribe(seller, application).await;
            fixture.enqueue(queue, 3).await;
        }
    }
    let capacity = Capacity {
        all: free(12),
        ..CAPACITY
    };
    let worker = async |_| {
        take_all(async || {
            let claimed = fixture.claim_within(capacity.clone()).await;
            assert!(given(&claimed) <= 12, "{claimed:?}");
            claimed.iter().flat_map(ids).map(DeliveryId::uuid).collect()
        })
        .await
    };
    each_once(&join_all((0..12).map(worker)).await, 150);
    assert_eq!(fixture.leased().await, 50);
}

/// Until it lets go of its lock, statements wait for their instant.
async fn closed_gate(fixture: &Fixture) -> Client {
    let gate = fixture.test_database.connect().await;
    gate.batch_execute("select pg_advisory_lock(1)").await.unwrap();
    let waiting = "create or replace function api_now() returns timestamptz language sql volatile as \
        'select clock_timestamp() from (select pg_advisory_xact_lock_shared(1)) waited'";
    fixture.tamper(waiting).await;
    gate
}

/// As beside an old snapshot that has left millions of dead entries.
#[tokio::test]
async fn the_first_search_of_a_process_may_take_longer_than_others() {
    let fixture = Fixture::new().await;
    let queue = fixture.queue().await;
    fixture.enqueue(queue, 1).await;
    let gate = closed_gate(&fixture).await;
    let later = async {
        sleep(ANSWER_TIMEOUT + Duration::from_millis(100)).await;
        gate.batch_execute("select pg_advisory_unlock(1)").await.unwrap();
    };
    let (claimed, ()) = tokio::join!(fixture.claim_one(), later);
    assert_eq!(claimed.deliveries.len(), 1);
}

/// A claim whose snapshot is older than another worker's whole lease does not give out what that worker has
/// delivered.
#[tokio::test]
async fn what_was_delivered_since_the_claim_began_is_not_given_out() {
    let fixture = Fixture::new().await;
    let queue = fixture.queue().await;
    fixture.enqueue(queue, 2).await;
    // The statement's snapshot is older than its instant.
    let gate = closed_gate(&fixture).await;
    let other = async {
        fixture.wait_for_blocked_session().await;
        fixture
            .tamper(
                "update deliveries set due_at = null where id = (select min(id::text)::uuid from deliveries)",
            )
            .await;
        fixture
            .tamper("update subscriptions set wake_at = clock_timestamp()")
            .await;
        gate.batch_execute("select pg_advisory_unlock(1)").await.unwrap();
    };
    let (claimed, ()) = tokio::join!(fixture.claim_one(), other);
    assert_eq!(claimed.deliveries.len(), 1);
    let in_hand = "select sum(cardinality(in_hand))::bigint from subscriptions";
    assert_eq!(fixture.count(in_hand).await, 1);
}

#[tokio::test]
async fn first_attempts_come_first_with_a_share_for_retries() {
    let fixture = Fixture::new().await;
    let queue = fixture.queue().await;
    fixture.fill(queue, 20, 2).await;
    fixture.fill(queue, 20, 0).await;
    let expected = [0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0];
    assert_eq!(attempts(&fixture.claim_one().await.deliveries), expected);
    assert!(fixture.claim().await.is_empty(), "it is leased");

    // Repeated attempts get the capacity that first ones leave, and a single place belongs to a first one.
    let (one, two) = (fixture.queue().await, fixture.queue().await);
    fixture.fill(one, 20, 1).await;
    fixture.fill(one, 2, 0).await;
    assert_eq!(fixture.claim_one().await.deliveries.len(), 16);
    fixture.fill(two, 3, 1).await;
    fixture.fill(two, 3, 0).await;
    let single = fixture
        .claim_within(Capacity {
            per_queue: 1,
            ..CAPACITY
        })
        .await;
    assert_eq!(attempts(&single[0].deliveries), [0]);

    // Among first attempts the longest waiting comes first.
    let three = fixture.queue().await;
    let mut queued = Vec::new();
    for _ in 0..3 {
        queued.extend(fixture.enqueue(three, 1).await);
    }
    assert_eq!(ids(&fixture.claim_one().await), queued);
}

/// Of four of each kind the first was due before any may be, and the last is due later. Another queue has the same.
#[tokio::test]
async fn a_claim_counts_and_gives_out_what_is_due_in_its_own_queue() {
    let (fixture, _clock) = Fixture::frozen().await;
    let queue = fixture.queue().await;
    fixture.copies(1).await;
    fixture.fill(queue, 4, 0).await;
    fixture.fill(queue, 4, 1).await;
    fixture
        .tamper(
            "update deliveries set due_at = due_at + interval '2 hours' where due_at = (select max(due_at) from deliveries);
             insert into deliveries select (jsonb_populate_record(d, jsonb_build_object('subscription_id', s.id))).*
               from deliveries as d, subscriptions as s where s.id <> d.subscription_id",
        )
        .await;
    let begin = instant() - TimeDelta::hours(1);
    let bound = format!("none_due_before = '{}'", begin + TimeDelta::milliseconds(2));
    fixture.set_queue(queue, &bound).await;
    let claimed = fixture
        .claim_within(Capacity {
            per_queue: 4,
            ..CAPACITY
        })
        .await;
    assert!(claimed.len() == 1 && !claimed[0].more);
    let given = claimed[0].deliveries.iter();
    let given = given.map(|due| (due.progress.attempt, (due.due_at - begin).num_milliseconds()));
    assert_eq!(given.collect::<Vec<_>>(), [(0, 2), (1, 2), (0, 3), (1, 3)]);
}

#[tokio::test]
async fn an_owners_applications_stay_within_a_share_and_delay_no_other_at_the_same_seller() {
    for (applications, failing) in [(10, false), (10, true), (1, false), (1, true)] {
        let fixture = Fixture::new().await;
        let (owner, other) = (fixture.seller().await, fixture.queue().await);
        for n in 0..applications {
            let application = match n {
                0 => fixture.built_in(owner).await.client_id,
                _ => fixture.client_of(owner).await,
            };
            fixture.connect(other.seller, application).await;
            for _ in 0..10 / applications {
                let queue = fixture.subscribe(other.seller, application).await;
                fixture.fill(queue, 4, 0).await;
            }
        }
        fixture.fill(other, 4, 0).await;
        fixture
            .tamper(&format!("update subscriptions set failing = {failing}"))
            .await;
        let claim = async |under_way: u16| {
            let load = Load {
                attempts: under_way,
                failing: if failing { under_way } else { 0 },
                // Failing queues have half of it.
                ..Load::none(if failing { 20 } else { 10 })
            };
            let capacity = Capacity {
                all: free(8),
                under_way: BTreeMap::from([(owner, load)]),
                ..CAPACITY
            };
            let claimed = fixture.claim_within(capacity).await;
            let (ours, others): (Vec<_>, Vec<_>) =
                claimed.iter().partition(|queue| queue.lease.queue != other);
            (given(ours), given(others))
        };
        // As many of its queues as a claim looks at have waited longer than the other one.
        assert_eq!(
            claim(10).await,
            (0, if failing { 2 } else { 4 }),
            "{applications}"
        );
        assert_eq!(claim(3).await, (7, 0), "{applications}");
    }
}

#[tokio::test]
async fn a_claim_reports_whether_more_is_due_and_queues_take_turns() {
    let fixture = Fixture::new().await;
    let mut queues = Vec::new();
    for _ in 0..3 {
        let queue = fixture.queue().await;
        fixture.fill(queue, 3, 0).await;
        queues.push(queue);
    }
    let one = Capacity {
        all: free(1),
        per_queue: 1,
        ..CAPACITY
    };
    for n in 0..7 {
        let claimed = fixture.queues().claim(id(), one.clone()).await.unwrap();
        let first = claimed.queues[0].lease.queue;
        assert_eq!((first, claimed.healthy.more), (queues[n % 3], true));
        fixture.end_all(&claimed.queues[0], 200).await;
    }
    for queues in [2, 0] {
        let claimed = fixture.queues().claim(id(), CAPACITY).await.unwrap();
        assert_eq!((claimed.queues.len(), claimed.healthy.more), (queues, false));
    }

    // Of failing queues nothing is said without an attempt for them.
    fixture.fill(queues[0], 1, 0).await;
    fixture.tamper("update subscriptions set failing = true").await;
    for (attempts, expected) in [(0, None), (1, Some(true)), (1, Some(false))] {
        let capacity = Capacity {
            failing: free(attempts),
            ..CAPACITY
        };
        let claimed = fixture.queues().claim(id(), capacity).await.unwrap();
        assert_eq!(claimed.failing.map(|failing| failing.more), expected);
    }
}

#[tokio::test]
async fn a_refill_extends_the_lease_and_gives_out_nothing_twice() {
    let (fixture, clock) = Fixture::frozen().await;
    let queue = fixture.queue().await;
    let queued = fixture.enqueue(queue, 20).await;
    let claimed = fixture.claim_one().await;
    assert_eq!(ids(&claimed), queued[..16]);
    fixture
        .record(&[ended(claimed.lease, &claimed.deliveries[3], 200)], &[])
        .await;
    let running = [&queued[..3], &queued[4..16]].concat();
    clock.advance(TimeDelta::seconds(25)).await;
    let foreign = more(strangers(claimed.lease), &running, 2, 2);
    assert_eq!(fixture.refill(foreign).await, None);
    let refill = more(claimed.lease, &running, 2, 2);
    let refilled = fixture.refill(refill.clone()).await;
    assert_eq!(ids_of(&refilled.unwrap()), queued[16..18]);
    clock.advance(TimeDelta::seconds(25)).await;
    assert!(fixture.claim().await.is_empty(), "the lease was prolonged");
    clock.advance(TimeDelta::seconds(5)).await;
    assert_eq!(fixture.claim().await.len(), 1, "to 30 s, and no longer");
    let refilled = fixture.refill(refill).await;
    assert_eq!(refilled, None, "it belongs to another worker now");
}

#[tokio::test]
async fn several_queues_are_refilled_together_within_the_limit_of_retries() {
    let fixture = Fixture::new().await;
    let [one, two, idle] = fixture.several_queues().await;
    for queue in [one, two, idle] {
        fixture.enqueue(queue, 1).await;
    }
    let claimed = fixture.claim().await;
    let (first, second) = (fixture.enqueue(one, 1).await, fixture.enqueue(two, 2).await);
    let refills: Vec<_> = claimed
        .iter()
        .map(|queue| more(queue.lease, &ids(queue), 1, 1))
        .collect();
    let mut given = fixture.queues().refill(&refills).await.unwrap();
    given.sort_by_key(|queue| queue.deliveries.first().map(|due| due.id.uuid()));
    let refilled = given
        .iter()
        .map(|queue| (queue.lease.queue, ids_of(&queue.deliveries)));
    let expected = [(idle, vec![]), (one, first), (two, second[..1].to_vec())];
    assert_eq!(refilled.collect::<Vec<_>>(), expected);
    for queue in &claimed {
        fixture.record(&[], &[release(queue.lease)]).await;
    }
    fixture.tamper("delete from deliveries").await;

    fixture.fill(one, 20, 1).await;
    fixture.set_queue(one, "failing = true").await;
    let claimed = fixture.claim().await;
    let queue = claimed.iter().find(|queue| queue.lease.queue == one).unwrap();
    assert_eq!(queue.deliveries.len(), 1);
    fixture.fill(one, 2, 0).await;
    fixture
        .set_queue(one, "wake_at = api_now() + interval '30 seconds'")
        .await;
    let given = fixture
        .refill(more(queue.lease, &ids(queue), 2, 0))
        .await
        .unwrap();
    assert_eq!(attempts(&given), [0, 0]);
}
