//! A worker with a fake store and fake receivers, under a paused clock.

mod receivers;
mod shares;
mod store;

use std::time::Duration;

use kernel::MockRandomness;
use tokio::time::{Instant, sleep};
use uuid::Uuid;
use webhooks::{Failure, Message, NextStep, Outcome};

use super::*;
use receivers::Receivers;
use store::Store;

const SLOTS: Slots = Slots {
    attempts: 64,
    per_queue: 8,
    per_failing_queue: 2,
    per_application: 16,
    failing_per_application: 8,
};
const FAST: Duration = Duration::from_millis(5);
const DEAD: Duration = Duration::from_secs(10);
/// Takes almost the whole timeout, then responds.
const SLOW: Duration = Duration::from_millis(9_900);

struct Every100Ms;

#[async_trait]
impl Pulse for Every100Ms {
    async fn beat(&self) {
        sleep(Duration::from_millis(100)).await;
    }
}

struct Deaf;

impl Observer for Deaf {
    fn ended(&self, _: &AttemptRecord) {}
    fn claimed(&self, _: usize) {}
    fn succeeded(&self) {}
    fn failed(&self, _: StoreError) {}
}

fn chance() -> MockRandomness {
    let mut chance = MockRandomness::new();
    let mut id = 0_u128;
    chance.expect_uuid().returning_st(move || {
        id += 1;
        Uuid::from_u128(id)
    });
    chance.expect_secret().returning(|| [0; 32]);
    chance
}

/// Runs the worker until `stop` resolves.
async fn work(store: &Store, receivers: &Receivers, stop: impl Future<Output = ()> + Send) {
    work_with(SLOTS, store, receivers, stop).await;
}

async fn work_with(
    slots: Slots,
    store: &Store,
    receivers: &Receivers,
    stop: impl Future<Output = ()> + Send,
) {
    let dispatch = Dispatch {
        queues: store,
        sender: receivers,
        randomness: &chance(),
        pulse: &Every100Ms,
        observer: &Deaf,
        schedule: RetrySchedule::default(),
        slots,
    };
    deliver_webhooks(dispatch, stop).await;
}

/// A delivery queued now, the queue's `nth` success, arrives within about one beat.
async fn arrives_soon(store: &Store, queue: u128, nth: usize) {
    let queued = Instant::now();
    store.queue(queue, 1);
    store.delivered_of(queue, nth).await;
    let delay = queued.elapsed();
    assert!(delay < Duration::from_millis(250), "{delay:?}");
}

