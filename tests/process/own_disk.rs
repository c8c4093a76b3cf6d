//! The program's log cannot be written, on a full disk or since nobody reads it: everything else works.

use std::fs;
use std::fs::File;
use std::process::Stdio;
use std::time::Duration;

use blackbox::{World, eventually, until};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::{PROGRAM, disk_full::small_disk, metrics::value_at};

/// Enough requests that their log lines exceed the rest of a block and are written in several batches.
const REQUESTS: usize = 100;

/// Requests whose lines are more than 64 KiB, a pipe's room, and a thousand more.
const UNREAD: usize = 1_500;

/// The number of log lines about requests with this name.
fn lines_of(log: &str, name: &str) -> usize {
    let name = format!("\"{name}\"");
    log.lines().filter(|line| line.contains(&name)).count()
}

fn serve(world: &World, log: impl Into<Stdio>) -> Child {
    Command::new(PROGRAM)
        .args(["serve", "--workers", "none"])
        .env("DATABASE_URL", world.database.url())
        .env("SELLER_API__KEYS__SEALING", testkit::sealing_key())
        .env("SELLER_API__LOG__FORMAT", "json")
        .env("SELLER_API__SERVER__BIND", "127.0.0.1:0")
        .env("SELLER_API__SERVER__BACKOFFICE_BIND", "127.0.0.1:0")
        .stdin(Stdio::null())
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// The addresses of both listeners, where a line tells them.
fn addresses(line: &str) -> Option<[String; 2]> {
    let event: Value = serde_json::from_str(line).ok()?;
    let of = |name: &str| event["fields"][name].as_str().map(str::to_owned);
    Some([of("public")?, of("backoffice")?])
}

#[tokio::test]
async fn a_log_that_nobody_reads_stops_no_request_and_goes_on_without_a_gap() {
    let world = World::start(PROGRAM).await;
    let (_, token) = world.reader().await;
    let mut server = serve(&world, Stdio::piped());
    let mut log = BufReader::new(server.stderr.take().unwrap()).lines();
    let mut next = async || log.next_line().await.unwrap().unwrap();
    let address = loop {
        if let Some([address, _]) = addresses(&next().await) {
            break address;
        }
    };
    let ask = async |path: &str, name: &str| {
        let request = world.client.get(&format!("http://{address}{path}"));
        request.bearer(&token).header("x-request-id", name).send().await
    };
    until("a first answer", async || {
        ask("/v1/me", "log-before").await.status == 200
    })
    .await;
    // More than a pipe has room for.
    let asked = async {
        for _ in 0..UNREAD {
            ask("/nothing", "log-unread").await.expect(404);
        }
        world.database.block_connections().await;
        ask("/v1/me", "log-error").await.expect(500);
    };
    timeout(Duration::from_mins(1), asked)
        .await
        .expect("all are answered");
    world.database.allow_connections().await;
    let (mut unread, mut line) = (0, String::new());
    while !line.contains("\"log-error\"") {
        line = next().await;
        assert!(serde_json::from_str::<Value>(&line).is_ok(), "{line}");
        unread += usize::from(line.contains("\"log-unread\""));
    }
    assert_eq!(unread, UNREAD);
    server.kill().await.unwrap();
}

#[tokio::test]
async fn a_log_that_cannot_be_written_stops_no_request_and_continues_with_whole_lines() {
    let Some(disk) = small_disk(4) else { return };
    let world = World::start(PROGRAM).await;
    let (_, token) = world.reader().await;
    let path = disk.path().join("log");
    let file = File::options().create(true).append(true).open(&path);
    let mut server = serve(&world, file.unwrap());
    let [address, office] = eventually("the addresses", async || {
        let log = fs::read_to_string(&path).unwrap();
        log.lines().find_map(addresses)
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
