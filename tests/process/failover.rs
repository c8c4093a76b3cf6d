//! The primary is killed under writing load and its synchronous standby is promoted: every process finds it by itself, and all
//! that was answered is there.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use blackbox::{Application, Receiver, Trader, World, eventually, line, merged, order_body, run};
use chrono::TimeDelta;
use private_postgres::{Cluster, Options};
use reqwest::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{Answer, Request, ServerOptions, TestDatabase, TestWorker};
use tokio::task::JoinHandle;

use crate::{PROGRAM, deliveries::without_workers};

const WRITERS: usize = 4;
/// What has to be answered before the primary dies, and again after the promotion.
const ENOUGH: usize = 60;
/// How soon after the promotion, or another start, the service answers again.
pub(crate) const BACK_WITHIN: Duration = Duration::from_secs(10);
/// Longer than a claim on an idempotency key or on a lane of deliveries.
const LEASE: TimeDelta = TimeDelta::seconds(61);

/// A primary and its standby.
struct Pair {
    primary: Cluster,
    standby: Cluster,
    _folders: [TempDir; 2],
}

impl Pair {
    fn start() -> Self {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [first, second] = [&folders[0], &folders[1]].map(|folder| Options::new(folder.path()));
        let primary = Cluster::start(first.throw_away(true)).unwrap();
        let second = second.throw_away(true).standby_of(primary.connection());
        let standby = Cluster::start(second).unwrap();
        Self {
            primary,
            standby,
            _folders: folders,
        }
    }

    /// The URL that names both.
    fn url(&self) -> String {
        let [first, second] = [&self.primary, &self.standby].map(|cluster| {
            let connection = cluster.connection();
            let folder = connection.socket_folder().to_str().unwrap();
            folder.replace('/', "%2F")
        });
        format!("postgres://postgres@{first},{second}/postgres?target_session_attrs=read-write")
    }

    /// From now on no commit is answered that the standby has not written down.
    async fn synchronise(&self) {
        let url = self.primary.url("postgres");
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
            .await
            .unwrap();
        tokio::spawn(async move { drop(connection.await) });
        for statement in [
            "alter system set synchronous_standby_names = '*'",
            "select pg_reload_conf()",
        ] {
            client.batch_execute(statement).await.unwrap();
        }
        eventually("a synchronous standby", async || {
            let followers = "select count(*) from pg_stat_replication where sync_state = 'sync'";
            let count: i64 = client.query_one(followers, &[]).await.unwrap().get(0);
            (count == 1).then_some(())
        })
        .await;
    }

    fn kill_primary(&self) {
        kill_postmaster(&self.primary);
    }
}

/// Kills a server's first process as a machine's sudden end does. Its children end when they see it.
pub(crate) fn kill_postmaster(cluster: &Cluster) {
    let process = i32::try_from(cluster.server_process().unwrap()).unwrap();
    kill_process(Pid::from_raw(process).unwrap(), Signal::KILL).unwrap();
}

/// A write, with a key of its own.
#[derive(Debug, Clone)]
enum Deed {
    /// The stock of the n-th writer's offer.
    Stock { offer: String, stock: usize },
    /// An order of one piece.
    Order { sku: String },
}

/// What was asked for.
#[derive(Debug, Default)]
struct Done {
    answered: Vec<(Deed, Answer)>,
    /// What failed, or was not answered at all: it may have been done, or not.
    open: Vec<Deed>,
    tokens: Vec<String>,
}

/// Who asks, and for what.
#[derive(Clone)]
struct Load {
    world: Arc<World>,
    trader: Trader,
    application: Application,
    sold: String,
    numbers: Arc<AtomicUsize>,
    answered: Arc<AtomicUsize>,
    ends: Arc<AtomicBool>,
}

impl Load {
    fn request(&self, deed: &Deed) -> Request {
        let request = match deed {
            Deed::Stock { offer, stock } => {
                let body = json!({"stock": stock});
                self.world.patching(&self.trader.token, offer, &body)
            }
            Deed::Order { sku } => {
                let item = merged(line(&self.trader.seller, &self.sold, 1), json!({"sku": sku}));
                let body = order_body(&[item], json!({}));
                self.world.office(Method::POST, "/orders").json(&body)
            }
        };
        request.header("idempotency-key", &format!("{deed:?}"))
    }

    async fn is_done(&self, deed: &Deed) -> Option<Answer> {
        let answer = self.request(deed).try_send().await.ok()?;
        matches!(answer.status, 200 | 201).then_some(answer)
    }

