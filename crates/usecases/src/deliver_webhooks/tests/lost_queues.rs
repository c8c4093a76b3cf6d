//! Queues that are locked, or that another worker has taken over.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::receivers::Response;
use super::{BEAT, FAST, OK, SLOTS, SLOW, World};

#[tokio::test(start_paused = true)]
async fn a_locked_queue_delays_no_other_and_loses_nothing() {
    let world = World::default();
    world.queue(1, 20, OK);
    world.receivers.respond(2, OK);
    world.store.set_locked(Some(1));
    let locked = async {
        for _ in 0..100 {
            let queued = Instant::now();
            world.store.add(2, 0);
            world.store.until_ended(2, world.store.ended(2) + 1).await;
            assert!(queued.elapsed() <= BEAT + FAST * 2, "{:?}", queued.elapsed());
            sleep(Duration::from_millis(37)).await;
        }
        let sent = world.receivers.sent();
        assert!(sent > 100 && sent <= 100 + usize::from(SLOTS.per_queue), "{sent}");
        world.store.set_locked(None);
        world.store.finished().await;
    };
    world.run(locked).await;
    assert_eq!((world.receivers.sent(), world.store.delivered()), (120, 120));

    // It is tried once a beat, also while some of its attempts are postponed and others run.
    let world = World::default();
    world.queue(1, 6, SLOW);
    world.receivers.limit_per_host(2);
    let locked = async {
        // After the claim, before the first refill.
        sleep(Duration::from_millis(3)).await;
        world.store.set_locked(Some(1));
        let before = world.store.calls();
        sleep(BEAT * 50).await;
        let calls = world.store.calls() - before;
        assert!(calls <= 110, "{calls} calls");
        world.store.set_locked(None);
    };
    world.run(locked).await;

    // A worker that stops waits for other attempts however long, and then some seconds for a locked queue.
    let world = World::default();
    world.queue(1, 1, OK);
    world.queue(2, 1, SLOW);
    world.store.set_locked(Some(1));
    let begun = Instant::now();
    world.run(sleep(Duration::from_secs(1))).await;
    let stopped = begun.elapsed().as_secs();
    assert!((15..17).contains(&stopped), "{stopped} s");
    assert_eq!((world.receivers.sent(), world.store.delivered()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_another_worker_took_over_gets_nothing_more() {
    let world = World::default();
    world.delivery(1, 0, Response::status(Duration::from_secs(5), 200));
    world.queue(1, 49, OK);
    let taking_over = async {
        world.store.until_ended(1, 1).await;
        world.store.take_over(1);
        let sent = world.receivers.sent();
        sleep(Duration::from_secs(10)).await;
        // Deliveries already given out are completed; nothing else is sent.
        assert!(world.receivers.sent() <= sent + usize::from(SLOTS.per_queue));
        world.queue(2, 1, OK);
        world.store.until_ended(2, 1).await;
    };
    world.run(taking_over).await;
    assert!(world.store.delivered() < 50);
}

#[tokio::test(start_paused = true)]
async fn further_deliveries_of_a_leased_queue_go_to_its_present_url() {
    let world = World::default();
    // It keeps the queue leased.
    world.delivery(1, 0, SLOW);
    world.receivers.respond(2, OK);
    let later = async {
        sleep(Duration::from_secs(1)).await;
        world.store.set_receiver(1, 2);
        world.is_attempted_soon(1).await;
    };
    world.run(later).await;
    assert_eq!(world.receivers.most_at_once_of(2), 1);
}
