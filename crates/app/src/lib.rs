//! The program: configuration, wiring, servers, workers, command line. The only crate of the product that uses concrete adapters.

mod admin;
mod cli;
mod command;
pub mod config;
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

/// A page of offers makes some hundred small allocations; the C library's allocator would take a fifth of the server's time.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Runs the program with the process's arguments and environment.
pub fn run() -> ExitCode {
    let outcome = cli::run();
    logging::finish();
    outcome
}
