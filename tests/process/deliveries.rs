//! Deliveries and their worker processes: killed, stopped, and the logs of a start.

use std::{collections::HashSet, time::Duration};

use blackbox::{Receiver, Reply, World, eventually, local_receivers};
use chrono::TimeDelta;
use serde_json::json;
use testkit::{ServerOptions, TestClock, TestDatabase, TestWorker};

use crate::{PROGRAM, set};

/// Longer than a worker's lease.
const LEASE: TimeDelta = TimeDelta::seconds(31);

pub(crate) fn without_workers(options: ServerOptions) -> ServerOptions {
    local_receivers(options).set("SELLER_API__SERVER__WORKERS", "none")
}

/// A worker that will be killed. Its name identifies it in the database.
fn worker_to_kill(world: &World) -> TestWorker {
    let url = format!("{}?application_name=killed", world.database.url());
    let options = world.options.clone().set("SELLER_API__DATABASE__URL", url);
    TestWorker::start(&options, &world.database)
}

/// Kills a worker during an attempt and lets its leases expire. Statements that it had sent by then must not
/// run after the clock has advanced.
async fn dies(world: &World, clock: &TestClock, mut worker: TestWorker) {
    let left = "select count(*) from pg_stat_activity
        where application_name = 'killed' and datname = current_database()";
    assert!(world.count(left, &[]).await > 0);
    worker.kill();
    world
        .until_count("the end of the killed worker's connections", left, &[], 0)
        .await;
    clock.advance(LEASE).await;
}

#[tokio::test]
async fn a_delivery_that_its_workers_do_not_survive_comes_to_an_end() {
    let world = World::with(PROGRAM, |options| {
        without_workers(options).set("SELLER_API__WEBHOOKS__RETRY_DELAYS", "1ms,1ms,1ms,1ms,1ms")
    })
    .await;
    let clock = world.database.control_clock().await;
    let (own, receiver) = (world.integration().await, Receiver::start().await);
    let hook = world.hook(&own.token, &receiver).await;
    receiver.answers(Reply::Silence);
    world.any_order(&own.seller).await;
    let mut deaths = 0;
    let exhausted = loop {
        let sent = receiver.count();
        let worker = worker_to_kill(&world);
        let end = eventually(
            &format!("attempt {}, or the last one's end", sent + 1),
            async || {
                let delivery = world.delivery(&own.token, &hook.id).await;
                if delivery["attempt"] == 6 {
                    return Some(Some(delivery));
                }
                (receiver.count() > sent).then_some(None)
            },
        )
        .await;
        if let Some(delivery) = end {
            break delivery;
        }
        dies(&world, &clock, worker).await;
        deaths += 1;
        assert!(deaths < 20, "it never ends");
    };
    assert!(
        exhausted["delivered_at"].is_null() && exhausted["next_retry_at"].is_null(),
        "{exhausted}"
    );
    let ids = receiver
        .received()
        .iter()
        .map(|one| one.delivery().to_owned())
        .collect::<HashSet<_>>();
    assert_eq!(ids.len(), 1);
}

#[tokio::test]
async fn a_stop_lets_what_is_under_way_arrive_and_records_it() {
    let mut world = World::with(PROGRAM, local_receivers).await;
    let (own, receiver) = (world.integration().await, Receiver::start().await);
    let hook = world.hook(&own.token, &receiver).await;
    receiver.answers(Reply::Late(200, Duration::from_secs(1)));
    world.any_order(&own.seller).await;
    receiver.has(1).await;
    world.options = world.options.clone().set("SELLER_API__SERVER__WORKERS", "none");
    let another = world.another().await;
    let stopping = std::mem::replace(&mut world.server, another);
    stopping.terminate();
    assert_eq!(stopping.exit_code().await, Some(0));
    let delivery = world.delivery(&own.token, &hook.id).await;
    assert_eq!(
        (&delivery["attempt"], &delivery["response_status"]),
        (&json!(1), &json!(200))
    );
    assert!(delivery["delivered_at"].is_string());
    assert_eq!(receiver.count(), 1);
}

#[tokio::test]
async fn dangerous_settings_are_logged_as_warnings_and_are_not_the_default() {
    let anywhere = "webhooks may go to ANY address";
    let anybody = "ANY client is trusted";
    let database = TestDatabase::create().await;
    for (settings, told) in [
        (ServerOptions::new(PROGRAM), [false, false]),
        (local_receivers(ServerOptions::new(PROGRAM)), [true, false]),
        (trusting("10.0.0.0/8,fd00::/8"), [false, false]),
        (trusting("::/0"), [false, true]),
        (trusting("10.0.0.1,0.0.0.0/0"), [false, true]),
    ] {
        let log = blackbox::listen(&settings, database.url()).await.log();
        let loud = [anywhere, anybody].map(|words| {
            log.lines()
                .any(|line| line.contains(words) && line.contains("WARN"))
        });
        assert_eq!(loud, told, "{log}");
    }
}

const PUBLIC_URL: (&str, &str) = ("SERVER__PUBLIC_URL", "http://a");

fn trusting(networks: &str) -> ServerOptions {
    let settings = [("SERVER__TRUSTED_PROXIES", networks), PUBLIC_URL];
    set(ServerOptions::new(PROGRAM), &settings)
}
