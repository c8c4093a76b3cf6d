//! The disk of the sandbox's folder is full: errors say so, and once there is space nothing is lost.

use std::time::{Duration, Instant};

use blackbox::{Sandbox, until};
use reqwest::Method;
use rustix::process::Signal;
use serde_json::json;
use testkit::SmallDisk;

use crate::{PROGRAM, disk_full::small_disk, outage::may_be_repeated, sandbox::Trade};

/// The expected text if there is no space.
const NO_SPACE: &str = "No space left on device";
/// The expected text if PostgreSQL exists already: its log may have no room for the error.
const FULL: &str = "its disk is full";

/// Asserts that a start fails. Returns the errors.
async fn refused(disk: &SmallDisk) -> String {
    Sandbox::refused(PROGRAM, disk.path(), 1).await.stderr
}

/// The example's stock: the last acknowledged value and the last one that was sent.
struct Stock {
    acknowledged: i64,
    tried: i64,
}

impl Stock {
    /// Whether the change was acknowledged. Otherwise asserts that it may be repeated.
    async fn is_written(&mut self, trade: &Trade) -> bool {
        self.tried += 1;
        let begun = Instant::now();
        let answer = trade
            .offer(Method::PATCH)
            .json(&json!({"stock": self.tried}))
            .send()
            .await;
        assert!(begun.elapsed() < Duration::from_secs(3), "{answer:?}");
        if answer.status == 200 {
            self.acknowledged = self.tried;
            return true;
        }
        assert_eq!(answer.status, 500, "{answer:?}");
        may_be_repeated(&answer);
        false
    }

    /// Asserts that the stock is the acknowledged one or the one sent after it: a change may succeed although
    /// its answer was 500.
    async fn is_kept(&self, trade: &Trade) {
        let stock = trade.offer(Method::GET).send().await.expect(200).json()["stock"].as_i64();
        let possible = self.acknowledged..=self.tried;
        assert!(
            possible.contains(&stock.unwrap()),
            "{stock:?} is none of {possible:?}"
        );
    }
}

/// Switches to new WAL files until there is no space for one, which stops the server.
async fn use_up_the_log(trade: &Trade, stock: &mut Stock) {
    let client = trade.database().await.unwrap();
    while client.batch_execute("select pg_switch_wal()").await.is_ok() {
        stock.is_written(trade).await;
    }
}

#[tokio::test]
async fn without_space_it_says_so_and_what_it_has_it_keeps() {
    let Some(disk) = small_disk(256) else { return };
    disk.fill();
    let told = refused(&disk).await;
    assert!(told.contains(NO_SPACE), "{told}");
    // Enough for some files, but not for a PostgreSQL.
    disk.free();
    disk.fill_but_for(8);
    let told = refused(&disk).await;
    assert!(told.contains(NO_SPACE), "{told}");
    disk.free();
    let trade = Trade::start(disk.path(), &[], &[]).await;
    let mut stock = Stock {
        acknowledged: 0,
        tried: 1_000,
    };
    assert!(stock.is_written(&trade).await);

    // The sandbox runs while there is no space, and recovers by itself.
    disk.fill();
    use_up_the_log(&trade, &mut stock).await;
    until("the word of it", async || trade.sandbox.output().contains(FULL)).await;
    assert!(!stock.is_written(&trade).await);
    may_be_repeated(&trade.offer(Method::GET).send().await.expect(500));
    assert!(!trade.is_ready().await);
    disk.free();
    until("readiness", async || trade.is_ready().await).await;
    stock.is_kept(&trade).await;
    assert!(stock.is_written(&trade).await);

    // It stops while there is no space, and does not start.
    disk.fill();
    use_up_the_log(&trade, &mut stock).await;
    trade.end(Signal::INT).await;
    let told = refused(&disk).await;
    assert!(told.contains(FULL), "{told}");
    disk.free();
    let trade = Trade::start(disk.path(), &[], &[]).await;
    stock.is_kept(&trade).await;
    assert!(stock.is_written(&trade).await);
    trade.end(Signal::INT).await;
    std::fs::remove_file(disk.path().with_extension("log")).unwrap();
}
