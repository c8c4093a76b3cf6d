//! Writes under a fault, and what each of them came to: what was answered is there once, what was not is decided by a repeat.

use std::time::Duration;

use blackbox::{Trader, World, eventually, requests};
use serde_json::json;
use testkit::{Answer, Request};

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
        drop(world.database.control_clock().await);
        let trader = world.trader().await;
        Self {
            offer: world.any_offer(&trader.seller, json!({"stock": 0})).await,
            trader,
            next: 10_000,
            acknowledged: Vec::new(),
            open: Vec::new(),
        }
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

    /// How much was answered well, and how much was not.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.acknowledged.len(), self.open.len())
    }

    async fn times(&self, world: &World, stock: i32) -> i64 {
        let told = "select count(*) from changes where stock::text = $1";
        world.count(told, &stock.to_string()).await
    }

    /// When all is well again: what was answered is there once and is answered alike, and what was not can be had.
    pub(crate) async fn holds(&self, world: &World) {
        // Not over the clock's own connection, which may have been lost.
        let database = world.database.connect().await;
        database.batch_execute(LEASE_ENDS).await.unwrap();
        for (stock, answer) in &self.acknowledged {
            assert_eq!(self.times(world, *stock).await, 1, "{stock} was answered");
            let again = self.request(world, *stock).send().await;
            assert_eq!((again.status, &again.bytes), (200, &answer.bytes));
        }
        for stock in &self.open {
            assert!(self.times(world, *stock).await <= 1, "{stock} was not answered");
            eventually("an answer to the repeat", async || {
                let answer = self.request(world, *stock).send().await;
                (answer.status == 200).then_some(())
            })
            .await;
            assert_eq!(self.times(world, *stock).await, 1, "{stock} was repeated");
        }
    }
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
