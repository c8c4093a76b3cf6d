//! The disk under the sandbox's folder is full: what is wrong is told, and once there is space nothing is lost.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use blackbox::{Sandbox, eventually};
use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::{Answer, Client, SmallDisk};
use tokio_postgres::NoTls;

use crate::{PROGRAM, disk_full::small_disk, outage::comes_again};

/// What has to be read where there is no space.
const NO_SPACE: &str = "No space left on device";
/// The same where there is a PostgreSQL already, whose log may have no room for it.
const FULL: &str = "its disk is full";

/// A start that must not come about; gives what it complains of.
async fn refused(disk: &SmallDisk) -> String {
    Sandbox::refused(PROGRAM, disk.path(), 1).await.stderr
}

/// One of the sandbox's sellers, who changes the stock of an offer.
struct Trader {
    client: Client,
    url: String,
    token: String,
    /// The last stock that was acknowledged.
    stock: i64,
    tried: i64,
}

impl Trader {
    fn of(sandbox: &Sandbox) -> Self {
        let seller = &sandbox.credentials["sellers"][0];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let (base, offer) = (
            text(&sandbox.credentials["base_url"]),
            text(&seller["examples"]["offer"]),
        );
        Self {
            client: Client::new(),
            url: format!("{base}/v1/offers/{offer}"),
            token: text(&seller["personal_token"]),
            stock: 0,
            tried: 1_000,
        }
    }

    /// The same one after another start.
    fn at(self, sandbox: &Sandbox) -> Self {
        Self {
            url: Self::of(sandbox).url,
            ..self
        }
    }

    async fn reads(&self) -> Answer {
        self.client.get(&self.url).bearer(&self.token).send().await
    }

    /// True where the change was acknowledged; else it may come again.
    async fn writes(&mut self) -> bool {
        self.tried += 1;
        let request = self.client.request(Method::PATCH, &self.url).bearer(&self.token);
        let request = request.json(&json!({"stock": self.tried}));
        let begun = Instant::now();
        let answer = request.send().await;
        assert!(begun.elapsed() < Duration::from_secs(3), "{answer:?}");
        if answer.status == 200 {
            self.stock = self.tried;
            return true;
        }
        assert_eq!(answer.status, 500, "{answer:?}");
        comes_again(&answer);
        false
    }

    /// What was acknowledged is there, or what was tried after it: such a change may have come through although its answer was 500.
    async fn has_kept_it(&self) {
        let stock = self.reads().await.expect(200).json()["stock"].as_i64().unwrap();
        let possible = self.stock..=self.tried;
        assert!(possible.contains(&stock), "{stock} is none of {possible:?}");
    }
}

/// On to the next file of PostgreSQL's log until there is none to be had, which ends the server.
async fn use_up_the_log(sandbox: &Sandbox, trader: &mut Trader) {
    let url = sandbox.credentials["database_url"].as_str().unwrap();
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    while client.batch_execute("select pg_switch_wal()").await.is_ok() {
        trader.writes().await;
    }
}

async fn is_ready(sandbox: &Sandbox) -> bool {
    let office = sandbox.credentials["backoffice_url"].as_str().unwrap();
    let ready = Client::new().get(&format!("{office}/readyz")).send().await;
    ready.status == 200
}

fn forget_output_of(disk: &Path) {
    fs::remove_file(disk.with_extension("log")).unwrap();
}

#[tokio::test]
async fn without_space_it_says_so_at_its_start_and_starts_once_there_is() {
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
    let sandbox = Sandbox::start(PROGRAM, disk.path(), &[], &[]).await;
    assert!(Trader::of(&sandbox).writes().await);
    assert_eq!(sandbox.end(Signal::INT).await, Some(0));
    forget_output_of(disk.path());
}

#[tokio::test]
async fn whose_disk_fills_up_it_goes_on_by_itself_and_loses_nothing() {
    let Some(disk) = small_disk(256) else { return };
    let sandbox = Sandbox::start(PROGRAM, disk.path(), &[], &[]).await;
    let mut trader = Trader::of(&sandbox);
    assert!(trader.writes().await);

    disk.fill();
    use_up_the_log(&sandbox, &mut trader).await;
    eventually("the word of it", async || {
        sandbox.output().contains(FULL).then_some(())
    })
    .await;
    assert!(!trader.writes().await);
    comes_again(&trader.reads().await.expect(500));
    assert!(!is_ready(&sandbox).await);
    disk.free();
    eventually("readiness", async || is_ready(&sandbox).await.then_some(())).await;
    trader.has_kept_it().await;
    assert!(trader.writes().await);

    // It ends while there is no space, and does not start.
    disk.fill();
    use_up_the_log(&sandbox, &mut trader).await;
    assert_eq!(sandbox.end(Signal::INT).await, Some(0));
    let told = refused(&disk).await;
    assert!(told.contains(FULL), "{told}");
    disk.free();
    let sandbox = Sandbox::start(PROGRAM, disk.path(), &[], &[]).await;
    let mut trader = trader.at(&sandbox);
    trader.has_kept_it().await;
    assert!(trader.writes().await);
    assert_eq!(sandbox.end(Signal::INT).await, Some(0));
    forget_output_of(disk.path());
}
