//! Writes during a fault, and their outcomes: an acknowledged write exists exactly once; a repeat decides
//! every other one.

use std::{collections::BTreeMap, time::Duration};

use blackbox::{Expect, Seller, Trader, World, requests, until};
use serde_json::json;
use testkit::{Answer, OwnPostgres, Request};
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use crate::PROGRAM;
use crate::outage::{IN_TIME, may_be_repeated};

/// Advances the clock by more than the lease of an idempotency key.
const LEASE_ENDS: &str = "update test_clock set shift = shift + interval '61 s'";

/// One seller's changes of one offer's stock, each with a unique value and idempotency key.
pub(crate) struct Ledger {
    trader: Trader,
    offer: String,
    next: i32,
    acknowledged: Vec<(i32, Answer)>,
    open: Vec<i32>,
}

/// A write that has been sent, and its answer.
type Sent = (i32, JoinHandle<Result<Answer, reqwest::Error>>);

impl Ledger {
    /// Creates a seller with an offer. From now on the database's clock is controlled.
    pub(crate) async fn open(world: &World) -> Self {
        Self::several(world, 1).await.remove(0)
    }

    /// This number of ledgers, each with a separate seller and separate values.
    pub(crate) async fn several(world: &World, count: i32) -> Vec<Self> {
        drop(world.database.control_clock().await);
        let mut ledgers = Vec::new();
        for n in 1..=count {
            let trader = world.trader().await;
            ledgers.push(Self {
                offer: world.any_offer(&trader.seller, json!({"stock": 0})).await,
                trader,
                next: n * 10_000,
                acknowledged: Vec::new(),
                open: Vec::new(),
            });
        }
        ledgers
    }

    /// A world over this cluster, a reader with an offer, and a ledger with its first writes.
    pub(crate) async fn begun(postgres: &OwnPostgres) -> (World, Seller, String, Self) {
        let world = World::over(PROGRAM, postgres.database(), |options| options).await;
        let (seller, token) = world.reader().await;
        world.offer(&seller, 1, json!({})).await;
        let mut ledger = Self::open(&world).await;
        assert_eq!(ledger.write(&world, 8).await, 8);
        (world, seller, token, ledger)
    }

    pub(crate) fn trader(&self) -> &Trader {
        &self.trader
    }

    pub(crate) fn offer(&self) -> &str {
        &self.offer
    }

    fn request(&self, world: &World, stock: i32) -> Request {
        let body = json!({"stock": stock});
        let request = world.patching(&self.trader.token, &self.offer, &body);
        request.header("idempotency-key", &stock.to_string())
    }

    /// Sends concurrent writes. Each succeeds or fails with an error that allows a repeat. Returns the number
    /// of successes.
    pub(crate) async fn write(&mut self, world: &World, count: usize) -> usize {
        let sent = self.send(world, count);
        let (done, lost) = self.settle(sent).await;
        assert_eq!(lost, 0, "every write is answered");
        done
    }

    pub(crate) fn send(&mut self, world: &World, count: usize) -> Vec<Sent> {
        let stocks = (0..count).map(|_| {
            self.next += 1;
            self.next
        });
        let stocks = stocks.collect::<Vec<_>>();
        let send = |stock| (stock, tokio::spawn(self.request(world, stock).try_send()));
        stocks.into_iter().map(send).collect()
    }

    /// Waits for the answers. Returns the numbers of successes and of lost connections, whose writes are
    /// open.
    pub(crate) async fn settle(&mut self, sent: Vec<Sent>) -> (usize, usize) {
        let (mut done, mut lost) = (0, 0);
        for (stock, asking) in sent {
            let Ok(answer) = asking.await.unwrap() else {
                self.open.push(stock);
                lost += 1;
                continue;
            };
            if answer.status == 200 {
                self.acknowledged.push((stock, answer));
                done += 1;
            } else {
                if answer.status != 500 {
                    // A crash lost the claim, which is committed asynchronously, and so the write was not
                    // made.
                    answer.refused(409, "idempotency_in_progress");
                }
                may_be_repeated(&answer);
                self.open.push(stock);
            }
        }
        (done, lost)
    }

