//! Workers that are killed again and again while events go out.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{BuildHasher as _, Hasher as _, RandomState},
    time::Duration,
};

use blackbox::{Receiver, Reply, World, eventually};
use testkit::TestWorker;

use crate::{
    PROGRAM,
    deliveries::{dies, doomed, without_workers},
};

const EVENTS: usize = 50;
const HOOKS: usize = 3;

/// A number from 1 to `most`, another one in each run.
fn any(most: u64) -> usize {
    usize::try_from(RandomState::new().build_hasher().finish() % most).unwrap() + 1
}

#[tokio::test]
async fn every_event_arrives_under_one_id_however_often_workers_are_killed() {
    // What was lost with a third worker has failed once, and is to come again while the test looks.
    let world = World::with(PROGRAM, |options| {
        without_workers(options).set("SELLER_API__WEBHOOKS__RETRY_DELAYS", "1ms,1ms,1ms,1ms,1ms")
    })
    .await;
    let clock = world.database.control_clock().await;
    let (own, receiver) = (world.integration().await, Receiver::start().await);
    let mut hooks = Vec::new();
    for _ in 0..HOOKS {
        hooks.push(world.hook(&own.token, &receiver).await);
    }
    for _ in 0..EVENTS {
        world.any_order(&own.seller).await;
    }
    receiver.answers(Reply::Late(200, Duration::from_millis(20)));
    let mut moments = Vec::new();
    for _ in 0..4 {
        let worker = doomed(&world);
        let moment = receiver.count() + any(30);
        eventually("the moment of its death", async || {
            (receiver.count() >= moment).then_some(())
        })
        .await;
        moments.push(receiver.count());
        dies(&world, &clock, worker).await;
    }
    let _survivor = TestWorker::start(&world.options, &world.database);
    eventually("the end of all deliveries", async || {
        let open = "select count(*) from deliveries where due_at is not null and $1 = ''";
        (world.count(open, "").await == 0).then_some(())
    })
    .await;

    let arrived: BTreeSet<_> = receiver
        .received()
        .iter()
        .map(|one| one.delivery().to_owned())
        .collect();
    let (mut recorded, mut of_events) = (BTreeSet::new(), BTreeMap::<_, usize>::new());
    for hook in &hooks {
        let history = world.history(&own.token, &hook.id).await;
        assert_eq!(history.len(), EVENTS, "killed after {moments:?}");
        for delivery in history {
            assert!(
                delivery["delivered_at"].is_string(),
                "{delivery}, killed after {moments:?}"
            );
            let attempts = delivery["attempt"].as_u64().unwrap();
            assert!(
                (1..=6).contains(&attempts),
                "{delivery}, killed after {moments:?}"
            );
            recorded.insert(delivery["id"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(arrived, recorded, "killed after {moments:?}");
    // Repeats carry the same id, so each event has come under as many ids as there are subscriptions.
    let mut seen = BTreeSet::new();
    for one in receiver.received() {
        if seen.insert(one.delivery().to_owned()) {
            *of_events
                .entry(one.json()["data"]["order_id"].to_string())
                .or_default() += 1;
        }
    }
    assert_eq!(of_events.len(), EVENTS);
    assert!(of_events.values().all(|ids| *ids == HOOKS), "{of_events:?}");
}
