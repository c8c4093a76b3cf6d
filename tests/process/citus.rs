//! The program over a Citus cluster: how many commands its requests send to workers, and faults of nodes
//! during keyed writes. Left out where Citus is not installed.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use blackbox::{Sandbox, World, line, text, until};
use private_postgres::Cluster;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use testkit::{Answer, OwnCitus, ServerOptions, TestDatabase, TestWorker};
use tokio::task::block_in_place;

use crate::ledger::Ledger;
use crate::outage::may_be_repeated;
use crate::postgres_killed::{Writers, fed_once, kill_all, moment};
use crate::{PROGRAM, metrics, rounds, run_alone, run_over, set};

/// Time until a request of a seller whose worker is away has failed.
const FAILS_WITHIN: Duration = Duration::from_secs(5);
/// Time until what the feed lists can be read: until the worker, too, has committed.
const AHEAD: Duration = Duration::from_secs(2);
/// The same after a crash: until Citus has recovered the transactions in doubt (every
/// `citus.recover_2pc_interval`, here a second).
const IN_DOUBT: Duration = Duration::from_secs(10);
/// How many pages of the feed are followed.
const PAGES: usize = 60;
/// The most that a kill of the program comes after the requests, in microseconds: a little longer than they
/// take.
const LATEST: u64 = 40_000;
const LOG_COMMANDS: &str = "alter database postgres set citus.log_remote_commands = on;
    alter database postgres set log_min_messages = notice;
    alter database postgres set client_min_messages = warning";

/// A cluster; `None` where Citus is not installed.
async fn cluster() -> Option<OwnCitus> {
    if OwnCitus::is_installed() {
        Some(OwnCitus::start().await)
    } else {
        None
    }
}

async fn world(citus: &OwnCitus) -> World {
    World::over(PROGRAM, citus.database(), |options| {
        options
            .set("SELLER_API__DATABASE__LAYOUT", "citus")
            .set("SELLER_API__RATE_LIMIT__DEFAULT", 1_000_000)
    })
    .await
}

/// The commands that requests have sent to workers so far; Citus's own background process asks about prepared
/// transactions and locks.
fn commands(citus: &OwnCitus) -> usize {
    let log = std::fs::read_to_string(citus.coordinator().log_file()).unwrap();
    log.lines()
        .filter(|line| line.contains("NOTICE:  issuing "))
        .filter(|line| !line.contains("pg_prepared_xacts") && !line.contains("wait_edges"))
        .count()
}

/// The index of the worker that holds a seller's rows.
async fn home(world: &World, citus: &OwnCitus, seller: &str) -> usize {
    let database = world.database.connect().await;
    let place = "select nodename from citus_shards
        where shardid = get_shard_id_for_distribution_column('offers', $1::text::uuid)";
    let place: String = database.query_one(place, &[&seller]).await.unwrap().get(0);
    let is_there = |worker: &Cluster| worker.connection().socket_folder().display().to_string() == place;
    citus.workers().iter().position(is_there).unwrap()
}

/// Two ledgers whose sellers are on different workers, in the workers' order.
async fn one_on_each(world: &World, citus: &OwnCitus) -> [Ledger; 2] {
    let mut on = [None, None];
    for ledger in Ledger::several(world, 20).await {
        let place = home(world, citus, &ledger.trader().seller.id).await;
        on[place] = Some(ledger);
    }
    on.map(|ledger| ledger.expect("twenty sellers are on both workers"))
}

fn start_again(cluster: &Cluster) {
    assert!(block_in_place(|| cluster.restart_if_dead()).unwrap());
}

