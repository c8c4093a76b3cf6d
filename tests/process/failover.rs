//! The primary is killed under write load and its synchronous standby is promoted. Every process finds the
//! new primary by itself, and all acknowledged writes are there. One that was only silent is left, too.

use std::{sync::Arc, time::Instant};

use blackbox::{World, eventually, until};
use private_postgres::{Cluster, Options};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use testkit::{TestDatabase, TestWorker};

use crate::deliveries::without_workers;
use crate::ledger::Ledger;
use crate::postgres_killed::{BACK_WITHIN, Writers, moment};
use crate::{PROGRAM, run_over};

const WRITERS: i32 = 4;

struct Pair {
    primary: Cluster,
    standby: Cluster,
    _folders: [TempDir; 2],
}

impl Pair {
    fn start() -> Self {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [first, second] = [&folders[0], &folders[1]].map(|folder| Options::new(folder.path()));
        let primary = Cluster::start(first.delete_at_end(true)).unwrap();
        let second = second.delete_at_end(true).standby_of(primary.connection());
        let standby = Cluster::start(second).unwrap();
        Self {
            primary,
            standby,
            _folders: folders,
        }
    }

    /// A URL with both hosts.
    fn url(&self) -> String {
        let [first, second] = [&self.primary, &self.standby].map(|cluster| {
            let connection = cluster.connection();
            let folder = connection.socket_folder().to_str().unwrap();
            folder.replace('/', "%2F")
        });
        format!("postgres://postgres@{first},{second}/postgres?target_session_attrs=read-write")
    }

    /// From now on a commit is acknowledged only after the standby has written it to disk.
    async fn synchronise(&self) {
        let primary = TestDatabase::at_url(&self.primary.url("postgres"));
        let client = primary.connect().await;
        for statement in [
            "alter system set synchronous_standby_names = '*'",
            "select pg_reload_conf()",
        ] {
            client.batch_execute(statement).await.unwrap();
        }
        until("a synchronous standby", async || {
            let followers = "select count(*) from pg_stat_replication where sync_state = 'sync'";
            let count: i64 = client.query_one(followers, &[]).await.unwrap().get(0);
            count == 1
        })
        .await;
    }
}

/// Kills a server's postmaster, as in a sudden crash of the machine. Its child processes exit when they
/// notice.
pub(crate) fn kill_postmaster(cluster: &Cluster) {
    kill_process(postmaster(cluster), Signal::KILL).unwrap();
}

fn postmaster(cluster: &Cluster) -> Pid {
    let process = i32::try_from(cluster.server_process().unwrap()).unwrap();
    Pid::from_raw(process).unwrap()
}

/// A postmaster that takes no connections until this is dropped. Those that are open work on.
struct Silent(Pid);

impl Silent {
    fn new(cluster: &Cluster) -> Self {
        let process = postmaster(cluster);
        kill_process(process, Signal::STOP).unwrap();
        Self(process)
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        // It may have been killed since.
        let _ = kill_process(self.0, Signal::CONT);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_promoted_standby_is_found_and_nothing_that_was_answered_is_lost() {
    let pair = tokio::task::spawn_blocking(Pair::start).await.unwrap();
    pair.synchronise().await;
    let url = pair.url();
    run_over(&url, "migrate").await.success();
    let database = TestDatabase::at_url(&url);
    let world = Arc::new(World::over(PROGRAM, database, without_workers).await);
    let _worker = TestWorker::start(&world.options, &world.database);
    let (own, receiver, _) = world.subscribed().await;
    let mut ledgers = Ledger::several(&world, WRITERS + 1).await;
    let mut probe = ledgers.remove(0);
    let writers = Writers::start(&world, ledgers);
    moment(&writers.answers).await;

    // The last requests that the primary answers.
    let token = world.token(&own.application).await;
    let order = world.paid_order(&own.trader()).await;
    kill_postmaster(&pair.primary);
    world.server.not_ready().await;
    let pair = tokio::task::spawn_blocking(move || {
        pair.standby.promote().unwrap();
        pair
    });
    let pair = pair.await.unwrap();
    let promoted = Instant::now();
    until("an answer after the promotion", async || {
        probe.write(&world, 1).await == 1
    })
    .await;
    let took = promoted.elapsed();
    assert!(took <= BACK_WITHIN, "answers came only after {took:?}");
    world.server.ready().await;
    moment(&writers.answers).await;
    writers.end(&world).await;
    probe.holds(&world).await;

    world.get(&token, "/v1/me").await.expect(200);
    assert_eq!(world.order(&own.token, &order.id).await["status"], "processing");
    let later = world.paid_order(&own.trader()).await;
    for order in [order, later] {
        eventually("a delivery of each order", async || {
            let mut told = receiver.received().into_iter();
            told.find(|event| event.event() == "order.paid" && event.json()["data"]["order_id"] == order.id)
        })
        .await;
    }
    drop(pair);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_took_no_connections_while_it_was_replaced_is_left_and_never_used_again() {
    let pair = Arc::new(tokio::task::spawn_blocking(Pair::start).await.unwrap());
    let url = pair.url();
    run_over(&url, "migrate").await.success();
    let world = World::over(PROGRAM, TestDatabase::at_url(&url), without_workers).await;
    let mut probe = Ledger::several(&world, 1).await.remove(0);
    assert_eq!(probe.write(&world, 1).await, 1);
    let former = TestDatabase::at_url(&pair.primary.url("postgres"))
        .connect()
        .await;
    let connections = async || -> i64 {
        let own = "select count(*) from pg_stat_activity where application_name = 'seller-api'";
        former.query_one(own, &[]).await.unwrap().get(0)
    };
    assert!(connections().await > 0);

    let silent = Silent::new(&pair.primary);
    let promoted = Arc::clone(&pair);
    let promotion = tokio::task::spawn_blocking(move || promoted.standby.promote().unwrap());
    promotion.await.unwrap();
    until("no connection is left", async || connections().await == 0).await;
    until("an answer of the new primary", async || {
        probe.write(&world, 1).await == 1
    })
    .await;
    probe.ends_with_the_last(&world).await;

    drop(silent);
    kill_postmaster(&pair.standby);
    world.server.not_ready().await;
    let replaced = "a former primary: another server has replaced it since";
    world.server.log_with(|log| log.contains(replaced)).await;
    assert_eq!(probe.write(&world, 1).await, 0);
}
