//! The disk of the program itself is full: its log cannot be written, and everything else goes on.

use std::{
    fs::{self, File},
    process::Stdio,
    time::Duration,
};

use blackbox::{World, eventually};
use serde_json::Value;
use tokio::process::Command;

use crate::{PROGRAM, disk_full::small_disk};

/// So many requests have longer lines than what is left of a block, and come while lines are gathered and written several times.
const REQUESTS: usize = 100;

/// How many lines tell of requests of this name.
fn lines_of(log: &str, name: &str) -> usize {
    let name = format!("\"{name}\"");
    log.lines().filter(|line| line.contains(&name)).count()
}

#[tokio::test]
async fn a_log_that_cannot_be_written_stops_nobody_and_goes_on_with_whole_lines() {
    let Some(disk) = small_disk(4) else { return };
    let world = World::start(PROGRAM).await;
    let (_, token) = world.reader().await;
    let path = disk.path().join("log");
    let mut server = Command::new(PROGRAM)
        .args(["serve", "--workers", "none"])
        .env("DATABASE_URL", world.database.url())
        .env("SELLER_API__KEYS__SEALING", testkit::sealing_key())
        .env("SELLER_API__LOG__FORMAT", "json")
        .env("SELLER_API__SERVER__BIND", "127.0.0.1:0")
        .env("SELLER_API__SERVER__BACKOFFICE_BIND", "127.0.0.1:0")
        .stdin(Stdio::null())
        .stderr(File::options().create(true).append(true).open(&path).unwrap())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let address = eventually("the address", async || {
        let log = fs::read_to_string(&path).unwrap();
        let mut events = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events.find_map(|event| event["fields"]["public"].as_str().map(str::to_owned))
    })
    .await;
    let ask = async |name: &str| {
        let request = world.client.get(&format!("http://{address}/v1/me"));
        request.bearer(&token).header("x-request-id", name).send().await
    };
    eventually("a first answer", async || {
        (ask("log-before").await.status == 200).then_some(())
    })
    .await;

    let ask_often = async |name: &str| {
        for _ in 0..REQUESTS {
            ask(name).await.expect(200);
            // Not all of them while lines are gathered for once.
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    ask_often("log-whole").await;
    eventually("a line for each request", async || {
        (lines_of(&fs::read_to_string(&path).unwrap(), "log-whole") == REQUESTS).then_some(())
    })
    .await;

    disk.fill();
    ask_often("log-meanwhile").await;
    disk.free();
    ask("log-after").await.expect(200);
    let log = eventually("the log", async || {
        let log = fs::read_to_string(&path).unwrap();
        log.contains("\"log-after\"").then_some(log)
    })
    .await;
    let meanwhile = lines_of(&log, "log-meanwhile");
    assert!(meanwhile < REQUESTS, "the disk had space for all of them");
    // A line may have been cut by the end of the disk; none of the later ones is spoiled by it.
    let spoiled = log
        .lines()
        .filter(|line| serde_json::from_str::<Value>(line).is_err());
    assert!(spoiled.count() <= 1);
    let after = log.lines().find(|line| line.contains("\"log-after\"")).unwrap();
    assert!(serde_json::from_str::<Value>(after).is_ok(), "{after}");
    server.kill().await.unwrap();
}
