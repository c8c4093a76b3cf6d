//! Slow, failing or paused queues do not delay the others.

use super::*;

#[tokio::test(start_paused = true)]
async fn an_applications_failing_queues_leave_room_to_its_others() {
    let (store, receivers) = (Store::default(), Receivers::default());
    for dead in 1..=40 {
        store.queue(dead, 100);
        store.fails(dead);
        store.belongs_to(dead, 1);
        receivers.never_answer(dead, DEAD);
    }
    store.belongs_to(0, 1);
    receivers.answer(0, FAST, 200);
    work(&store, &receivers, a_hundred_arrive_soon(&store, 0)).await;
    assert!(receivers.most_at_once() <= usize::from(SLOTS.failing_per_application) + 1);
}

#[tokio::test(start_paused = true)]
async fn queues_that_may_not_be_worked_on_are_passed_without_a_wait() {
    let (store, receivers) = (Store::default(), Receivers::default());
    store.holds_back(10_000);
    receivers.answer(1, FAST, 200);
    work(&store, &receivers, arrives_soon(&store, 1, 1)).await;
}

#[tokio::test(start_paused = true)]
async fn slow_answers_in_many_queues_hold_up_the_rest_of_none() {
    let (store, receivers) = (Store::default(), Receivers::default());
    for queue in 1..=12 {
        let slow = store.queue(queue, 1);
        store.belongs_to(queue, 1);
        receivers.answer(queue, FAST, 200);
        receivers.answer_one(slow, DEAD, 200);
    }
    let looking = async {
        sleep(Duration::from_secs(1)).await;
        let queued = Instant::now();
        for queue in 1..=12 {
            store.queue(queue, 1);
        }
        for queue in 1..=12 {
            store.delivered_of(queue, 1).await;
        }
        assert!(
            queued.elapsed() < Duration::from_secs(1),
            "{:?}",
            queued.elapsed()
        );
    };
    work(&store, &receivers, looking).await;
}

#[tokio::test(start_paused = true)]
async fn a_first_attempt_does_not_wait_behind_a_repeated_one_in_a_queue_that_fails() {
    let (store, receivers) = (Store::default(), Receivers::default());
    for _ in 0..5 {
        let silent = store.queue_after(1, 1);
        receivers.answer_one(silent, DEAD, 500);
    }
    store.fails(1);
    receivers.answer(1, FAST, 200);
    let looking = async {
        sleep(Duration::from_secs(1)).await;
        arrives_soon(&store, 1, 1).await;
    };
    work(&store, &receivers, looking).await;
}

#[tokio::test(start_paused = true)]
async fn a_quick_failure_beside_a_slow_answer_does_not_close_the_queue() {
    let (store, receivers) = (Store::default(), Receivers::default());
    let slow = store.queue(1, 1);
    receivers.answer_one(slow, DEAD, 200);
    let failing = store.queue(1, 1);
    receivers.answer_one(failing, FAST, 500);
    receivers.answer(1, FAST, 200);
    let looking = async {
        sleep(Duration::from_secs(1)).await;
        arrives_soon(&store, 1, 1).await;
    };
    work(&store, &receivers, looking).await;
}

