//! Measures the program and PostgreSQL alone in one run on one machine. `docs/development/performance.md`
//! explains the results.
//!
//! Every part uses the scenarios of `scenario.rs`. For some, `scripts.rs` has pgbench scripts with the same
//! database work.

mod cluster;
mod compare;
mod context;
mod deliveries;
mod figures;
mod http;
mod instructions;
mod large;
mod load;
mod measure;
mod parts;
mod pgbench;
mod program;
mod scenario;
mod scripts;
mod seed;
mod usage;
mod waiting;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::bail;
use clap::{Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};

use crate::compare::CompareOptions;
use crate::instructions::InstructionsOptions;
use crate::large::LargeOptions;
use crate::parts::PartsOptions;

/// Measures the program beside PostgreSQL alone, and prints the figures as Markdown.
#[derive(Debug, Parser)]
#[command(name = "bench", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The parts, one after another
    Run(PartsOptions),
    /// Two builds of the program in turns over one database
    #[command(
        after_help = "Example: bench compare /tmp/before/seller-api target/release/seller-api --only offer,page"
    )]
    Compare(CompareOptions),
    /// Instructions of hot paths, counted by valgrind and compared with the recorded ones
    Instructions(InstructionsOptions),
    /// Fills a database as large as a big marketplace's, and measures nothing
    Large(LargeOptions),
}

fn main() -> ExitCode {
    let command = Arguments::parse().command;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = runtime
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(until_signal(command)));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error may be closed.
            let _ = writeln!(std::io::stderr(), "bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the command until a signal. A signal drops its future, and with it every process that it started.
async fn until_signal(command: Command) -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        result = run(command) => result,
        _ = interrupt.recv() => bail!("interrupted"),
        _ = terminate.recv() => bail!("terminated"),
    }
}

async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Run(options) => parts::run(options).await,
        Command::Compare(options) => compare::run(options).await,
        Command::Instructions(options) => instructions::run(&options).await,
        Command::Large(options) => large::run(&options).await,
    }
}