    /// Writes until the end is called. What fails is not asked for again, since its key may be taken for a while.
    async fn write(self, offer: String) -> Done {
        let mut done = Done::default();
        while !self.ends.load(Ordering::Relaxed) {
            let n = self.numbers.fetch_add(1, Ordering::Relaxed);
            let stock = Deed::Stock {
                offer: offer.clone(),
                stock: n,
            };
            let order = Deed::Order {
                sku: format!("SKU-{n}"),
            };
            for deed in [stock, order] {
                if let Some(answer) = self.is_done(&deed).await {
                    self.answered.fetch_add(1, Ordering::Relaxed);
                    done.answered.push((deed, answer));
                } else {
                    done.open.push(deed);
                    // The outage is not to be filled with failures alone.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
            let answer = self.world.token_answer(&self.application).await;
            if answer.status == 200 {
                let token = answer.json()["access_token"].as_str().unwrap().to_owned();
                done.tokens.push(token);
            }
        }
        done
    }

    fn start(&self, offers: &[String]) -> Vec<JoinHandle<Done>> {
        let writers = offers.iter().cloned();
        writers
            .map(|offer| tokio::spawn(self.clone().write(offer)))
            .collect()
    }

    /// Waits until enough has been answered from now on.
    async fn makes_progress(&self) {
        let goal = self.answered.load(Ordering::Relaxed) + ENOUGH;
        eventually("answers to writes", async || {
            (self.answered.load(Ordering::Relaxed) >= goal).then_some(())
        })
        .await;
    }

    /// Holds a deed to having been done exactly once.
    async fn is_there_once(&self, deed: &Deed) {
        let (statement, value) = match deed {
            Deed::Stock { stock, .. } => (
                "select count(*) from changes where stock::text = $1",
                stock.to_string(),
            ),
            Deed::Order { sku } => (
                "select count(*) from seller_orders where items->0->>'sku' = $1",
                sku.clone(),
            ),
        };
        assert_eq!(self.world.count(statement, &value).await, 1, "{deed:?}");
    }
}

fn settings(options: ServerOptions) -> ServerOptions {
    without_workers(options)
        .set("SELLER_API__OAUTH__TOKEN_LIMIT_PER_IP", 1_000_000)
        .set("SELLER_API__OAUTH__TOKEN_LIMIT_PER_CLIENT", 1_000_000)
}

/// The orders that a receiver was told of.
fn told(receiver: &Receiver) -> HashSet<String> {
    let mut orders = HashSet::new();
    for event in receiver.received() {
        orders.extend(event.json()["data"]["order_id"].as_str().map(str::to_owned));
    }
    orders
}

#[tokio::test(flavor = "multi_thread")]
async fn a_promoted_standby_is_found_and_nothing_that_was_answered_is_lost() {
    let pair = tokio::task::spawn_blocking(Pair::start).await.unwrap();
    pair.synchronise().await;
    let url = pair.url();
    run(PROGRAM, &["migrate"], &[("DATABASE_URL", &url)])
        .await
        .success();
    let database = TestDatabase::elsewhere(&url);
    let world = Arc::new(World::over(PROGRAM, database, settings).await);
    let _worker = TestWorker::start(&world.options, &world.database);
    let (own, receiver) = (world.integration().await, Receiver::start().await);
    let hook = world.hook(&own.token, &receiver).await;
    let trader = own.trader();
    let sold = world.any_offer(&trader.seller, json!({"stock": 1_000_000})).await;
    let mut offers = Vec::new();
    for _ in 0..WRITERS {
        offers.push(world.any_offer(&trader.seller, json!({"stock": 0})).await);
    }
    let load = Load {
        world: Arc::clone(&world),
        trader,
        application: own.application.clone(),
        sold,
        numbers: Arc::new(AtomicUsize::new(1_000)),
        answered: Arc::default(),
        ends: Arc::default(),
    };
    let writers = load.start(&offers);
    load.makes_progress().await;

    pair.kill_primary();
    world.server.not_ready().await;
    let pair = tokio::task::spawn_blocking(move || {
        pair.standby.promote().unwrap();
        pair
    });
    let pair = pair.await.unwrap();
    let promoted = Instant::now();
    let mut attempts = 0;
    eventually("an answer after the promotion", async || {
        attempts += 1;
        let sku = format!("AFTER-{attempts}");
        load.is_done(&Deed::Order { sku }).await
    })
    .await;
    let took = promoted.elapsed();
    assert!(took <= BACK_WITHIN, "answers came only after {took:?}");
    world.server.ready().await;
    load.makes_progress().await;
    load.ends.store(true, Ordering::Relaxed);
    let mut done = Vec::new();
    for writer in writers {
        done.push(writer.await.unwrap());
    }

    // What was under way when the primary died keeps its claims for a while.
    world.database.control_clock().await.advance(LEASE).await;
    let mut placed = HashSet::new();
    for (deed, answer) in done.iter().flat_map(|done| &done.answered) {
        load.is_there_once(deed).await;
        let again = load.request(deed).send().await;
        assert_eq!(
            (again.status, &again.bytes),
            (answer.status, &answer.bytes),
            "{deed:?}"
        );
        placed.extend(order_of(answer));
    }
    for deed in done.iter().flat_map(|done| &done.open) {
        let answer = eventually("an answer to the repeat", async || load.is_done(deed).await).await;
        load.is_there_once(deed).await;
        placed.extend(order_of(&answer));
    }
    for token in done.iter().flat_map(|done| &done.tokens) {
        world.get(token, "/v1/me").await.expect(200);
    }
    assert!(done.iter().any(|done| !done.tokens.is_empty()));
    eventually("a delivery of each order", async || {
        placed.is_subset(&told(&receiver)).then_some(())
    })
    .await;
    eventually("the end of the deliveries", async || {
        (world.waiting(&hook.id).await == 0).then_some(())
    })
    .await;
    drop(pair);
}

fn order_of(answer: &Answer) -> Option<String> {
    let body: Value = answer.json();
    body["order_id"].as_str().map(str::to_owned)
}
