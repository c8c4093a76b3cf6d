//! A worker with an in-memory store and in-memory receivers, under a paused clock.

mod in_flight;
mod lost_queues;
mod receivers;
mod store;

use std::future::pending;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::{Instant, sleep};
use webhooks::{AttemptFailure, AttemptRecord, DeliveryId, Outcome};

use super::*;
use crate::test_support::chance;
use receivers::{Receivers, Response};
use store::Store;

const SLOTS: Slots = Slots {
    attempts: 64,
    per_queue: 8,
    per_failing_queue: 2,
    per_owner: 16,
};
const BEAT: Duration = Duration::from_millis(100);
const FAST: Duration = Duration::from_millis(5);
const TIMEOUT: Duration = Duration::from_secs(10);
const OK: Response = Response::status(FAST, 200);
const FAILED: Response = Response::status(FAST, 500);
/// Takes almost the whole timeout.
const SLOW: Response = Response::status(Duration::from_millis(9_900), 200);
const TIMED_OUT: Response = Response::timeout(TIMEOUT);

struct NoObserver;

impl Observer for NoObserver {
    fn ended(&self, _: &AttemptRecord, _: Option<&Message>) {}
    fn claimed(&self, _: usize) {}
    fn succeeded(&self) {}
    fn failed(&self, _: StoreError) {}
}

#[derive(Default)]
struct World {
    store: Store,
    receivers: Receivers,
}

impl World {
    /// A queue with this many deliveries, and the response of its receiver.
    fn queue(&self, queue: u128, deliveries: usize, response: Response) {
        self.receivers.respond(queue, response);
        for _ in 0..deliveries {
            self.store.add(queue, 0);
        }
    }

    /// A delivery that has had this many attempts, with a response of its own.
    fn delivery(&self, queue: u128, attempt: u8, response: Response) -> DeliveryId {
        let id = self.store.add(queue, attempt);
        self.receivers.respond_to(id, response);
        id
    }

    /// Runs the worker until `stop` resolves.
    async fn run(&self, stop: impl Future<Output = ()> + Send) {
        self.run_with(SLOTS, stop).await;
    }

    async fn run_with(&self, slots: Slots, stop: impl Future<Output = ()> + Send) {
        let dispatch = Dispatch {
            queues: &self.store,
            sender: &self.receivers,
            randomness: &chance(),
            queued: &|| pending().boxed(),
            beat: &|| sleep(BEAT).boxed(),
            observer: &NoObserver,
            schedule: RetrySchedule::default(),
            slots,
        };
        deliver_webhooks(dispatch, stop).await;
    }

    /// The first attempt of a delivery that is queued now ends within about one beat.
    async fn is_attempted_soon(&self, queue: u128) {
        let (queued, before) = (Instant::now(), self.store.ended(queue));
        self.store.add(queue, 0);
        self.store.until_ended(queue, before + 1).await;
        let delay = queued.elapsed();
        assert!(delay < Duration::from_millis(250), "{delay:?}");
    }

    /// These queues, numbered from 1, do not delay deliveries of queue 0, which come one after another for 40
    /// seconds.
    async fn leaves_slots_to_another(self, own_owner: u128) -> Self {
        self.store.set_owner(0, own_owner);
        let feed = async {
            sleep(Duration::from_millis(500)).await;
            for _ in 0..100 {
                self.is_attempted_soon(0).await;
                sleep(Duration::from_millis(397)).await;
            }
        };
        self.run(feed).await;
        self
    }
}

/// This many queues with the deliveries and the response, each of the owner that belongs to its number.
fn queues(
    (count, deliveries): (u128, usize),
    response: &Response,
    failing: bool,
    owner: fn(u128) -> u128,
) -> World {
    let world = World::default();
    for queue in 1..=count {
        world.queue(queue, deliveries, response.clone());
        world.store.set_owner(queue, owner(queue));
        if failing {
            world.store.set_failing(queue);
        }
    }
    world.receivers.respond(0, OK);
    world
}

#[tokio::test(start_paused = true)]
async fn failing_queues_leave_slots_to_another() {
    // Each of an owner of its own: half of the slots, and one for queue 0.
    let failing = queues((40, 100), &TIMED_OUT, true, |queue| queue);
    let failing = failing.leaves_slots_to_another(99).await.receivers;
    assert!(failing.most_at_once_of(7) <= 2);
    assert!(failing.most_at_once() <= 33);

    // One owner's, beside another queue of the same.
    let own = queues((40, 100), &TIMED_OUT, true, |_| 1);
    assert!(own.leaves_slots_to_another(1).await.receivers.most_at_once() <= 9);

    // Those of eight owners, beside one that fails fast.
    let many = queues((160, 20), &TIMED_OUT, true, |queue| 1 + queue % 8);
    many.receivers.respond(0, FAILED);
    many.leaves_slots_to_another(99).await;
}

