//! The program is killed again and again, while batches and adjustments change offers, orders are placed and paid,
//! and a reader follows the journal: nothing is doubled, lost or skipped.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use blackbox::{World, line, order_body, text};
use chrono::TimeDelta;
use serde_json::{Value, json};
use testkit::{Answer, Request, TestServer};
use tokio::time::{sleep, timeout};

use crate::{PROGRAM, rounds, set};

const WRITERS: usize = 3;
/// Longest time between a start and its kill, in milliseconds.
const LATEST: u64 = 600;
/// Until a kept request is answered, over several kills.
const PATIENCE: Duration = Duration::from_mins(2);

/// Who trades, and where: the addresses of the process that runs.
struct Trade {
    world: World,
    addresses: Mutex<[String; 2]>,
    token: String,
    ends: AtomicBool,
    /// Everybody who writes has ended.
    is_written: AtomicBool,
}

impl Trade {
    fn is_at(&self, server: &TestServer) {
        *self.addresses.lock().unwrap() = [server.base_url.clone(), server.backoffice_url.clone()];
    }

    /// Repeats a request until it is answered with one of these statuses.
    async fn kept(
        &self,
        what: &str,
        statuses: &[u16],
        make: impl Fn(&Self, &[String; 2]) -> Request,
    ) -> Answer {
        let mut last = None;
        let repeating = async {
            loop {
                let addresses = self.addresses.lock().unwrap().clone();
                match make(self, &addresses).try_send().await {
                    Ok(answer) if statuses.contains(&answer.status) => return answer,
                    other => last = Some(other),
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        let answer = timeout(PATIENCE, repeating).await;
        answer.unwrap_or_else(|_| panic!("{what}: {last:?}"))
    }

    fn office(&self, [_, office]: &[String; 2], path: &str) -> Request {
        let request = self.world.client.post(&format!("{office}{path}"));
        request.bearer(&self.world.server.operator_token)
    }

    /// Adds a piece to both offers, by batches under keys; returns how often.
    async fn adds(self: Arc<Self>, writer: usize, offers: [String; 2]) -> u64 {
        let [one, other] = offers;
        let items = json!({"items": [
            {"id": one, "stock_adjustment": 1},
            {"id": "none", "stock": 7},
            {"id": other, "stock_adjustment": 1},
        ]});
        for n in 0.. {
            if self.ends.load(Ordering::Relaxed) {
                return n;
            }
            let key = format!("{writer}-{n}");
            let send = |trade: &Self, [public, _]: &[String; 2]| {
                let request = trade.world.client.post(&format!("{public}/v1/offers/batch"));
                let request = request.bearer(&trade.token).json(&items);
                request.header("idempotency-key", &key)
            };
            let done = self.kept("batch", &[200], send).await.json();
            let items = done["items"].as_array().unwrap();
            let statuses: Vec<_> = items.iter().map(|item| &item["http_status"]).collect();
            assert_eq!(statuses, [200, 404, 200]);
        }
        0
    }

    /// Places and pays orders; returns how many.
    async fn buys(self: Arc<Self>, line: Value) -> u64 {
        for n in 0.. {
            if self.ends.load(Ordering::Relaxed) {
                return n;
            }
            let number = format!("KILLS-{n}");
            let order = order_body(std::slice::from_ref(&line), json!({"order_number": number}));
            // A repetition finds the number taken.
            let place = |trade: &Self, addresses: &_| trade.office(addresses, "/orders").json(&order);
            self.kept("order", &[201, 409], place).await;
            let payment = format!("/orders/{number}/payment");
            let pay = |trade: &Self, addresses: &_| trade.office(addresses, &payment);
            self.kept("payment", &[200], pay).await;
        }
        0
    }

    /// Follows the journal to its end; returns the events' ids.
    async fn follows(self: Arc<Self>) -> Vec<String> {
        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let was_last = self.is_written.load(Ordering::Relaxed);
            let read = |trade: &Self, [public, _]: &[String; 2]| {
                let url = format!("{public}/v1/events?limit=7{after}");
                trade.world.client.get(&url).bearer(&trade.token)
            };
            let page = self.kept("journal", &[200], read).await.json();
            let events = page["items"].as_array().unwrap();
            seen.extend(events.iter().map(|event| text(event, "id")));
            after = format!("&after={}", text(&page, "cursor"));
            if page["has_more"] == false {
                if was_last {
                    return seen;
                }
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_double_lose_or_skip_nothing() {
    let settings = [("RATE_LIMIT__DEFAULT", "1000000"), ("RETENTION__EVENTS", "3650d")];
    let world = World::with(PROGRAM, |options| set(options, &settings)).await;
    let clock = world.database.control_clock().await;
    let seller = world.seller().await;
    let scopes = ["offers:write", "orders:read"];
    let token = world.personal_token(&seller, &scopes).await.token;
    world.set_limit(&token, 1_000_000).await;
    let shared = world.any_offer(&seller, json!({"stock": 0})).await;
    let sold = world.any_offer(&seller, json!({"stock": 1_000_000})).await;
    let mut own = Vec::new();
    for _ in 0..WRITERS {
        own.push(world.any_offer(&seller, json!({"stock": 0})).await);
    }
    let line = line(&seller, &sold, 1);
    let mut server = world.another().await;
    let trade = Arc::new(Trade {
        world,
        addresses: Mutex::default(),
        token,
        ends: AtomicBool::new(false),
        is_written: AtomicBool::new(false),
    });
    trade.is_at(&server);
    let writers = own.iter().enumerate().map(|(n, own)| {
        let offers = [shared.clone(), own.clone()];
        tokio::spawn(Arc::clone(&trade).adds(n, offers))
    });
    let writers: Vec<_> = writers.collect();
    let buyer = tokio::spawn(Arc::clone(&trade).buys(line));
    let reader = tokio::spawn(Arc::clone(&trade).follows());
    for round in 0..rounds(5) {
        sleep(Duration::from_millis(RandomState::new().hash_one(round) % LATEST)).await;
        server.kill();
        // What the killed process had claimed is free.
        clock.advance(TimeDelta::seconds(61)).await;
        server = trade.world.another().await;
        trade.is_at(&server);
    }
    trade.ends.store(true, Ordering::Relaxed);
    let mut added = 0;
    for (writer, offer) in writers.into_iter().zip(&own) {
        let done = i64::try_from(writer.await.unwrap()).unwrap();
        assert_eq!(trade.world.stock(&seller, offer).await, done);
        added += done;
    }
    assert_eq!(trade.world.stock(&seller, &shared).await, added);
    let bought = i64::try_from(buyer.await.unwrap()).unwrap();
    assert_eq!(trade.world.stock(&seller, &sold).await, 1_000_000 - bought);
    assert!(added > 0 && bought > 0, "{added} added, {bought} bought");
    trade.is_written.store(true, Ordering::Relaxed);
    let rows = "select id::text from journal order by number";
    let database = trade.world.database.connect().await;
    let rows = database.query(rows, &[]).await.unwrap();
    let journal: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(journal.len(), usize::try_from(2 * bought).unwrap());
    assert_eq!(reader.await.unwrap(), journal);
}