#[tokio::test]
async fn a_request_reaches_no_other_shard_and_sends_few_commands() {
    let Some(citus) = cluster().await else { return };
    let admin = citus.database().connect().await;
    admin.batch_execute(LOG_COMMANDS).await.unwrap();
    let world = world(&citus).await;
    let [one, other] = one_on_each(&world, &citus)
        .await
        .map(|ledger| ledger.trader().clone());
    let [mine, theirs] = [
        world.any_offer(&one.seller, json!({"stock": 1_000})).await,
        world.any_offer(&other.seller, json!({"stock": 1_000})).await,
    ];
    let placed = world.unpaid(&[line(&one.seller, &mine, 1)], json!({})).await;
    let reads = async |path: &str, most: usize| {
        let before = commands(&citus);
        world.get(&one.token, path).await.expect(200);
        let sent = commands(&citus) - before;
        assert!(sent <= most, "{path}: {sent}");
    };
    for (path, most) in [
        (format!("/v1/offers/{mine}"), 1),
        ("/v1/offers".to_owned(), 1),
        ("/v1/offers?status=published".to_owned(), 1),
        (format!("/v1/orders/{}", placed.id), 1),
        (format!("/v1/orders/{}", placed.number), 1),
        (format!("/v1/offers?ids={mine}"), 1),
        (format!("/v1/orders?ids={}", placed.id), 1),
        // First how long they are.
        ("/v1/orders".to_owned(), 2),
        ("/v1/me".to_owned(), 0),
    ] {
        reads(&path, most).await;
    }
    let changed = async || {
        world
            .patched(&one.token, &mine, &json!({"stock": world.next_number()}))
            .await
    };
    let ordered = async |lines: &[_]| world.unpaid(lines, json!({})).await;
    let both = [line(&one.seller, &mine, 1), line(&other.seller, &theirs, 1)];
    let before = commands(&citus);
    changed().await;
    let after_change = commands(&citus);
    ordered(&both[..1]).await;
    let after_order = commands(&citus);
    ordered(&both).await;
    let sent = [
        after_change - before,
        after_order - after_change,
        commands(&citus) - after_order,
    ];
    assert!(sent[0] <= 5 && sent[1] <= 6 && sent[2] <= 12, "{sent:?}");
    // Last, since a transaction of one statement may end after the answer.
    for resource in ["offers", "orders"] {
        let changed = format!("/v1/{resource}?updated_after=2026-01-01T00:00:00Z");
        reads(&changed, 4).await;
    }
}

#[tokio::test]
async fn old_orders_buyers_are_erased_on_every_worker() {
    let Some(citus) = cluster().await else { return };
    let world = world(&citus).await;
    let (mut lines, mut traders) = (Vec::new(), Vec::new());
    for ledger in one_on_each(&world, &citus).await {
        let trader = ledger.trader().clone();
        let offer = world.any_offer(&trader.seller, json!({"stock": 2})).await;
        lines.push(line(&trader.seller, &offer, 1));
        traders.push(trader);
    }
    let [old, recent] = [
        world.paid(&lines, json!({})).await,
        world.paid(&lines, json!({})).await,
    ];
    let paid = world.order(&traders[0].token, &old.id).await;
    let age = format!(
        "update orders set created_at = created_at - interval '2 days' where order_id = '{}'",
        old.id
    );
    world.execute(&age).await;
    let settings = [("DATABASE__LAYOUT", "citus"), ("RETENTION__BUYER_DATA", "1d")];
    let _worker = TestWorker::start(&set(ServerOptions::new(PROGRAM), &settings), &world.database);
    let has_buyer =
        async |token: &str, order: &str| world.order(token, order).await["buyer"] != serde_json::Value::Null;
    for trader in &traders {
        until("the erasure", async || !has_buyer(&trader.token, &old.id).await).await;
        assert!(has_buyer(&trader.token, &recent.id).await);
    }
    let erased = world.order(&traders[0].token, &old.id).await;
    assert!(
        text(&erased, "updated_at") > text(&paid, "updated_at"),
        "{erased}"
    );
}

#[tokio::test]
async fn databases_of_a_coordinator_become_a_sandbox_or_are_distributed_with_their_data() {
    let Some(citus) = cluster().await else { return };
    becomes_a_sandbox(&citus).await;
    is_distributed_with_its_data(&citus).await;
}

async fn becomes_a_sandbox(citus: &OwnCitus) {
    let (url, folder) = (citus.empty_database("market").await, tempfile::tempdir().unwrap());
    let on_worker = run_over(&citus.workers()[0].url("market"), "migrate")
        .await
        .ended(1);
    assert!(
        on_worker.stderr.contains("Connect to the coordinator"),
        "{}",
        on_worker.stderr
    );
    let environment = [("DATABASE_URL", &*url), ("SELLER_API__DATABASE__LAYOUT", "citus")];
    let sandbox = Sandbox::start(PROGRAM, &folder.path().join("data"), &[], &environment).await;
    let token = text(&sandbox.credentials["sellers"][0], "personal_token");
    let offers = sandbox.get(&token, "/v1/offers").await.expect(200).json();
    assert!(!offers["items"].as_array().unwrap().is_empty());
    assert_eq!(sandbox.end(Signal::TERM).await, Some(0));
    let again = run_over(&url, "migrate --distribute").await.success();
    assert!(again.stdout.contains("distributed already"), "{}", again.stdout);
    // A process for another layout could write half of a change.
    let refused = run_alone("serve", &environment[..1]).await.ended(4);
    assert!(refused.stderr.contains("`database.layout`"), "{}", refused.stderr);
}

