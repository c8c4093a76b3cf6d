//! The program: configuration, wiring, servers, workers, command line. The only crate of the product that
//! uses concrete adapters.

mod admin;
mod cli;
mod command;
pub mod config;
mod daily_limits;
mod external_services;
mod http_server;
mod logging;
mod process;
pub mod prometheus;
mod readiness;
mod sandbox;
mod sealing_keys;
mod serve;
mod tls;
mod wiring;
mod workers;

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// A page of offers makes some hundred small allocations; the C library's allocator would take a fifth of the
/// server's time.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Runs the program with the process's arguments and environment.
pub fn run() -> ExitCode {
    let outcome = cli::run();
    logging::finish();
    outcome
}

/// Compares a page of `docs/operations` with what the program makes of its tables. With `RENEW` set it is
/// written first.
#[cfg(test)]
fn assert_current_page(name: &str, made: &str) {
    let path = format!("{}/../../docs/operations/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("RENEW").is_some() {
        std::fs::write(&path, made).unwrap();
    }
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(
        page == made,
        "{name} is not current: RENEW=1 cargo test -p seller-api page_is_current"
    );
}