#[tokio::test(start_paused = true)]
async fn first_attempts_without_end_do_not_keep_repeated_ones_from_a_queue_that_fails() {
    let (store, receivers) = (Store::default(), Receivers::default());
    store.queue(1, 1_000);
    store.fails(1);
    receivers.answer(1, Duration::from_millis(90), 500);
    let looking = async {
        sleep(Duration::from_millis(30)).await;
        store.queue(1, 1);
        sleep(Duration::from_millis(270)).await;
        store.queue_after(1, 4);
        sleep(Duration::from_secs(3)).await;
        assert!(store.waiting_in(1).iter().all(|attempt| *attempt == 0));
        assert!(store.waiting_in(1).len() > 100);
    };
    work(&store, &receivers, looking).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_postponed_is_not_lost_with_its_worker() {
    let (store, receivers) = (Store::default(), Receivers::default());
    store.queue(1, 8);
    receivers.have_places(2);
    receivers.never_answer(1, DEAD);
    let looking = async {
        sleep(DEAD / 2).await;
        assert_eq!((receivers.sent(), store.would_lose(1)), (2, 2));
    };
    work(&store, &receivers, looking).await;
}

#[tokio::test(start_paused = true)]
async fn the_rest_grows_while_a_host_stays_full_and_is_short_again_after() {
    let (store, receivers) = (Store::default(), Receivers::default());
    store.queue(1, 1);
    receivers.answer(1, FAST, 200);
    receivers.have_places(0);
    let looking = async {
        sleep(Duration::from_secs(20)).await;
        assert!(
            (8..=14).contains(&receivers.postponed()),
            "{}",
            receivers.postponed()
        );
        receivers.have_places(1);
        store.delivered_of(1, 1).await;
        receivers.have_places(0);
        store.queue(1, 1);
        sleep(Duration::from_millis(150)).await;
        receivers.have_places(1);
        let begun = Instant::now();
        store.delivered_of(1, 2).await;
        assert!(
            begun.elapsed() < Duration::from_millis(400),
            "{:?}",
            begun.elapsed()
        );
    };
    work(&store, &receivers, looking).await;
}

#[tokio::test(start_paused = true)]
async fn applications_whose_receivers_are_slow_leave_slots_to_another_one() {
    let (store, receivers) = (Store::default(), Receivers::default());
    // Slow but healthy: none of them counts as failing.
    for queue in 1..=60_u128 {
        store.queue(queue, 100);
        store.belongs_to(queue, 1 + queue % 5);
        receivers.answer(queue, SLOW, 200);
    }
    store.belongs_to(0, 99);
    receivers.answer(0, FAST, 200);
    work(&store, &receivers, a_hundred_arrive_soon(&store, 0)).await;
    assert!(receivers.most_at_once() >= usize::from(SLOTS.attempts) / 2);
}

#[tokio::test(start_paused = true)]
async fn dead_receivers_of_many_applications_leave_slots_to_a_queue_that_fails_now_and_then() {
    let (store, receivers) = (Store::default(), Receivers::default());
    for dead in 1..=160_u128 {
        store.queue(dead, 100);
        store.fails(dead);
        store.belongs_to(dead, 1 + dead % 8);
        receivers.never_answer(dead, DEAD);
    }
    store.belongs_to(0, 99);
    receivers.answer(0, FAST, 500);
    let feed = async {
        sleep(Duration::from_millis(500)).await;
        for _ in 0..100 {
            let queued = Instant::now();
            store.queue(0, 1);
            store.attempted_in(0).await;
            assert!(
                queued.elapsed() < Duration::from_secs(1),
                "{:?}",
                queued.elapsed()
            );
            sleep(Duration::from_millis(397)).await;
        }
    };
    work(&store, &receivers, feed).await;
}

#[tokio::test(start_paused = true)]
async fn applications_that_come_to_a_full_process_one_after_the_other_leave_a_slot_to_the_next() {
    let (store, receivers) = (Store::default(), Receivers::default());
    let slow = |applications: std::ops::Range<u128>, queues: u128| {
        for application in applications {
            for queue in 0..queues {
                let queue = application * 100 + queue;
                store.queue(queue, 100);
                store.belongs_to(queue, application);
                receivers.answer(queue, SLOW, 200);
            }
        }
    };
    slow(1..5, 4);
    store.belongs_to(0, 99);
    receivers.answer(0, FAST, 200);
    let feed = async {
        sleep(Duration::from_millis(500)).await;
        slow(5..12, 25);
        sleep(Duration::from_millis(500)).await;
        arrives_soon(&store, 0, 1).await;
    };
    work(&store, &receivers, feed).await;
}
