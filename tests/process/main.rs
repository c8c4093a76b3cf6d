//! Start, stop, failure, recovery and output of the program.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod admin;
mod another_database;
mod any_bytes;
mod citus;
mod clock_steps;
mod configuration;
mod connections;
mod database_clock;
mod database_names;
mod deliveries;
mod disk_full;
mod exit_codes;
mod failover;
mod greedy_clients;
mod import_command;
mod import_memory;
mod key_rotation;
mod kills;
mod ledger;
mod logging;
mod lost_commit;
mod mail_refusals;
mod metrics;
mod migrations;
mod name_servers;
mod no_connections;
mod outage;
mod own_disk;
mod panel_audit;
mod paused;
mod pgbouncer;
mod postgres_killed;
mod rolling;
mod sandbox;
mod sandbox_page;
mod slow_clients;
mod slow_lists;
mod slow_network;
mod smuggling;
mod starts;
mod stops;
mod supervised;
mod tls;
mod traces;
mod webhook_guide;
mod workers;

use blackbox::{Finished, World, inpost_at, mails_to, run, set};
use testkit::{TestServer, sealing_key};

const PROGRAM: &str = env!("CARGO_BIN_EXE_seller-api-blackbox");

/// A world with the contract's limits.
async fn world() -> World {
    World::start(PROGRAM).await
}

/// A world with these settings; keys without the prefix of their environment variables.
async fn world_with(settings: &[(&str, &str)]) -> World {
    World::with(PROGRAM, |options| set(options, settings)).await
}

/// Runs the program to its end over the database at `url`. Words must not contain spaces.
async fn run_over(url: &str, words: &str) -> Finished {
    let words: Vec<_> = words.split_whitespace().collect();
    run(PROGRAM, &words, &[("DATABASE_URL", url)]).await
}

/// Runs the program to its end with a sealing key, any ports and a database that nobody reaches, where these
/// variables set nothing else. Words must not contain spaces.
async fn run_alone(words: &str, environment: &[(&str, &str)]) -> Finished {
    let (words, key): (Vec<_>, _) = (words.split(' ').collect(), sealing_key());
    let usual = [
        ("DATABASE_URL", "postgres://nobody@127.0.0.1:1/nowhere"),
        ("SELLER_API__KEYS__SEALING", &key),
        ("SELLER_API__SERVER__BIND", "127.0.0.1:0"),
        ("SELLER_API__SERVER__BACKOFFICE_BIND", "127.0.0.1:0"),
        ("SELLER_API__WORKER__BIND", "127.0.0.1:0"),
    ];
    run(PROGRAM, &words, &[&usual, environment].concat()).await
}

/// Like [`run_over`], over a world's database.
async fn cli(world: &World, words: &str) -> Finished {
    run_over(world.database.url(), words).await
}

/// The number of rounds of kills.
fn rounds(usual: usize) -> usize {
    std::env::var("SELLER_API_TEST_KILLS").map_or(usual, |rounds| rounds.parse().unwrap())
}

/// The bytes of `GET /v1/me` with a token.
fn me(token: &str) -> String {
    let bearer = format!("Bearer {token}");
    let headers = [("user-agent", "App/1.0"), ("authorization", bearer.as_str())];
    blackbox::request("GET", "/v1/me", &headers)
}

/// Takes the server out of its world, which gets another one on the same database.
async fn take_server(world: &mut World) -> TestServer {
    let another = world.another().await;
    std::mem::replace(&mut world.server, another)
}

/// Terminates a server and waits for its success.
async fn stop(server: TestServer) {
    server.terminate();
    assert_eq!(server.exit_code().await, Some(0));
}

/// The metrics as text.
async fn metrics(world: &World) -> String {
    let metrics = world.office_get("/metrics").await.expect(200);
    String::from_utf8(metrics.bytes).unwrap()
}