/// As many offers more as are not moved unasked.
const MANY: &str = "insert into offers select new.* from offers o, generate_series(1, 5000) n,
    jsonb_populate_record(o, jsonb_build_object('id', md5(n::text)::uuid)) as new";

async fn is_distributed_with_its_data(citus: &OwnCitus) {
    let url = citus.empty_database("former").await;
    run_over(&url, "migrate").await.success();
    let single = World::over(PROGRAM, TestDatabase::at_url(&url), |options| options).await;
    let (one, other) = (single.trader().await, single.trader().await);
    let mut lines = Vec::new();
    for trader in [&one, &other] {
        let offer = single.any_offer(&trader.seller, json!({"stock": 5})).await;
        lines.push(line(&trader.seller, &offer, 2));
    }
    let order = single.unpaid(&lines, json!({})).await;
    let database = single.database.connect().await;
    database.batch_execute(MANY).await.unwrap();
    // As in orders of earlier versions.
    single.execute("update orders set sellers = null").await;
    let count = async || single.count("select count(*) from offers", &[]).await;
    let offers = count().await;
    let refused = run_over(&url, "migrate --distribute").await.ended(1);
    assert!(refused.stderr.contains("--with-data"), "{}", refused.stderr);
    run_over(&url, "migrate --distribute --with-data").await.success();
    assert_eq!(count().await, offers);
    let kept = "select pg_relation_size('offers') + pg_relation_size('seller_orders')";
    assert_eq!(single.count(kept, &[]).await, 0, "the coordinator keeps no copy");
    let options = single
        .options
        .clone()
        .set("SELLER_API__DATABASE__LAYOUT", "citus");
    drop(single);
    // As a database that an earlier release has distributed.
    for statement in [
        "alter table seller_orders drop column delivery_point",
        "alter table seller_orders drop column invoice",
        "alter table offers drop column external_id",
        "delete from schema_facts where version in ('0030', '0031', '0034')",
        "delete from __diesel_schema_migrations where version in ('0030', '0031', '0034')",
    ] {
        database.batch_execute(statement).await.unwrap();
    }
    run_over(&url, "migrate").await.success();
    let world = World::over(PROGRAM, TestDatabase::at_url(&url), |_| options).await;
    world.order_moved(&order.id, "payment").await;
    let whole = world.whole_order(&order.number).await;
    assert_eq!(whole["parts"].as_array().unwrap().len(), 2, "{whole}");
    for trader in [&one, &other] {
        let part = world.order(&trader.token, &order.id).await;
        assert_eq!(part["status"], "processing");
    }
}

#[tokio::test]
async fn a_single_server_is_not_distributed() {
    let database = TestDatabase::create().await;
    let refused = run_over(database.url(), "migrate --distribute").await;
    let refused = refused.ended(1).stderr;
    assert!(refused.contains("CREATE EXTENSION citus"), "{refused}");
}

