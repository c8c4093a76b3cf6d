//! Writes under a fault, and what each of them came to: what was answered is there once, what was not is decided by a repeat.

use std::time::Duration;

use blackbox::{Expect, Trader, World, eventually, requests};
use serde_json::json;
use testkit::{Answer, Request};
use tokio_postgres::Client;

use crate::outage::comes_again;

/// On by more than a request holds its key.
const LEASE_ENDS: &str = "update test_clock set shift = shift + interval '61 s'";

/// One seller's changes of one offer's stock, each to a number of its own and under a key of its own.
pub(crate) struct Ledger {
    trader: Trader,
    offer: String,
    next: i32,
    acknowledged: Vec<(i32, Answer)>,
    open: Vec<i32>,
}

impl Ledger {
    /// A new seller's offer. The clock of the database is in the ledger's hand from now on.
    pub(crate) async fn open(world: &World) -> Self {
        Self::several(world, 1).await.remove(0)
    }

    /// So many of them, each with a seller and with numbers of its own.
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

    pub(crate) fn trader(&self) -> &Trader {
        &self.trader
    }

    fn request(&self, world: &World, stock: i32) -> Request {
        let body = json!({"stock": stock});
        let request = world.patching(&self.trader.token, &self.offer, &body);
        request.header("idempotency-key", &stock.to_string())
    }

    /// So many writes at once; each is done, or fails with the word that it may come again. Gives how many were done.
    pub(crate) async fn write(&mut self, world: &World, count: usize) -> usize {
        let mut asked = Vec::new();
        for _ in 0..count {
            self.next += 1;
            let request = self.request(world, self.next);
            asked.push((self.next, tokio::spawn(request.send())));
        }
        let mut done = 0;
        for (stock, asking) in asked {
            let answer = asking.await.unwrap();
            if answer.status == 200 {
                self.acknowledged.push((stock, answer));
                done += 1;
            } else {
                assert_eq!(answer.status, 500, "{answer:?}");
                comes_again(&answer);
                self.open.push(stock);
            }
        }
        done
    }

    /// Repeats what is open, until each is done or its key is still taken by what has failed.
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

    /// Holds the offer to having what the last good answer said.
    pub(crate) async fn ends_with_the_last(&self, world: &World) {
        let (stock, _) = self.acknowledged.last().unwrap();
        let offer = world.fed_offer(&self.trader.seller, &self.offer).await;
        assert_eq!(offer["stock"], *stock);
    }

    /// How much was answered well, and how much was not.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.acknowledged.len(), self.open.len())
    }

    /// When all is well again: what was answered is there once and is answered alike, and what was not can be had.
    pub(crate) async fn holds(&self, world: &World) {
        // Not over the clock's own connection, which may have been lost.
        let database = world.database.connect().await;
        database.batch_execute(LEASE_ENDS).await.unwrap();
        for (stock, answer) in &self.acknowledged {
            assert_eq!(times(&database, *stock).await, 1, "{stock} was answered");
            let again = self.request(world, *stock).send().await;
            assert_eq!((again.status, &again.bytes), (200, &answer.bytes));
        }
        for stock in &self.open {
            assert!(times(&database, *stock).await <= 1, "{stock} was not answered");
            eventually("an answer to the repeat", async || {
                let answer = self.request(world, *stock).send().await;
                (answer.status == 200).then_some(())
            })
            .await;
            assert_eq!(times(&database, *stock).await, 1, "{stock} was repeated");
        }
    }
}

/// How often a change to this stock was made.
async fn times(database: &Client, stock: i32) -> i64 {
    let told = "select count(*) from changes where stock = $1";
    database.query_one(told, &[&stock]).await.unwrap().get(0)
}

/// How long an answer may take.
const PROMISED: Duration = Duration::from_secs(3);

/// By its own log the server has answered everything within the time that is promised.
pub(crate) fn in_time(world: &World) {
    in_time_but_for(world, "", Duration::ZERO);
}

/// The same where requests of one method have more time.
pub(crate) fn in_time_but_for(world: &World, method: &str, longer: Duration) {
    for request in requests(&world.server.log()) {
        let took = request["duration_ms"].as_f64().unwrap();
        let time = if request["method"] == method {
            longer
        } else {
            PROMISED
        };
        assert!(took <= 1_000.0 * time.as_secs_f64(), "{request}");
    }
}
