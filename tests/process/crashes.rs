//! The server is killed in the middle of writing: nothing that was answered is lost, nothing that is repeated is done twice.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, Hasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use blackbox::{Trader, World, eventually, line, order_body, parcel};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::{Answer, Client, OwnPostgres, ServerOptions};
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::PROGRAM;

const WRITERS: usize = 8;
/// How many writes a server answers before it is killed, at most.
const MOST_ANSWERS: u64 = 120;

/// Longer than a server waits for anything, so that whatever is not answered by then never will be.
const ANSWER_WITHIN: Duration = Duration::from_mins(1);

/// How many times the server is killed; `CRASH_ROUNDS` asks for more in a long run.
fn rounds() -> usize {
    let asked = std::env::var("CRASH_ROUNDS").ok();
    asked.and_then(|rounds| rounds.parse().ok()).unwrap_or(3)
}

/// A request with a key of its own.
#[derive(Debug, Clone)]
struct Intent {
    method: Method,
    path: String,
    body: Option<Value>,
    key: String,
    is_sellers: bool,
}

/// The ways to the present server.
#[derive(Debug, Clone)]
struct Door {
    client: Client,
    base: String,
    office: String,
    operator: String,
    token: String,
}

impl Door {
    fn to(world: &World, trader: &Trader) -> Self {
        Self {
            client: world.client.clone(),
            base: world.server.base_url.clone(),
            office: world.server.backoffice_url.clone(),
            operator: world.server.operator_token.clone(),
            token: trader.token.clone(),
        }
    }

    async fn send(&self, intent: &Intent) -> Option<Answer> {
        let (origin, token) = if intent.is_sellers {
            (&self.base, &self.token)
        } else {
            (&self.office, &self.operator)
        };
        let request = self
            .client
            .request(intent.method.clone(), &format!("{origin}{}", intent.path));
        let request = request.bearer(token).header("idempotency-key", &intent.key);
        let request = match &intent.body {
            Some(body) => request.json(body),
            None => request,
        };
        // Now and then the client itself never learns that its connection has ended.
        timeout(ANSWER_WITHIN, request.try_send()).await.ok()?.ok()
    }

    /// Asks until the answer is one: a transaction of the dead server may still be ending in the database.
    async fn settle(&self, intent: &Intent) -> Answer {
        eventually("an answer to the repeat", async || {
            let answer = self.send(intent).await?;
            let pending = answer
                .errors()
                .iter()
                .any(|(code, _)| code == "idempotency_in_progress");
            (!pending).then_some(answer)
        })
        .await
    }
}

/// What was asked for, whoever answered.
#[derive(Debug, Default)]
struct Done {
    stocks: Vec<i32>,
    skus: Vec<String>,
    shipped: Vec<Uuid>,
    /// How much of it was answered before the end.
    acknowledged: usize,
    /// The last of that.
    last: Option<(Intent, Answer)>,
}

/// What one writer works with.
struct Writer {
    door: Door,
    trader: Trader,
    offer: String,
    sold: String,
    counter: Arc<AtomicUsize>,
    answers: Arc<AtomicUsize>,
    done: Done,
}

impl Writer {
    /// Writes until the server is gone; gives what was not answered.
    async fn run(mut self) -> (Done, Intent) {
        loop {
            let n = self.counter.fetch_add(1, Ordering::Relaxed);
            let patch = Self::intent(
                Method::PATCH,
                format!("/v1/offers/{}", self.offer),
                Some(json!({"stock": n})),
                n,
            );
            self.done.stocks.push(i32::try_from(n).unwrap());
            if let Err(unanswered) = self.step(patch, 200).await {
                return (self.done, unanswered);
            }
            let sku = format!("SKU-{n}");
            let item = blackbox::merged(line(&self.trader.seller, &self.sold, 1), json!({"sku": sku}));
            let place = Self::intent(
                Method::POST,
                "/orders".to_owned(),
                Some(order_body(&[item], json!({}))),
                n,
            );
            self.done.skus.push(sku);
            let placed = match self.step(place, 201).await {
                Ok(answer) => answer.json(),
                Err(unanswered) => return (self.done, unanswered),
            };
            let id = placed["order_id"].as_str().unwrap().to_owned();
            let pay = Self::intent(Method::POST, format!("/orders/{id}/payment"), None, n);
            if let Err(unanswered) = self.step(pay, 200).await {
                return (self.done, unanswered);
            }
            let ship = Self::intent(
                Method::POST,
                format!("/v1/orders/{id}/shipments"),
                Some(parcel("CRASH-1")),
                n,
            );
            self.done.shipped.push(id.parse().unwrap());
            if let Err(unanswered) = self.step(ship, 201).await {
                return (self.done, unanswered);
            }
        }
    }

