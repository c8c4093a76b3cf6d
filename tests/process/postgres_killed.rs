//! All PostgreSQL processes are killed during keyed writes, and the server recovers on the same data. Claims
//! on idempotency keys are committed asynchronously, so some may be lost; no write is executed twice because
//! of that.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use blackbox::{World, eventually, until};
use private_postgres::Cluster;
use rustix::process::{Pid, Signal, kill_process};
use testkit::{OwnPostgres, TestDatabase};
use tokio::task::JoinHandle;

use crate::PROGRAM;
use crate::failover::kill_postmaster;
use crate::ledger::{Ledger, in_time_but_for};
use crate::paused::OUTCOME_WITHIN;

/// Maximum number of answered writes before a kill.
const MOST_ANSWERS: u64 = 120;
/// Time until the service answers again.
pub(crate) const BACK_WITHIN: Duration = Duration::from_secs(15);
const CLIENTS: i32 = 6;
const KILLS: usize = 3;
/// Time for a writer's last write after the recovery.
const ENDS_WITHIN: Duration = Duration::from_mins(1);

/// PostgreSQL's defaults, which this test is about.
const DURABLE: &str = "select count(*) from pg_settings
    where name in ('fsync', 'synchronous_commit') and setting = 'on'";

/// Several clients that write until `end`.
pub(crate) struct Writers {
    running: Vec<JoinHandle<Writer>>,
    pub(crate) answers: Arc<AtomicUsize>,
    ends: Arc<AtomicBool>,
}

/// Writes one change after another, and repeats failed ones once the service is ready again.
struct Writer {
    world: Arc<World>,
    ledger: Ledger,
    answers: Arc<AtomicUsize>,
    ends: Arc<AtomicBool>,
}

impl Writers {
    pub(crate) fn start(world: &Arc<World>, ledgers: Vec<Ledger>) -> Self {
        let (answers, ends) = (Arc::default(), Arc::default());
        let writers = ledgers.into_iter().map(|ledger| Writer {
            world: Arc::clone(world),
            ledger,
            answers: Arc::clone(&answers),
            ends: Arc::clone(&ends),
        });
        Self {
            running: writers.map(|writer| tokio::spawn(writer.run())).collect(),
            answers,
            ends,
        }
    }

    /// Waits until each writer has ended with a success, and checks all of their acknowledged writes.
    pub(crate) async fn end(self, world: &World) {
        self.ends.store(true, Ordering::Relaxed);
        for writer in self.running {
            let writer = tokio::time::timeout(ENDS_WITHIN, writer).await;
            let Writer { ledger, .. } = writer.unwrap().unwrap();
            ledger.ends_with_the_last(world).await;
            ledger.agrees_with_the_feed(world).await;
            ledger.holds(world).await;
        }
    }
}

impl Writer {
    async fn run(mut self) -> Self {
        loop {
            if self.ledger.write(&self.world, 1).await == 1 {
                self.answers.fetch_add(1, Ordering::Relaxed);
                if self.ends.load(Ordering::Relaxed) {
                    return self;
                }
            } else {
                self.world.server.ready().await;
                self.ledger.repeat(&self.world).await;
            }
        }
    }
}

/// Waits for a random moment: after some answers and a short time.
pub(crate) async fn moment(answers: &AtomicUsize) {
    let chance = RandomState::new().build_hasher().finish();
    let enough = answers.load(Ordering::Relaxed) + usize::try_from(1 + chance % MOST_ANSWERS).unwrap();
    until("answers to writes", async || {
        answers.load(Ordering::Relaxed) >= enough
    })
    .await;
    tokio::time::sleep(Duration::from_micros(chance / MOST_ANSWERS % 20_000)).await;
}

/// Asserts that a reader of the feed gets every change, and each stock once.
pub(crate) async fn fed_once(world: &World) {
    let feed = eventually("the feed", async || {
        let feed = world.caught_up_feed().await;
        let stocks = world.count("select count(*) from changes", &[]).await;
        (i64::try_from(feed.len()).unwrap() == stocks).then_some(feed)
    })
    .await;
    let stocks: Vec<_> = feed.iter().filter_map(|item| item["stock"].as_u64()).collect();
    let distinct: std::collections::BTreeSet<_> = stocks.iter().collect();
    assert_eq!(stocks.len(), distinct.len());
}

/// Kills the server and all of its processes at once.
pub(crate) async fn kill_all(cluster: &Cluster) {
    let admin = TestDatabase::at_url(&cluster.url("postgres")).connect().await;
    let others = admin
        .query("select pid from pg_stat_activity", &[])
        .await
        .unwrap();
    kill_postmaster(cluster);
    for other in others {
        // The process may have exited meanwhile.
        kill_process(Pid::from_raw(other.get(0)).unwrap(), Signal::KILL).unwrap_or_default();
    }
    until("the end of the server", async || !cluster.is_running()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_killed_and_recovers_has_lost_nothing_that_was_answered() {
    // The data must survive the crash.
    let postgres = OwnPostgres::start(|options| options.delete_at_end(false)).await;
    let world = Arc::new(
        World::over(PROGRAM, postgres.database(), |options| {
            options.set("SELLER_API__RATE_LIMIT__DEFAULT", 1_000_000)
        })
        .await,
    );
    assert_eq!(world.count(DURABLE, &[]).await, 2);
    let mut ledgers = Ledger::several(&world, CLIENTS + 1).await;
    let mut probe = ledgers.remove(0);
    let writers = Writers::start(&world, ledgers);
    let mut slowest = Duration::ZERO;
    for kill in 0..KILLS {
        moment(&writers.answers).await;
        kill_all(postgres.cluster()).await;
        // The first time, the test waits until the outage is noticed; later the server is back sooner than
        // that.
        if kill == 0 {
            world.server.not_ready().await;
            assert_eq!(probe.write(&world, 1).await, 0);
        }
        assert!(tokio::task::block_in_place(|| postgres.cluster().restart_if_dead()).unwrap());
        let started = Instant::now();
        until("an answer after the recovery", async || {
            probe.write(&world, 1).await == 1
        })
        .await;
        slowest = slowest.max(started.elapsed());
        world.server.ready().await;
    }
    assert!(slowest <= BACK_WITHIN, "answers came only after {slowest:?}");
    writers.end(&world).await;
    probe.holds(&world).await;
    fed_once(&world).await;
    // A request may wait for a COMMIT's outcome for its maximum time.
    in_time_but_for(&world, "PATCH", OUTCOME_WITHIN);
}