#[tokio::test(start_paused = true)]
async fn queues_not_known_to_fail_leave_slots_to_another() {
    // One owner's receivers that do not respond, and are not known to fail yet.
    let silent = queues((100, 10), &TIMED_OUT, false, |_| 1);
    let silent = silent.leaves_slots_to_another(99).await.receivers;
    assert!(silent.most_at_once() <= 17);

    // Five owners whose receivers are slow but healthy.
    let slow = queues((60, 100), &SLOW, false, |queue| 1 + queue % 5);
    assert!(slow.leaves_slots_to_another(99).await.receivers.most_at_once() >= 32);

    // Hosts that accept one attempt at a time.
    let limited = queues((20, 50), &TIMED_OUT, false, |queue| queue);
    limited.receivers.limit_per_host(1);
    limited.leaves_slots_to_another(99).await;

    // Queues that turn out to fail when their first attempts time out.
    let turned = queues((10, 100), &TIMED_OUT, false, |queue| queue);
    let after = async {
        sleep(TIMEOUT * 2).await;
        turned.is_attempted_soon(0).await;
    };
    turned.run(after).await;
}

#[tokio::test(start_paused = true)]
async fn owners_that_fill_the_slots_one_after_the_other_leave_one_to_the_next() {
    let world = World::default();
    let add_slow = |owners: std::ops::Range<u128>, queues: u128| {
        for owner in owners {
            for queue in (0..queues).map(|queue| owner * 100 + queue) {
                world.queue(queue, 100, SLOW);
                world.store.set_owner(queue, owner);
            }
        }
    };
    add_slow(1..5, 4);
    world.store.set_owner(0, 99);
    world.receivers.respond(0, OK);
    let feed = async {
        sleep(Duration::from_millis(500)).await;
        add_slow(5..12, 25);
        sleep(Duration::from_millis(500)).await;
        world.is_attempted_soon(0).await;
    };
    world.run(feed).await;
}

#[tokio::test(start_paused = true)]
async fn many_owners_whose_receivers_never_respond_leave_slots_to_another() {
    // From the first attempts on, if there are slots for all.
    let few = queues((1_200, 1), &TIMED_OUT, false, |queue| 1 + queue / 100);
    few.leaves_slots_to_another(99).await;

    let silent = queues((4_000, 1), &TIMED_OUT, false, |queue| 1 + queue / 100);
    silent.store.set_owner(0, 99);
    let after = async {
        sleep(TIMEOUT * 2).await;
        for _ in 0..60 {
            silent.is_attempted_soon(0).await;
            sleep(Duration::from_millis(997)).await;
        }
    };
    silent.run(after).await;
}

/// Those of a hundred owners, all due: one that becomes due later does not wait for each of them.
#[tokio::test(start_paused = true)]
async fn failing_queues_take_turns_by_their_owners() {
    let slow_failure = Response::status(Duration::from_secs(9), 500);
    let world = queues((1_000, 50), &slow_failure, true, |queue| 1 + queue / 10);
    world.store.set_owner(0, 0);
    world.store.set_failing(0);
    world.receivers.respond(0, FAILED);
    let fed = async {
        for ended in 1..=4 {
            let begun = Instant::now();
            world.store.add(0, 0);
            world.store.until_ended(0, ended).await;
            assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
        }
    };
    world.run(fed).await;
}

/// Each has one queue, so that a single claim finds them all.
#[tokio::test(start_paused = true)]
async fn owners_of_one_silent_queue_each_leave_slots_to_another() {
    let never = Response::timeout(TIMEOUT);
    let world = queues((64, 30), &never, false, |queue| queue);
    world.store.set_owner(0, 99);
    let feed = async {
        sleep(Duration::from_millis(300)).await;
        for _ in 0..20 {
            world.is_attempted_soon(0).await;
            sleep(Duration::from_millis(397)).await;
        }
    };
    world.run_with(Slots::of(512), feed).await;
}

#[tokio::test(start_paused = true)]
async fn everything_is_sent_once_and_recorded_in_few_statements() {
    let world = World::default();
    for queue in 0..10 {
        world.queue(queue, 100, OK);
    }
    world.run(world.store.finished()).await;
    let World { store, receivers } = &world;
    assert_eq!((receivers.sent(), store.delivered()), (1_000, 1_000));
    assert!(store.calls() < 100, "{} calls", store.calls());
    assert!(receivers.most_at_once() <= usize::from(SLOTS.attempts));
    assert!(receivers.most_at_once_of(3) <= usize::from(SLOTS.per_queue));
    assert_eq!(store.leases(), 0);
}