async fn unreachable_workers(world: &World, count: usize) {
    let line = format!("database_workers_unreachable {count}");
    until(&line, async || {
        metrics(world).await.lines().any(|found| found == line)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_worker_its_sellers_alone_are_told_to_repeat() {
    let Some(citus) = cluster().await else { return };
    let world = world(&citus).await;
    let [mut lost, mut well] = one_on_each(&world, &citus).await;
    for ledger in [&mut lost, &mut well] {
        assert_eq!(ledger.write(&world, 3).await, 3);
    }
    let read = async |ledger: &Ledger| -> Answer { world.get(&ledger.trader().token, "/v1/offers").await };
    unreachable_workers(&world, 0).await;
    kill_all(&citus.workers()[0]).await;
    for _ in 0..3 {
        let started = Instant::now();
        let refused = read(&lost).await;
        assert_eq!(refused.status, 500, "{refused:?}");
        may_be_repeated(&refused);
        assert!(started.elapsed() <= FAILS_WITHIN, "{:?}", started.elapsed());
        let started = Instant::now();
        assert_eq!(lost.write(&world, 1).await, 0);
        assert!(started.elapsed() <= FAILS_WITHIN, "{:?}", started.elapsed());
        read(&well).await.expect(200);
        assert_eq!(well.write(&world, 1).await, 1);
    }
    world.server.ready().await;
    unreachable_workers(&world, 1).await;
    start_again(&citus.workers()[0]);
    until("the worker's sellers are served", async || {
        read(&lost).await.status == 200
    })
    .await;
    lost.repeat(&world).await;
    for ledger in [&mut lost, &mut well] {
        assert_eq!(ledger.write(&world, 1).await, 1);
        ledger.ends_with_the_last(&world).await;
        ledger.agrees_with_the_feed(&world).await;
        ledger.holds(&world).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_node_is_killed_each_write_is_whole_or_absent() {
    let Some(citus) = cluster().await else { return };
    let world = Arc::new(world(&citus).await);
    let ledgers = Ledger::several(&world, 6).await;
    let writers = Writers::start(&world, ledgers);
    // Each kills a backend of the coordinator, a worker, and the coordinator.
    for _ in 0..rounds(2) {
        moment(&writers.answers).await;
        kill_a_backend(citus.coordinator()).await;
        for node in [&citus.workers()[0], citus.coordinator()] {
            moment(&writers.answers).await;
            kill_all(node).await;
            start_again(node);
        }
    }
    writers.end(&world).await;
    fed_once(&world).await;
    for worker in citus.workers() {
        until("prepared transactions end", async || in_doubt(worker).await == 0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whenever_the_program_is_killed_each_write_is_whole_or_absent() {
    let Some(citus) = cluster().await else { return };
    let mut world = world(&citus).await;
    let mut ledgers = Ledger::several(&world, 6).await;
    let (mut round, mut lost) = (0, 0);
    while round < rounds(4) || lost == 0 && round < 20 * rounds(4) {
        let sent = ledgers.iter_mut().map(|ledger| ledger.send(&world, 3));
        let sent = sent.collect::<Vec<_>>();
        let a_while = RandomState::new().hash_one(0) % LATEST;
        tokio::time::sleep(Duration::from_micros(a_while)).await;
        world.server.kill();
        world.server = world.another().await;
        for (ledger, sent) in ledgers.iter_mut().zip(sent) {
            lost += ledger.settle(sent).await.1;
            ledger.repeat(&world).await;
        }
        round += 1;
    }
    assert!(lost > 0, "every write was answered");
    for ledger in &ledgers {
        ledger.agrees_with_the_feed(&world).await;
        ledger.holds(&world).await;
    }
    fed_once(&world).await;
}

/// Kills (SIGKILL) a process of the coordinator that has just written: the server restarts all others.
async fn kill_a_backend(coordinator: &Cluster) {
    let admin = TestDatabase::at_url(&coordinator.url("postgres")).connect().await;
    let writing = "select pid from pg_stat_activity
        where backend_type = 'client backend' and pid <> pg_backend_pid() order by state_change desc limit 1";
    let pid = admin.query_one(writing, &[]).await.unwrap().get(0);
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

/// Transactions of a worker whose outcome is open.
async fn in_doubt(worker: &Cluster) -> i64 {
    let client = TestDatabase::at_url(&worker.url("postgres")).connect().await;
    let prepared = "select count(*) from pg_prepared_xacts";
    client.query_one(prepared, &[]).await.unwrap().get(0)
}

/// Reads the feed on, and each changed offer as soon as the feed has listed it.
struct Follower {
    /// Of the offers.
    tokens: BTreeMap<String, String>,
    after: String,
}

impl Follower {
    fn of(ledgers: &[Ledger]) -> Self {
        let token = |ledger: &Ledger| (ledger.offer().to_owned(), ledger.trader().token.clone());
        Self {
            tokens: ledgers.iter().map(token).collect(),
            after: String::new(),
        }
    }

    /// Reads the next page of the feed, and what it lists until all can be read. Returns how long something
    /// could not.
    async fn follow(&mut self, world: &World) -> Duration {
        let page = world
            .office_read(&format!("/changes?limit=1000{}", self.after))
            .await;
        let (listed, mut behind) = (Instant::now(), Duration::ZERO);
        // A later change of an offer may be read in place of this one: stocks only rise.
        let mut stocks = BTreeMap::new();
        for item in page["items"].as_array().unwrap() {
            if let Some(stock) = item["stock"].as_u64() {
                stocks.insert(text(item, "offer_id"), stock);
            }
        }
        if let Some(next) = page["next"].as_str() {
            self.after = format!("&after={next}");
        }
        for (offer, stock) in stocks {
            let path = format!("/v1/offers/{offer}");
            until("the change can be read", async || {
                let read = world.read(&self.tokens[&offer], &path).await;
                let can_be_read = read["stock"].as_u64() >= Some(stock);
                if !can_be_read {
                    behind = listed.elapsed();
                }
                can_be_read
            })
            .await;
        }
        behind
    }
}

/// Leaves a change of an offer's stock as a crash does between the coordinator's commit and the worker's.
async fn leave_in_doubt(world: &World, citus: &OwnCitus, seller: &str, offer: &str, stock: u16) {
    let mut coordinator = world.database.connect().await;
    let place = "select s.shard_name, n.groupid from citus_shards s join pg_dist_node n using (nodename)
        where shardid = get_shard_id_for_distribution_column('offers', $1::text::uuid)";
    let place = coordinator.query_one(place, &[&seller]).await.unwrap();
    let (shard, group): (String, i32) = (place.get(0), place.get(1));
    let committing = coordinator.transaction().await.unwrap();
    // Citus does not recover meanwhile.
    let committed = format!(
        "lock table pg_dist_transaction in exclusive mode;
         insert into pg_dist_transaction values ({group}, 'citus_0_doubt');
         insert into changes (seller_id, at, kind, offer_id, stock)
           values ('{seller}', now(), 'offer.stock_changed', '{offer}', {stock})"
    );
    committing.batch_execute(&committed).await.unwrap();
    let worker = &citus.workers()[home(world, citus, seller).await];
    let worker = TestDatabase::at_url(&worker.url("postgres")).connect().await;
    let prepared = format!("update {shard} set stock = {stock} where id = '{offer}'");
    let by_hand = "set citus.enable_manual_changes_to_shards = on";
    for statement in [by_hand, "begin", &prepared, "prepare transaction 'citus_0_doubt'"] {
        worker.batch_execute(statement).await.unwrap();
    }
    committing.commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_feed_lists_can_be_read_within_moments_or_once_a_crash_is_recovered() {
    let Some(citus) = cluster().await else { return };
    let world = Arc::new(world(&citus).await);
    let ledgers = Ledger::several(&world, 6).await;
    let (seller, offer) = (ledgers[0].trader().seller.clone(), ledgers[0].offer().to_owned());
    let mut follower = Follower::of(&ledgers);
    let writers = Writers::start(&world, ledgers);
    for _ in 0..PAGES {
        let behind = follower.follow(&world).await;
        assert!(behind <= AHEAD, "{behind:?}");
    }
    writers.end(&world).await;
    follower.follow(&world).await;
    leave_in_doubt(&world, &citus, &seller.id, &offer, 65_000).await;
    let behind = follower.follow(&world).await;
    assert!(behind <= IN_DOUBT, "{behind:?}");
    assert_eq!(world.stock(&seller, &offer).await, 65_000);
}

/// The journal is on the coordinator, where the commit of a transaction begins.
#[tokio::test(flavor = "multi_thread")]
async fn the_order_of_an_event_can_be_read_within_moments() {
    let Some(citus) = cluster().await else { return };
    let world = world(&citus).await;
    for ledger in one_on_each(&world, &citus).await {
        let trader = ledger.trader();
        let offer = world.any_offer(&trader.seller, json!({"stock": 50})).await;
        for _ in 0..20 {
            let cursor = text(&world.read(&trader.token, "/v1/events").await, "cursor");
            let follow = async {
                let path = format!("/v1/events?wait=10&after={cursor}");
                let told = world.read(&trader.token, &path).await;
                let at = Instant::now();
                let order = text(&told["items"][0]["data"], "order_id");
                let path = format!("/v1/orders/{order}");
                until("the order can be read", async || {
                    world.get(&trader.token, &path).await.status == 200
                })
                .await;
                at.elapsed()
            };
            let lines = [line(&trader.seller, &offer, 1)];
            let (behind, _) = tokio::join!(follow, world.paid(&lines, json!({})));
            assert!(behind <= AHEAD, "{behind:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_added_and_shards_move_while_writes_go_on() {
    let Some(mut citus) = cluster().await else { return };
    let world = Arc::new(world(&citus).await);
    let ledgers = Ledger::several(&world, 6).await;
    let writers = Writers::start(&world, ledgers);
    moment(&writers.answers).await;
    citus.add_worker().await;
    let admin = citus.database().connect().await;
    // The job begins with the commit of the first.
    for call in ["select citus_rebalance_start()", "select citus_rebalance_wait()"] {
        admin.batch_execute(call).await.unwrap();
    }
    let nodes = "select count(distinct nodename) from citus_shards where table_name = 'offers'::regclass";
    assert_eq!(world.count(nodes, &[]).await, 3);
    writers.end(&world).await;
    fed_once(&world).await;
}