    /// Repeats the open writes until each has succeeded, or the failed request still holds its key.
    pub(crate) async fn repeat(&mut self, world: &World) {
        for stock in std::mem::take(&mut self.open) {
            let answer = loop {
                let answer = self.request(world, stock).send().await;
                if answer.status != 500 {
                    break answer;
                }
                world.server.ready().await;
            };
            if answer.status == 200 {
                self.acknowledged.push((stock, answer));
            } else {
                answer.refused(409, "idempotency_in_progress");
                self.open.push(stock);
            }
        }
    }

    /// Asserts that the offer has the stock of the last successful write.
    pub(crate) async fn ends_with_the_last(&self, world: &World) {
        let (stock, _) = self.acknowledged.last().unwrap();
        let offer = world.fed_offer(&self.trader.seller, &self.offer).await;
        assert_eq!(offer["stock"], *stock);
    }

    /// Asserts that the offer has the stock that the change feed reported last: there is no change without
    /// its row, and no row without its change.
    pub(crate) async fn agrees_with_the_feed(&self, world: &World) {
        let database = world.database.connect().await;
        let fed =
            "select stock from changes where offer_id = $1::text::uuid order by xid desc, id desc limit 1";
        let fed: i32 = database.query_one(fed, &[&self.offer]).await.unwrap().get(0);
        let stored = "select stock from offers where seller_id = $1::text::uuid and id = $2::text::uuid";
        let stored = database
            .query_one(stored, &[&self.trader.seller.id, &self.offer])
            .await;
        assert_eq!(stored.unwrap().get::<_, i32>(0), fed, "{}", self.offer);
    }

    /// The numbers of acknowledged and of open writes.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.acknowledged.len(), self.open.len())
    }

    /// After recovery: every acknowledged write exists once and its repeat gets the same answer; every open
    /// write can be repeated.
    pub(crate) async fn holds(&self, world: &World) {
        // The clock's own connection may be lost.
        let database = world.database.connect().await;
        database.batch_execute(LEASE_ENDS).await.unwrap();
        let made = self.changes_by_stock(&database).await;
        for (stock, answer) in &self.acknowledged {
            assert_eq!(made.get(stock), Some(&1), "{stock} was answered");
            let again = self.request(world, *stock).send().await;
            assert_eq!((again.status, &again.bytes), (200, &answer.bytes));
        }
        for stock in &self.open {
            assert!(
                made.get(stock).is_none_or(|times| *times == 1),
                "{stock} was not answered"
            );
            until("an answer to the repeat", async || {
                let answer = self.request(world, *stock).send().await;
                answer.status == 200
            })
            .await;
        }
        let made = self.changes_by_stock(&database).await;
        let all = self.acknowledged.iter().map(|(stock, _)| stock).chain(&self.open);
        for stock in all {
            assert_eq!(made.get(stock), Some(&1), "{stock} was repeated");
        }
    }

    /// How often the offer was changed to each stock.
    async fn changes_by_stock(&self, database: &Client) -> BTreeMap<i32, i64> {
        let query = "select stock, count(*) from changes where offer_id = $1::text::uuid and stock is not null group by stock";
        let rows = database.query(query, &[&self.offer]).await.unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }
}

/// Asserts by the server's log that all requests ended within the maximum duration.
pub(crate) fn in_time(world: &World) {
    in_time_but_for(world, "", Duration::ZERO);
}

/// Like [`in_time`], with a longer maximum for requests of one method.
pub(crate) fn in_time_but_for(world: &World, method: &str, longer: Duration) {
    let all = requests(&world.server.log());
    assert!(!all.is_empty(), "no request is logged");
    for request in all {
        let took = request["duration_ms"].as_f64().unwrap();
        let time = if request["method"] == method {
            longer
        } else {
            IN_TIME
        };
        assert!(took <= 1_000.0 * time.as_secs_f64(), "{request}");
    }
}