    fn intent(method: Method, path: String, body: Option<Value>, n: usize) -> Intent {
        let (is_sellers, key) = (path.starts_with("/v1"), format!("{n} {path}"));
        Intent {
            method,
            path,
            body,
            key,
            is_sellers,
        }
    }

    async fn step(&mut self, intent: Intent, status: u16) -> Result<Answer, Intent> {
        match self.door.send(&intent).await {
            Some(answer) => {
                self.done.acknowledged += 1;
                self.answers.fetch_add(1, Ordering::Relaxed);
                let answer = answer.expect(status);
                self.done.last = Some((intent, answer.clone()));
                Ok(answer)
            }
            None => Err(intent),
        }
    }
}

/// Holds all that a round has asked for to being there exactly once.
async fn exactly_once(client: &tokio_postgres::Client, done: &[Done]) {
    let stocks: Vec<_> = done.iter().flat_map(|done| &done.stocks).collect();
    let skus: Vec<_> = done.iter().flat_map(|done| &done.skus).collect();
    let shipped: Vec<_> = done.iter().flat_map(|done| &done.shipped).collect();
    let wanted: [(&str, &str, &(dyn ToSql + Sync)); 5] = [
        ("int[]", "changes t on t.stock = w.it", &stocks),
        ("text[]", "seller_orders t on t.items->0->>'sku' = w.it", &skus),
        (
            "uuid[]",
            "seller_orders t on t.order_id = w.it and t.status = 'shipped'",
            &shipped,
        ),
        (
            "uuid[]",
            "changes t on t.order_id = w.it and t.kind = 'order.shipped'",
            &shipped,
        ),
        ("uuid[]", "mails t on t.order_id = w.it", &shipped),
    ];
    for (kind, rows, values) in wanted {
        let statement = format!(
            "select w.it::text, count(t.tableoid) from unnest($1::{kind}) w(it) left join {rows}
             group by w.it having count(t.tableoid) <> 1"
        );
        let wrong = client.query(&statement, &[values]).await.unwrap();
        let wrong: Vec<(String, i64)> = wrong.iter().map(|row| (row.get(0), row.get(1))).collect();
        assert_eq!(wrong, [], "not once: {rows}");
    }
}

/// A point in time that nobody chose: after some answers, and a little while.
pub(crate) async fn moment(answers: &AtomicUsize) {
    let chance = RandomState::new().build_hasher().finish();
    let enough = usize::try_from(chance % MOST_ANSWERS).unwrap();
    eventually("answers to writes", async || {
        (answers.load(Ordering::Relaxed) >= enough).then_some(())
    })
    .await;
    tokio::time::sleep(Duration::from_micros(chance / MOST_ANSWERS % 20_000)).await;
}

/// No client is held up by a limit.
pub(crate) fn unlimited(options: ServerOptions) -> ServerOptions {
    options.set("SELLER_API__RATE_LIMIT__DEFAULT", 1_000_000)
}