/// Queues one delivery after another, after the other queues have started.
async fn a_hundred_arrive_soon(store: &Store, queue: u128) {
    sleep(Duration::from_millis(500)).await;
    for n in 1..=100 {
        arrives_soon(store, queue, n).await;
        sleep(Duration::from_millis(397)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn everything_is_sent_once_and_recorded_in_few_statements() {
    let (store, receivers) = (Store::default(), Receivers::default());
    for queue in 0..10 {
        store.queue(queue, 100);
        receivers.answer(queue, FAST, 200);
    }
    work(&store, &receivers, store.finished()).await;
    assert_eq!(receivers.sent(), 1_000);
    assert_eq!(store.delivered(), 1_000);
    assert!(store.calls() < 100, "{} calls", store.calls());
    assert!(receivers.most_at_once() <= usize::from(SLOTS.attempts));
    assert!(receivers.most_at_once_of(3) <= usize::from(SLOTS.per_queue));
    assert_eq!(store.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn one_slow_answer_does_not_hold_up_the_rest_of_its_queue() {
    let (store, receivers) = (Store::default(), Receivers::default());
    let slow = store.queue(1, 200);
    receivers.answer(1, FAST, 204);
    receivers.answer_one(slow, Duration::from_secs(9), 200);
    let begun = Instant::now();
    work(&store, &receivers, store.delivered_of(1, 199)).await;
    let quick = receivers.last_end_of(1) - begun;
    assert!(quick < Duration::from_secs(10), "{quick:?}");
    assert!(store.time_of(199) - begun < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_dead_receiver_does_not_delay_another_one() {
    let (store, receivers) = (Store::default(), Receivers::default());
    for dead in 1..=40 {
        store.queue(dead, 1_000);
        store.fails(dead);
        receivers.never_answer(dead, DEAD);
    }
    receivers.answer(0, FAST, 200);
    let feed = async {
        let mut worst = Duration::ZERO;
        for n in 1..=100 {
            sleep(Duration::from_millis(97)).await;
            let queued = Instant::now();
            store.queue(0, 1);
            store.delivered_of(0, n).await;
            worst = worst.max(queued.elapsed());
        }
        assert!(worst < Duration::from_millis(250), "{worst:?}");
    };
    work(&store, &receivers, feed).await;
    assert!(receivers.most_at_once_of(7) <= usize::from(SLOTS.per_failing_queue));
    assert!(receivers.most_at_once() <= usize::from(SLOTS.attempts / 2) + 1);
}

#[tokio::test(start_paused = true)]
async fn queues_that_turn_dead_all_at_once_leave_room_for_others() {
    let (store, receivers) = (Store::default(), Receivers::default());
    for dead in 1..=10 {
        store.queue(dead, 100);
        receivers.never_answer(dead, DEAD);
    }
    receivers.answer(0, FAST, 200);
    let feed = async {
        // After the first time-outs the queues are known to fail.
        sleep(DEAD * 2).await;
        arrives_soon(&store, 0, 1).await;
    };
    work(&store, &receivers, feed).await;
}

#[tokio::test(start_paused = true)]
async fn asked_to_stop_it_ends_what_it_has_begun_and_begins_nothing_more() {
    let (store, receivers) = (Store::default(), Receivers::default());
    store.queue(1, 100);
    receivers.answer(1, Duration::from_secs(5), 200);
    work(&store, &receivers, sleep(Duration::from_secs(1))).await;
    assert_eq!(receivers.sent(), usize::from(SLOTS.per_queue));
    assert_eq!(store.delivered(), usize::from(SLOTS.per_queue));
    assert_eq!(store.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_nothing_piles_up_and_nothing_is_lost() {
    let (store, receivers) = (Store::default(), Receivers::default());
    store.queue(1, 500);
    receivers.answer(1, FAST, 200);
    let outage = async {
        sleep(Duration::from_millis(20)).await;
        store.goes_away(true);
        sleep(Duration::from_secs(3)).await;
        let sent = receivers.sent();
        assert!(sent - store.delivered() <= usize::from(SLOTS.attempts));
        sleep(Duration::from_secs(3)).await;
        assert_eq!(receivers.sent(), sent);
        store.goes_away(false);
        store.finished().await;
    };
    work(&store, &receivers, outage).await;
    assert_eq!((receivers.sent(), store.delivered()), (500, 500));
}

#[tokio::test(start_paused = true)]
async fn it_stops_though_the_store_stays_away() {
    let (store, receivers) = (Store::default(), Receivers::default());
    store.queue(1, 5);
    receivers.answer(1, FAST, 200);
    let outage = async {
        sleep(Duration::from_millis(1)).await;
        store.goes_away(true);
        sleep(Duration::from_secs(1)).await;
    };
    let begun = Instant::now();
    work(&store, &receivers, outage).await;
    assert!(begun.elapsed() < Duration::from_secs(2));
    assert_eq!(store.delivered(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_was_lost_with_its_worker_too_often_fails_unsent() {
    let (store, receivers) = (Store::default(), Receivers::default());
    store.queue_lost(1, 2);
    store.queue_lost(2, 3);
    for queue in [1, 2] {
        receivers.answer(queue, FAST, 200);
    }
    work(&store, &receivers, sleep(Duration::from_secs(1))).await;
    assert_eq!((receivers.sent(), store.delivered()), (1, 1));
    let failed = store.failures();
    let lost = Outcome::Failed(Failure::WorkerLost);
    let retry = NextStep::Retry(chrono::TimeDelta::minutes(1));
    assert_eq!(failed, [(lost, retry)]);
}

#[tokio::test(start_paused = true)]
async fn failures_come_again_as_the_schedule_says() {
    let (store, receivers) = (Store::default(), Receivers::default());
    for attempts in 0..=5 {
        store.queue_after(attempts.into(), attempts);
        receivers.answer(attempts.into(), FAST, 301);
    }
    work(&store, &receivers, sleep(Duration::from_secs(1))).await;
    let minutes = store.failures().into_iter().map(|(outcome, next)| {
        assert_eq!(outcome, Outcome::Answered(301));
        match next {
            NextStep::Retry(delay) => delay.num_minutes(),
            NextStep::Delivered | NextStep::Exhausted => 0,
        }
    });
    let mut minutes: Vec<_> = minutes.collect();
    minutes.sort_unstable();
    assert_eq!(minutes, [0, 1, 5, 30, 120, 720]);
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_is_signed() {
    let (store, receivers) = (Store::default(), Receivers::default());
    store.queue(1, 1);
    receivers.answer(1, FAST, 200);
    work(&store, &receivers, store.finished()).await;
    let Message { body, signature, .. } = receivers.last_message();
    assert_eq!(signature, webhooks::signature(&store::secret(), &body));
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_was_taken_over_is_left_alone() {
    let (store, receivers) = (Store::default(), Receivers::default());
    let slow = store.queue(1, 50);
    receivers.answer(1, FAST, 200);
    receivers.answer_one(slow, Duration::from_secs(5), 200);
    let taking_over = async {
        store.delivered_of(1, 1).await;
        store.takes_over(1);
        let sent = receivers.sent();
        sleep(Duration::from_secs(10)).await;
        // Deliveries already given out are completed; nothing else is sent.
        assert!(receivers.sent() <= sent + usize::from(SLOTS.per_queue));
        store.queue(2, 1);
        receivers.answer(2, FAST, 200);
        store.delivered_of(2, 1).await;
    };
    work(&store, &receivers, taking_over).await;
    assert!(store.delivered() < 50);
}

#[tokio::test(start_paused = true)]
async fn a_single_slot_serves_queues_that_fail_too() {
    let (store, receivers) = (Store::default(), Receivers::default());
    store.queue(1, 3);
    store.fails(1);
    receivers.answer(1, FAST, 200);
    let slots = Slots {
        attempts: 1,
        per_queue: 1,
        per_failing_queue: 1,
        per_application: 1,
        failing_per_application: 1,
    };
    work_with(slots, &store, &receivers, store.finished()).await;
    assert_eq!((store.delivered(), receivers.most_at_once()), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn one_applications_silent_queues_take_no_more_than_its_part() {
    let (store, receivers) = (Store::default(), Receivers::default());
    // A hundred sellers have connected it, and none of its receivers has responded yet.
    for silent in 1..=100 {
        store.queue(silent, 10);
        store.belongs_to(silent, 1);
        receivers.never_answer(silent, DEAD);
    }
    receivers.answer(0, FAST, 200);
    work(&store, &receivers, a_hundred_arrive_soon(&store, 0)).await;
    assert!(receivers.most_at_once() <= usize::from(SLOTS.per_application) + 1);
}

#[tokio::test(start_paused = true)]
async fn a_held_queue_gets_no_more_than_its_applications_part() {
    let (store, receivers) = (Store::default(), Receivers::default());
    for queue in 1..=6 {
        store.queue(queue, 200);
        store.belongs_to(queue, 1);
        receivers.answer(queue, Duration::from_millis(40), 200);
    }
    work(&store, &receivers, store.finished()).await;
    assert_eq!(store.delivered(), 1_200);
    assert!(receivers.most_at_once() <= usize::from(SLOTS.per_application));
}

#[tokio::test(start_paused = true)]
async fn what_finds_no_place_at_its_host_is_not_attempted_and_comes_again_soon() {
    let (store, receivers) = (Store::default(), Receivers::default());
    store.queue(1, 8);
    store.queue_after(1, 3);
    receivers.have_places(2);
    receivers.never_answer(1, DEAD);
    let looking = async {
        sleep(DEAD / 2).await;
        assert_eq!(receivers.sent(), 2);
        // Postponed deliveries count no attempt, and are not retried at every beat.
        assert_eq!(store.waiting_in(1).len(), 9);
        assert!(receivers.postponed() < 10, "{}", receivers.postponed());
        receivers.answer(1, FAST, 200);
        let last = store.delivered_of(1, 7);
        let begun = Instant::now();
        last.await;
        assert!(begun.elapsed() < DEAD, "{:?}", begun.elapsed());
    };
    work(&store, &receivers, looking).await;
    assert_eq!((store.delivered(), store.failures().len()), (7, 2));
    assert!(
        store
            .failures()
            .iter()
            .all(|(outcome, _)| *outcome == Outcome::Failed(Failure::TimedOut))
    );
}

#[tokio::test(start_paused = true)]
async fn a_host_without_a_place_does_not_keep_slots_from_others() {
    let (store, receivers) = (Store::default(), Receivers::default());
    receivers.have_places(1);
    for crowded in 1..=20 {
        store.queue(crowded, 50);
        receivers.never_answer(crowded, DEAD);
    }
    receivers.answer(0, FAST, 200);
    let feed = async {
        for n in 1..=20 {
            arrives_soon(&store, 0, n).await;
            sleep(Duration::from_millis(97)).await;
        }
    };
    work(&store, &receivers, feed).await;
}
