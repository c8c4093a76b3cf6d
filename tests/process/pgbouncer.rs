//! PgBouncer in transaction mode between the program and the database.

use std::{collections::HashSet, sync::Arc};

use blackbox::{Expect as _, World, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use testkit::{OwnPostgres, PgBouncer, ServerOptions, TestDatabase, TestServer};
use tokio::task::JoinSet;

use crate::starts::refuses_with;
use crate::{PROGRAM, run_alone, run_over};

/// The pooler's connections to the database.
const CONNECTIONS: u32 = 3;
/// Concurrent sellers: each process has more connections to the pooler than the pooler has to the database.
const SELLERS: usize = 12;
/// Prepared statements that the pooler keeps per connection.
const STATEMENTS: u32 = 100;

fn settings(options: ServerOptions) -> ServerOptions {
    options
        .set("SELLER_API__OAUTH__TOKEN_LIMIT_PER_IP", 1_000_000)
        .set("SELLER_API__OAUTH__TOKEN_LIMIT_PER_CLIENT", 1_000_000)
}

/// Actions of a new seller and its application; all succeed.
async fn trade(world: Arc<World>) {
    let trader = world.trader().await;
    let application = world.application(&trader.seller, &["offers:read"]).await;
    let offer = world.any_offer(&trader.seller, json!({})).await;
    for stock in 1..=5 {
        let change = world.patching(&trader.token, &offer, &json!({"stock": stock}));
        let keyed = change.header("idempotency-key", &format!("{offer}-{stock}"));
        keyed.send().await.expect(200);
        let read = world.get(&trader.token, &format!("/v1/offers/{offer}")).await;
        assert_eq!(read.expect(200).json()["stock"], stock);
        world.token(&application).await;
    }
}

/// Session state that a connection did not start with.
const LEFT: &str = "\
    select name || ' = ' || setting from pg_settings where source = 'session' and name <> all($1) \
    union all select 'a lock: ' || mode from pg_locks where pid = pg_backend_pid() and locktype = 'advisory' \
    union all select 'listens: ' || pg_listening_channels() \
    union all select 'a table: ' || relname from pg_class where relpersistence = 't'";

/// Parameters that the pooler itself sets for each client.
const TRACKED: [&str; 6] = [
    "application_name",
    "client_encoding",
    "DateStyle",
    "IntervalStyle",
    "TimeZone",
    "standard_conforming_strings",
];

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_shared_and_nothing_of_one_client_is_left_to_the_next() {
    if !PgBouncer::is_installed() {
        return;
    }
    let database = TestDatabase::create().await;
    let pgbouncer = PgBouncer::start(&database, CONNECTIONS, STATEMENTS).await;
    let pooled = TestDatabase::at_url(pgbouncer.url());
    let world = Arc::new(World::over(PROGRAM, pooled, settings).await);
    let mut sellers = JoinSet::new();
    for _ in 0..SELLERS {
        sellers.spawn(trade(Arc::clone(&world)));
    }
    sellers.join_all().await;

    // With all of the pooler's connections taken, the test sees what was left on each.
    let (mut holders, mut processes) = (Vec::new(), HashSet::new());
    for _ in 0..CONNECTIONS {
        let holder = world.database.connect().await;
        holder.batch_execute("begin").await.unwrap();
        let left = holder.query(LEFT, &[&TRACKED.as_slice()]).await.unwrap();
        let left: Vec<String> = left.iter().map(|row| row.get(0)).collect();
        assert!(left.is_empty(), "{left:?}");
        let process = holder.query_one("select pg_backend_pid()", &[]).await.unwrap();
        assert!(processes.insert(process.get::<_, i32>(0)));
        holders.push(holder);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn migrate_reports_a_pooler_without_prepared_statements_and_can_bypass_it() {
    if !PgBouncer::is_installed() {
        return;
    }
    let database = TestDatabase::empty().await;
    let forgetful = PgBouncer::start(&database, CONNECTIONS, 0).await;
    let refused = run_over(forgetful.url(), "migrate").await;
    let told = refused.failure().output();
    assert!(told.contains("`max_prepared_statements`"), "{told}");
    let past = [
        ("DATABASE_URL", forgetful.url()),
        ("SELLER_API__DATABASE__DIRECT_URL", database.url()),
    ];
    run_alone("migrate", &past).await.success();

    let options = settings(ServerOptions::new(PROGRAM));
    let server = TestServer::listen(&options, forgetful.url()).await;
    server.not_ready().await;
    let log = server.log_with(|log| log.contains("not ready")).await;
    assert!(log.contains("`max_prepared_statements`"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_that_begins_to_lose_prepared_statements_is_not_used() {
    if !PgBouncer::is_installed() {
        return;
    }
    let database = TestDatabase::create().await;
    let mut pgbouncer = PgBouncer::start(&database, CONNECTIONS, STATEMENTS).await;
    let pooled = TestDatabase::at_url(pgbouncer.url());
    let world = World::over(PROGRAM, pooled, settings).await;
    let trader = world.trader().await;
    let offer = world.any_offer(&trader.seller, json!({})).await;
    let change = || world.patching(&trader.token, &offer, &json!({"stock": 1})).send();
    change().await.expect(200);
    pgbouncer.restart(0).await;
    until("it is not ready for that", async || {
        // Reads and changes of one process give one name to different statements.
        change().await;
        let ready = format!("{}/readyz", world.server.backoffice_url);
        let ready = world.client.get(&ready).send().await;
        String::from_utf8_lossy(&ready.bytes).contains("max_prepared_statements")
    })
    .await;
    // And it stays so, whatever a statement finds by chance.
    for _ in 0..5 {
        change().await.expect(500).must("retry-after");
        refuses_with(&world.server, &["max_prepared_statements"]).await;
    }
    pgbouncer.restart(STATEMENTS).await;
    world.server.ready().await;
    change().await.expect(200);
}

/// PgBouncer reports the loss in words and under a code of its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_database_crashes_behind_the_pooler_is_an_outage() {
    if !PgBouncer::is_installed() {
        return;
    }
    let postgres = OwnPostgres::start(|options| options).await;
    let pgbouncer = PgBouncer::start(&postgres.database(), CONNECTIONS, STATEMENTS).await;
    let pooled = TestDatabase::at_url(pgbouncer.url());
    let world = World::over(PROGRAM, pooled, settings).await;
    let trader = world.trader().await;
    let offer = async || world.any_offer(&trader.seller, json!({})).await;
    let offers = [offer().await, offer().await];
    let holder = postgres.database().connect().await;
    let lock = "begin; select 1 from offers for update";
    holder.batch_execute(lock).await.unwrap();
    // Two connections are lost: the end of an outage counts no single one.
    let answers = offers.map(|offer| {
        let change = world.patching(&trader.token, &offer, &json!({"stock": 1}));
        tokio::spawn(change.send())
    });
    world.waiters(2).await;
    let waiting = "select min(pid) from pg_stat_activity where wait_event_type = 'Lock'";
    let waiting: i32 = holder.query_one(waiting, &[]).await.unwrap().get(0);
    kill_process(Pid::from_raw(waiting).unwrap(), Signal::KILL).unwrap();
    for answer in answers {
        answer.await.unwrap().expect(500).must("retry-after");
    }
    let told = |log: &str| log.contains("is unavailable: server conn crashed?");
    world.server.log_with(told).await;
    world.server.ready().await;
    let counted = |log: &str| log.contains("connections to it were lost meanwhile");
    let log = world.server.log_with(counted).await;
    let lines = log.matches("a connection to the database was lost").count();
    assert!(lines <= 2, "one an outage: {log}");
    // Who meets the pooler only while the server is away takes it for an outage, too.
    drop(postgres);
    let refused = run_over(pgbouncer.url(), "migrate").await;
    let told = refused.failure().output();
    assert!(!told.contains("prepared statements"), "{told}");
}
