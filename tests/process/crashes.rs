//! The server is killed in the middle of writing: nothing that was answered is lost, nothing that is repeated is done twice.

use std::{
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
use testkit::{Answer, Client, ServerOptions};

use crate::PROGRAM;

const WRITERS: usize = 8;

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
        request.try_send().await.ok()
    }
}

/// What was asked for, whoever answered.
#[derive(Debug, Default)]
struct Done {
    stocks: Vec<usize>,
    skus: Vec<String>,
    shipped: Vec<String>,
}

/// What one writer works with.
struct Writer {
    door: Door,
    trader: Trader,
    offer: String,
    sold: String,
    counter: Arc<AtomicUsize>,
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
            self.done.stocks.push(n);
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
            self.done.shipped.push(id);
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

    async fn step(&self, intent: Intent, status: u16) -> Result<Answer, Intent> {
        match self.door.send(&intent).await {
            Some(answer) => Ok(answer.expect(status)),
            None => Err(intent),
        }
    }
}

async fn exactly_once(world: &World, done: &Done) {
    let client = world.database.connect().await;
    let count = async |statement: &str, text: &str| -> i64 {
        client.query_one(statement, &[&text]).await.unwrap().get(0)
    };
    for stock in &done.stocks {
        let told = count(
            "select count(*) from changes where stock::text = $1",
            &stock.to_string(),
        )
        .await;
        assert_eq!(told, 1, "one feed row for stock {stock}");
    }
    for sku in &done.skus {
        let placed = count(
            "select count(*) from seller_orders where items->0->>'sku' = $1",
            sku,
        )
        .await;
        assert_eq!(placed, 1, "one order of {sku}");
    }
    for order in &done.shipped {
        let told = count(
            "select count(*) from changes where order_id::text = $1 and kind = 'order.shipped'",
            order,
        )
        .await;
        let mails = count("select count(*) from mails where order_id::text = $1", order).await;
        let shipped = count(
            "select count(*) from seller_orders where order_id::text = $1 and status = 'shipped'",
            order,
        )
        .await;
        assert_eq!((shipped, told, mails), (1, 1, 1), "order {order}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_point_nothing_is_lost_and_nothing_done_twice() {
    let unlimited = |options: ServerOptions| options.set("SELLER_API__RATE_LIMIT__DEFAULT", 1_000_000);
    let mut world = World::with(PROGRAM, unlimited).await;
    let clock = world.database.control_clock().await;
    let trader = world.trader().await;
    let sold = world.any_offer(&trader.seller, json!({"stock": 1_000_000})).await;
    let mut offers = Vec::new();
    for _ in 0..WRITERS {
        offers.push(world.any_offer(&trader.seller, json!({"stock": 0})).await);
    }
    let counter = Arc::new(AtomicUsize::new(1_000));
    let (mut placed, mut unanswered_of) = (0, std::collections::BTreeMap::<String, usize>::new());
    for round in 0..rounds() {
        let door = Door::to(&world, &trader);
        let writers = offers.iter().map(|offer| Writer {
            door: door.clone(),
            trader: trader.clone(),
            offer: offer.clone(),
            sold: sold.clone(),
            counter: Arc::clone(&counter),
            done: Done::default(),
        });
        let running: Vec<_> = writers.map(|writer| tokio::spawn(writer.run())).collect();
        // A point in time that nobody chose.
        let chance = RandomState::new().build_hasher().finish() % 400_000;
        tokio::time::sleep(Duration::from_micros(50_000 + chance)).await;
        world.server.kill();
        let next = world.another().await;
        world.server = next;
        // The claims of the dead one run out.
        clock.advance(chrono::TimeDelta::seconds(61)).await;
        let door = Door::to(&world, &trader);
        let mut all = Vec::new();
        for writer in running {
            let (done, unanswered) = writer.await.unwrap();
            *unanswered_of
                .entry(
                    unanswered
                        .path
                        .split('/')
                        .next_back()
                        .unwrap()
                        .chars()
                        .take(8)
                        .collect(),
                )
                .or_default() += 1;
            let settled = eventually("an answer to the repeat", async || {
                let answer = door.send(&unanswered).await?;
                // A transaction of the dead one may still be ending in the database.
                let pending = answer
                    .errors()
                    .iter()
                    .any(|(code, _)| code == "idempotency_in_progress");
                (!pending).then_some(answer)
            })
            .await;
            assert!(
                matches!(settled.status, 200 | 201),
                "round {round}: {unanswered:?}: {settled:?}"
            );
            all.push(done);
        }
        for done in &all {
            exactly_once(&world, done).await;
            placed += u64::try_from(done.skus.len()).unwrap();
        }
    }
    assert!(placed > 0, "a load that writes nothing shows nothing");
    let left = world.fed_offer(&trader.seller, &sold).await["stock"]
        .as_u64()
        .unwrap();
    assert_eq!(
        left,
        1_000_000 - placed,
        "stock went down once for each order ({unanswered_of:?})"
    );
    // And the feed's reader sees each once.
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
