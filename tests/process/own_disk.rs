//! The disk of the program's log is full: the log cannot be written, everything else works.

use std::fs;
use std::fs::File;
use std::process::Stdio;
use std::time::Duration;

use blackbox::{World, eventually, until};
use serde_json::Value;
use tokio::process::Command;

use crate::{PROGRAM, disk_full::small_disk, metrics::value_at};

/// Enough requests that their log lines exceed the rest of a block and are written in several batches.
const REQUESTS: usize = 100;

/// The number of log lines about requests with this name.
fn lines_of(log: &str, name: &str) -> usize {
    let name = format!("\"{name}\"");
    log.lines().filter(|line| line.contains(&name)).count()
}

#[tokio::test]
async fn a_log_that_cannot_be_written_stops_no_request_and_continues_with_whole_lines() {
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
    let [address, office] = eventually("the addresses", async || {
        let log = fs::read_to_string(&path).unwrap();
        let mut events = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let of = |event: &Value, name: &str| event["fields"][name].as_str().map(str::to_owned);
        events.find_map(|event| Some([of(&event, "public")?, of(&event, "backoffice")?]))
    })
    .await;
    let ask = async |name: &str| {
        let request = world.client.get(&format!("http://{address}/v1/me"));
        request.bearer(&token).header("x-request-id", name).send().await
    };
    until("a first answer", async || ask("log-before").await.status == 200).await;

    let ask_often = async |name: &str| {
        for _ in 0..REQUESTS {
            ask(name).await.expect(200);
            // A pause, so that the lines are not all in one batch.
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    ask_often("log-whole").await;
    until("a line for each request", async || {
        lines_of(&fs::read_to_string(&path).unwrap(), "log-whole") == REQUESTS
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
    // The end of the disk may have cut one line. No later line is damaged.
    let spoiled = log
        .lines()
        .filter(|line| serde_json::from_str::<Value>(line).is_err());
    assert!(spoiled.count() <= 1);
    let after = log.lines().find(|line| line.contains("\"log-after\"")).unwrap();
    assert!(serde_json::from_str::<Value>(after).is_ok(), "{after}");
    let lost = value_at(&format!("http://{office}"), "log_lines_lost_total").await;
    assert!(lost >= 1.0, "{lost}");
    server.kill().await.unwrap();
}
