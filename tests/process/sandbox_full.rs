//! The disk under the sandbox's folder is full: what is wrong is told, and once there is space nothing is lost.

use std::time::{Duration, Instant};

use blackbox::{Sandbox, eventually};
use reqwest::Method;
use rustix::process::Signal;
use serde_json::json;
use testkit::SmallDisk;

use crate::{PROGRAM, disk_full::small_disk, outage::comes_again, sandbox::Trade};

/// What has to be read where there is no space.
const NO_SPACE: &str = "No space left on device";
/// The same where there is a PostgreSQL already, whose log may have no room for it.
const FULL: &str = "its disk is full";

/// A start that must not come about; gives what it complains of.
async fn refused(disk: &SmallDisk) -> String {
    Sandbox::refused(PROGRAM, disk.path(), 1).await.stderr
}

/// The stock of the example that was acknowledged last, and the one that was tried last.
struct Stock {
    acknowledged: i64,
    tried: i64,
}

impl Stock {
    /// True where the change was acknowledged; else it may come again.
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
        comes_again(&answer);
        false
    }

    /// What was acknowledged is there, or what was tried after it: such a change may have come through although its answer was 500.
    async fn is_kept(&self, trade: &Trade) {
        let stock = trade.offer(Method::GET).send().await.expect(200).json()["stock"].as_i64();
        let possible = self.acknowledged..=self.tried;
        assert!(
            possible.contains(&stock.unwrap()),
            "{stock:?} is none of {possible:?}"
        );
    }
}

/// On to the next file of PostgreSQL's log until there is none to be had, which ends the server.
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
    // Enough for some files, and not for a PostgreSQL.
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

    // It runs while there is no space, and goes on by itself.
    disk.fill();
    use_up_the_log(&trade, &mut stock).await;
    eventually("the word of it", async || {
        trade.sandbox.output().contains(FULL).then_some(())
    })
    .await;
    assert!(!stock.is_written(&trade).await);
    comes_again(&trade.offer(Method::GET).send().await.expect(500));
    assert!(!trade.is_ready().await);
    disk.free();
    eventually("readiness", async || trade.is_ready().await.then_some(())).await;
    stock.is_kept(&trade).await;
    assert!(stock.is_written(&trade).await);

    // It ends while there is no space, and does not start.
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
