//! Start, stop, failure, recovery and output of the program.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod admin;
mod any_bytes;
mod clock_steps;
mod configuration;
mod connections;
mod database_clock;
mod database_names;
mod deliveries;
mod disk_full;
mod exit_codes;
mod failover;
mod hostile_receivers;
mod import_command;
mod import_memory;
mod key_rotation;
mod ledger;
mod logging;
mod lost_commit;
mod mail_refusals;
mod metrics;
mod migrations;
mod name_servers;
mod named;
mod no_connections;
mod outage;
mod own_disk;
mod panel_audit;
mod paused;
mod pgbouncer;
mod postgres_killed;
mod rolling;
mod sandbox;
mod sandbox_full;
mod slow_clients;
mod slow_network;
mod smuggling;
mod starts;
mod statements;
mod stops;
mod supervised;
mod tls;
mod tls_clock;
mod trace_collectors;
mod traces;
mod webhook_guide;
mod workers;

use blackbox::{Finished, World, run};
use testkit::ServerOptions;

const PROGRAM: &str = env!("CARGO_BIN_EXE_seller-api-blackbox");

/// A world with the contract's limits.
async fn world() -> World {
    World::start(PROGRAM).await
}

/// Runs the program to its end over a world's database. Words must not contain spaces.
async fn cli(world: &World, words: &str) -> Finished {
    let words: Vec<_> = words.split_whitespace().collect();
    run(PROGRAM, &words, &[("DATABASE_URL", world.database.url())]).await
}

/// The bytes of `GET /v1/me` with a token.
fn me(token: &str) -> String {
    let bearer = format!("Bearer {token}");
    let headers = [("user-agent", "App/1.0"), ("authorization", bearer.as_str())];
    blackbox::request("GET", "/v1/me", &headers)
}

/// Replaces the world's server by one with these options that connects to the database at `url`.
async fn served_by(world: &mut World, options: &ServerOptions, url: &str) {
    let operator_token = world.server.operator_token.clone();
    world.server = blackbox::listen(options, url).await;
    world.server.operator_token = operator_token;
    world.server.ready().await;
}