/// The feed's reader sees each change that is there, and each stock once.
pub(crate) async fn fed_once(world: &World) {
    let feed = eventually("the feed", async || {
        let feed = world.caught_up_feed().await;
        let stocks = world
            .count("select count(*) from changes where $1 = ''", "")
            .await;
        (i64::try_from(feed.len()).unwrap() == stocks).then_some(feed)
    })
    .await;
    let stocks: Vec<_> = feed.iter().filter_map(|item| item["stock"].as_u64()).collect();
    let distinct: std::collections::BTreeSet<_> = stocks.iter().collect();
    assert_eq!(stocks.len(), distinct.len());
}

/// What a run has seen.
#[derive(Debug, Default)]
struct Seen {
    rounds: usize,
    acknowledged: usize,
    unanswered: BTreeMap<String, usize>,
    /// Of those without an answer, how many had been done before the end.
    were_done: usize,
    placed: u64,
}

impl Seen {
    fn unanswered(&mut self, intent: &Intent, settled: &Answer) {
        let what = intent.path.split('/').next_back().unwrap();
        // An offer is named by its id.
        let what = if intent.method == Method::PATCH {
            "offer"
        } else {
            what
        };
        *self.unanswered.entry(what.to_owned()).or_default() += 1;
        self.were_done += usize::from(settled.header("idempotent-replayed").is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::print_stderr, reason = "a long run tells what it has seen")]
async fn killed_at_any_point_nothing_is_lost_and_nothing_done_twice() {
    let postgres = OwnPostgres::start(|options| options).await;
    let mut world = World::over(PROGRAM, postgres.database(), unlimited).await;
    let clock = world.database.control_clock().await;
    let looking = world.database.connect().await;
    // What is looked for is compared with all that is there, once.
    looking.batch_execute("set enable_nestloop = off").await.unwrap();
    let trader = world.trader().await;
    let sold = world.any_offer(&trader.seller, json!({"stock": 1_000_000})).await;
    let mut offers = Vec::new();
    for _ in 0..WRITERS {
        offers.push(world.any_offer(&trader.seller, json!({"stock": 0})).await);
    }
    let counter = Arc::new(AtomicUsize::new(1_000));
    let mut seen = Seen::default();
    for round in 0..rounds() {
        let (door, answers) = (Door::to(&world, &trader), Arc::<AtomicUsize>::default());
        let writers = offers.iter().map(|offer| Writer {
            door: door.clone(),
            trader: trader.clone(),
            offer: offer.clone(),
            sold: sold.clone(),
            counter: Arc::clone(&counter),
            answers: Arc::clone(&answers),
            done: Done::default(),
        });
        let running: Vec<_> = writers.map(|writer| tokio::spawn(writer.run())).collect();
        moment(&answers).await;
        world.server.kill();
        let next = world.another().await;
        world.server = next;
        // The claims of the dead one run out.
        clock.advance(chrono::TimeDelta::seconds(61)).await;
        let door = Door::to(&world, &trader);
        let mut all = Vec::new();
        for writer in running {
            let (done, unanswered) = writer.await.unwrap();
            let settled = door.settle(&unanswered).await;
            assert!(
                matches!(settled.status, 200 | 201),
                "round {round}: {unanswered:?}: {settled:?}"
            );
            seen.unanswered(&unanswered, &settled);
            if let Some((intent, answer)) = &done.last {
                let again = door.settle(intent).await;
                assert_eq!(
                    (again.status, &again.bytes),
                    (answer.status, &answer.bytes),
                    "round {round}: {intent:?}"
                );
            }
            seen.acknowledged += done.acknowledged;
            seen.placed += u64::try_from(done.skus.len()).unwrap();
            all.push(done);
        }
        exactly_once(&looking, &all).await;
        seen.rounds += 1;
        if seen.rounds.is_multiple_of(25) {
            eprintln!("{seen:?}");
        }
    }
    eprintln!("{seen:?}");
    assert!(seen.placed > 0, "a load that writes nothing shows nothing");
    let left = world.fed_offer(&trader.seller, &sold).await["stock"]
        .as_u64()
        .unwrap();
    assert_eq!(
        left,
        1_000_000 - seen.placed,
        "stock went down once for each order ({seen:?})"
    );
    fed_once(&world).await;
}
