//! The program: configuration, wiring, servers, workers, command line. The only place that names concrete adapters.

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

/// A page of offers is some hundred small allocations, which the C library's allocator takes a fifth of the server's time for.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Runs the program with the arguments and the environment of the process.
pub fn run() -> ExitCode {
    let outcome = cli::run();
    logging::finish();
    outcome
}