#[tokio::test(start_paused = true)]
async fn slow_responses_do_not_delay_the_rest_of_their_queues() {
    let world = World::default();
    world.delivery(1, 0, SLOW);
    world.queue(1, 199, OK);
    let rest = async {
        let begun = Instant::now();
        world.store.until_ended(1, 199).await;
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    };
    world.run(rest).await;

    let world = World::default();
    for queue in 1..=12 {
        world.store.set_owner(queue, 1);
        world.delivery(queue, 0, SLOW);
        world.receivers.respond(queue, OK);
    }
    let later = async {
        sleep(Duration::from_secs(1)).await;
        let queued = Instant::now();
        for queue in 1..=12 {
            world.queue(queue, 1, OK);
        }
        for queue in 1..=12 {
            world.store.until_ended(queue, 1).await;
        }
        assert!(queued.elapsed() < Duration::from_secs(1));
    };
    world.run_with(Slots::of(512), later).await;
}

#[tokio::test(start_paused = true)]
async fn a_stopping_worker_finishes_running_attempts() {
    let world = World::default();
    world.queue(1, 100, Response::status(Duration::from_secs(5), 200));
    world.run(sleep(Duration::from_secs(1))).await;
    // As many as one queue may have under way.
    assert_eq!((world.receivers.sent(), world.store.delivered()), (8, 8));
    assert_eq!(world.store.leases(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_store_loses_nothing_and_bounds_the_attempts() {
    let world = World::default();
    world.queue(1, 500, OK);
    let outage = async {
        sleep(Duration::from_millis(20)).await;
        world.store.set_unavailable(true);
        sleep(Duration::from_secs(3)).await;
        let sent = world.receivers.sent();
        assert!(sent - world.store.delivered() <= usize::from(SLOTS.attempts));
        sleep(Duration::from_secs(3)).await;
        assert_eq!(world.receivers.sent(), sent);
        world.store.set_unavailable(false);
        world.store.finished().await;
    };
    world.run(outage).await;
    assert_eq!((world.receivers.sent(), world.store.delivered()), (500, 500));

    // The worker also stops, some seconds later, if the store stays unavailable.
    let world = World::default();
    world.queue(1, 4, OK);
    let outage = async {
        sleep(Duration::from_millis(4)).await;
        world.store.set_unavailable(true);
        sleep(Duration::from_secs(1)).await;
    };
    let begun = Instant::now();
    world.run(outage).await;
    let stopped = begun.elapsed().as_secs();
    assert!((6..8).contains(&stopped), "{stopped} s");
    assert_eq!((world.receivers.sent(), world.store.delivered()), (4, 0));
}

#[tokio::test(start_paused = true)]
async fn a_single_slot_serves_failing_queues_too() {
    let world = World::default();
    world.queue(1, 3, OK);
    world.store.set_failing(1);
    world.run_with(Slots::of(1), world.store.finished()).await;
    assert_eq!((world.store.delivered(), world.receivers.most_at_once()), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn leased_queues_get_no_more_than_their_owners_share() {
    let response = Response::status(Duration::from_millis(40), 200);
    let world = queues((6, 200), &response, false, |_| 1);
    world.run(world.store.finished()).await;
    assert_eq!(world.store.delivered(), 1_200);
    assert!(world.receivers.most_at_once() <= usize::from(SLOTS.per_owner));

    // Nor do those that are claimed while others are refilled.
    let world = World::default();
    for queue in 1..=100 {
        world.store.set_owner(queue, 1);
        world.delivery(queue, 0, Response::status(Duration::from_millis(500), 200));
        world.queue(queue, 23, response.clone());
    }
    let other = async {
        for _ in 0..100 {
            world.store.add(101, 0);
            sleep(Duration::from_millis(237)).await;
        }
    };
    world.receivers.respond(101, OK);
    world.run(other).await;
    let most = world.receivers.most_at_once();
    assert!((10..=1 + usize::from(SLOTS.per_owner)).contains(&most), "{most}");
}

#[tokio::test(start_paused = true)]
async fn postponed_deliveries_count_no_attempt_and_come_again_soon() {
    let world = World::default();
    world.queue(1, 8, TIMED_OUT);
    world.store.add(1, 3);
    world.receivers.limit_per_host(2);
    let World { store, receivers } = &world;
    let later = async {
        sleep(TIMEOUT / 2).await;
        assert_eq!((receivers.sent(), store.in_hand(1)), (2, 2));
        // They are not retried at every beat.
        assert_eq!(store.pending(1).len(), 9);
        assert!(receivers.postponed() < 10, "{}", receivers.postponed());
        receivers.respond(1, OK);
        let begun = Instant::now();
        store.until_ended(1, 9).await;
        assert!(begun.elapsed() < TIMEOUT, "{:?}", begun.elapsed());
    };
    world.run(later).await;
    let failures = store.failures();
    assert_eq!((store.delivered(), failures.len()), (7, 2));
    let timed_out = Outcome::Failed(AttemptFailure::TimedOut);
    assert!(failures.iter().all(|(outcome, _)| *outcome == timed_out));
}

#[tokio::test(start_paused = true)]
async fn many_queues_of_a_full_host_leave_tries_to_others_of_their_owner() {
    let world = queues((1_000, 1), &OK, false, |_| 1);
    for queue in 1..=1_000 {
        world.store.set_receiver(queue, 1);
    }
    world.receivers.respond(1, SLOW);
    world.receivers.limit_per_host(4);
    world.store.set_owner(0, 1);
    let feed = async {
        // Once each has been tried.
        sleep(Duration::from_secs(15)).await;
        let begun = Instant::now();
        for n in 1..=30 {
            world.store.add(0, 0);
            world.store.until_ended(0, n).await;
            sleep(Duration::from_millis(900)).await;
        }
        assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
    };
    world.run(feed).await;
}

#[tokio::test(start_paused = true)]
async fn an_owners_many_due_queues_do_not_delay_another() {
    // Their attempts end one after another, so that each claim has some room for further ones.
    let world = World::default();
    for queue in 1..=2_000 {
        world.store.set_owner(queue, 1);
        for n in 0..5 {
            let response = Response::status(Duration::from_millis(2 + n % 3), 200);
            world.delivery(queue, 0, response);
        }
        world.receivers.respond(queue, OK);
    }
    world.receivers.respond(0, OK);
    let World { store, .. } = &world.leaves_slots_to_another(99).await;
    assert_eq!(store.delivered(), 10_100);
}

#[tokio::test(start_paused = true)]
async fn pauses_grow_while_a_host_is_full_and_are_short_again_after() {
    let world = World::default();
    let World { store, receivers } = &world;
    world.queue(1, 1, OK);
    receivers.limit_per_host(0);
    let later = async {
        sleep(Duration::from_secs(20)).await;
        let postponed = receivers.postponed();
        assert!((8..=14).contains(&postponed), "{postponed}");
        receivers.limit_per_host(1);
        store.until_ended(1, 1).await;
        receivers.limit_per_host(0);
        world.queue(1, 1, OK);
        sleep(Duration::from_millis(150)).await;
        receivers.limit_per_host(1);
        let begun = Instant::now();
        store.until_ended(1, 2).await;
        assert!(begun.elapsed() < Duration::from_millis(400));
    };
    world.run(later).await;
}

#[tokio::test(start_paused = true)]
async fn pauses_are_short_once_others_have_delivered_what_waited() {
    let world = queues((1_000, 1), &OK, false, |_| 1);
    let World { store, receivers } = &world;
    store.set_owner(0, 1);
    for queue in 0..=1_000 {
        store.set_receiver(queue, 1);
    }
    receivers.limit_per_host(0);
    let later = async {
        sleep(Duration::from_secs(15)).await;
        store.deliver_elsewhere();
        sleep(Duration::from_secs(125)).await;
        store.add(0, 0);
        sleep(Duration::from_millis(150)).await;
        receivers.limit_per_host(1);
        let begun = Instant::now();
        store.until_ended(0, 1).await;
        assert!(begun.elapsed() < Duration::from_millis(400));
    };
    world.run(later).await;
}

#[tokio::test(start_paused = true)]
async fn suspended_queues_are_skipped_without_a_pause() {
    let world = World::default();
    world.store.suspend_before_others(10_000);
    world.receivers.respond(1, OK);
    world.run(world.is_attempted_soon(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_first_attempt_waits_neither_for_retries_nor_for_a_slow_response() {
    let slow_failure = Response::status(TIMEOUT, 500);
    for (failing, others) in [
        (true, vec![(1, slow_failure); 5]),
        (false, vec![(0, SLOW), (0, FAILED)]),
    ] {
        let world = World::default();
        for (attempt, response) in others {
            world.delivery(1, attempt, response);
        }
        if failing {
            world.store.set_failing(1);
        }
        world.receivers.respond(1, OK);
        let later = async {
            sleep(Duration::from_secs(1)).await;
            world.is_attempted_soon(1).await;
        };
        world.run(later).await;
    }
}

#[tokio::test(start_paused = true)]
async fn retries_of_a_failing_queue_get_their_turn_among_many_first_attempts() {
    let world = World::default();
    world.queue(1, 1_000, Response::status(Duration::from_millis(90), 500));
    world.store.set_failing(1);
    let later = async {
        sleep(Duration::from_millis(30)).await;
        world.store.add(1, 0);
        sleep(Duration::from_millis(270)).await;
        world.store.add(1, 4);
        sleep(Duration::from_secs(3)).await;
        let pending = world.store.pending(1);
        assert!(pending.iter().all(|attempt| *attempt == 0) && pending.len() > 100);
    };
    world.run(later).await;
}
