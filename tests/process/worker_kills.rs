//! Workers that are killed again and again while events go out.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{BuildHasher as _, Hasher as _, RandomState},
    time::Duration,
};

use blackbox::{Receiver, Reply, World, eventually, line, order_body};
use serde_json::json;
use testkit::{OwnPostgres, TestWorker};

use crate::{
    PROGRAM,
    deliveries::{dies, doomed, without_workers},
};

/// Orders before the first worker, and before each further one.
const EVENTS: usize = 50;
const MORE_EVENTS: usize = 5;
const HOOKS: usize = 3;

/// A delivery is lost with two workers before a loss counts as one of its six attempts: what was in hand at fewer deaths has to
/// arrive.
const OUTLIVED: usize = 2 + 6;

/// How many workers are killed; `CRASH_ROUNDS` asks for more in a long run.
fn rounds() -> usize {
    let asked = std::env::var("CRASH_ROUNDS").ok();
    asked.and_then(|rounds| rounds.parse().ok()).unwrap_or(4)
}

/// How many deliveries have not come to an end.
async fn waiting(world: &World) -> i64 {
    let open = "select count(*) from deliveries where due_at is not null and $1 = ''";
    world.count(open, "").await
}

/// What the worker that has just died had in hand, and what had not come to an end by then.
async fn in_hand(world: &World) -> Vec<String> {
    let held = "select d.id::text from subscriptions s join deliveries d on d.seller_id = s.seller_id and \
        d.subscription_id = s.id and d.id = any(s.in_hand) where s.leased and d.due_at is not null";
    let rows = world.database.connect().await.query(held, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// A number from 1 to `most`, another one in each run.
fn any(most: usize) -> usize {
    let most = u64::try_from(most).unwrap();
    usize::try_from(RandomState::new().build_hasher().finish() % most).unwrap() + 1
}

#[tokio::test]
#[expect(clippy::print_stderr, reason = "a long run tells what it has seen")]
async fn every_event_arrives_under_one_id_however_often_workers_are_killed() {
    let postgres = OwnPostgres::start(|options| options).await;
    // What was lost with a third worker has failed once, and is to come again while the test looks.
    let world = World::over(PROGRAM, postgres.database(), |options| {
        without_workers(options).set("SELLER_API__WEBHOOKS__RETRY_DELAYS", "1ms,1ms,1ms,1ms,1ms")
    })
    .await;
    let clock = world.database.control_clock().await;
    let (own, receiver) = (world.integration().await, Receiver::start().await);
    for _ in 0..HOOKS {
        world.hook(&own.token, &receiver).await;
    }
    let offer = world.any_offer(&own.seller, json!({"stock": 1_000_000})).await;
    let order = order_body(&[line(&own.seller, &offer, 1)], json!({}));
    let mut events = 0;
    receiver.answers(Reply::Late(200, Duration::from_millis(20)));
    let (mut moments, mut deaths) = (Vec::new(), BTreeMap::<String, usize>::new());
    for round in 0..rounds() {
        let more = if round == 0 { EVENTS } else { MORE_EVENTS };
        for _ in 0..more {
            world.place(&order).await.expect(201);
        }
        events += more;
        let open = usize::try_from(waiting(&world).await).unwrap();
        let worker = doomed(&world);
        let moment = receiver.count() + any(open.min(30));
        eventually("the moment of its death", async || {
            (receiver.count() >= moment).then_some(())
        })
        .await;
        moments.push(receiver.count());
        dies(&world, &clock, worker).await;
        for id in in_hand(&world).await {
            *deaths.entry(id).or_default() += 1;
        }
        if (round + 1).is_multiple_of(25) {
            let (open, attempts) = (waiting(&world).await, receiver.count());
            eprintln!(
                "{} killed, {events} events, {attempts} attempts, {open} open",
                round + 1
            );
        }
    }
    let _survivor = TestWorker::start(&world.options, &world.database);
    // As long as it takes, if only there are fewer and fewer.
    let mut left = waiting(&world).await;
    while left > 0 {
        left = eventually(&format!("an end of {left} deliveries"), async || {
            Some(waiting(&world).await).filter(|now| *now < left)
        })
        .await;
    }

    let came = receiver.received();
    let arrived: BTreeSet<_> = came.iter().map(|one| one.delivery().to_owned()).collect();
    let looking = world.database.connect().await;
    let rows = looking
        .query(
            "select id::text, delivered_at is not null, attempt, failure from deliveries",
            &[],
        )
        .await
        .unwrap();
    assert_eq!(rows.len(), events * HOOKS, "killed after {moments:?}");
    let (mut recorded, mut again, mut fatal) = (BTreeSet::new(), 0, 0);
    for row in &rows {
        let (id, delivered, attempts): (String, bool, i16) = (row.get(0), row.get(1), row.get(2));
        let failure: Option<String> = row.get(3);
        let deaths = deaths.get(&id).copied().unwrap_or_default();
        let shown = format!(
            "{id}: {attempts} attempts, {failure:?}, in hand at {deaths} deaths, killed after {moments:?}"
        );
        if deaths < OUTLIVED {
            assert!(delivered && (1..=6).contains(&attempts), "{shown}");
        } else if !delivered {
            // So many workers died over it that all of its attempts were lost.
            assert_eq!(
                (attempts, failure.as_deref()),
                (6, Some("worker_lost")),
                "{shown}"
            );
            fatal += 1;
        }
        again += usize::from(attempts > 1);
        recorded.insert(id);
    }
    assert_eq!(arrived, recorded, "killed after {moments:?}");
    // Repeats carry the same id, so each event has come under as many ids as there are subscriptions.
    let (mut seen, mut of_events) = (BTreeSet::new(), BTreeMap::<_, usize>::new());
    for one in &came {
        if seen.insert(one.delivery().to_owned()) {
            *of_events
                .entry(one.json()["data"]["order_id"].to_string())
                .or_default() += 1;
        }
    }
    assert_eq!(of_events.len(), events);
    assert!(of_events.values().all(|ids| *ids == HOOKS), "{of_events:?}");
    eprintln!(
        "{} workers killed, {events} events, {} deliveries, {} requests to the receivers, {again} with a failed attempt, \
         {fatal} given up after at least {OUTLIVED} workers",
        moments.len(),
        rows.len(),
        came.len(),
    );
}
