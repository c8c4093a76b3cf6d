//! The command line, and how a run ends: by itself, by an error, or by a signal.

use std::process::ExitCode;

use anyhow::bail;
use clap::{Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};

use crate::options::{
    AllOptions, ArrivalsOptions, CompareOptions, DeliveriesOptions, GrowthOptions, InstructionsOptions,
    ProfileOptions, ReadOptions, SoakOptions, StorageOptions, TokensOptions, WriteOptions,
};
use crate::progress::say;
use crate::{
    all, arrivals, compare, deliveries, growth, instructions, profile, read, soak, storage, tokens, write,
};

/// Measures the program beside PostgreSQL alone and writes the report into docs/PERFORMANCE.md.
#[derive(Debug, Parser)]
#[command(name = "bench", version)]
struct Arguments {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// Everything below but `soak`, `instructions`, `compare` and `profile`, on one cluster, with plots and the table of goals.
    #[command(after_help = "Example: cargo run --release -p bench -- all --rounds 3 --seconds 3")]
    All(Box<AllOptions>),
    /// Reading: offers by id, pages, the token itself; the import that fills the catalogue; start and memory.
    #[command(after_help = "Example: cargo run --release -p bench -- read --offers 1000000")]
    Read(Box<ReadOptions>),
    /// Writing: keyed changes of offers, keyed shipments; lists of orders; statements and round trips of a request.
    #[command(after_help = "Example: cargo run --release -p bench -- write --orders 1000000")]
    Write(Box<WriteOptions>),
    /// The token endpoint: tokens of applications, refreshes; statements and round trips of a call.
    #[command(after_help = "Example: cargo run --release -p bench -- tokens")]
    Tokens(Box<TokensOptions>),
    /// Webhooks: deliveries a second, their latency beside a dead receiver, their statements, memory with many pending.
    #[command(after_help = "Example: cargo run --release -p bench -- deliveries")]
    Deliveries(Box<DeliveriesOptions>),
    /// Latency of requests that come at random, at half and at four fifths of the capacity.
    #[command(after_help = "Example: cargo run --release -p bench -- latency")]
    Latency(Box<ArrivalsOptions>),
    /// What a request costs as the catalogue grows.
    #[command(after_help = "Example: cargo run --release -p bench -- growth --offers-max 1000000")]
    Growth(Box<GrowthOptions>),
    /// What a write costs the write-ahead log, which updates spare the indexes, queues under churn, plans of hot statements.
    #[command(after_help = "Example: cargo run --release -p bench -- storage")]
    Storage(Box<StorageOptions>),
    /// Mixed load for long, and whether memory, file descriptors, threads or connections grow.
    #[command(after_help = "Example: cargo run --release -p bench -- soak --minutes 20")]
    Soak(Box<SoakOptions>),
    /// The instructions of hot paths, counted by valgrind and compared with what is recorded.
    #[command(after_help = "Example: cargo run --release -p bench -- instructions")]
    Instructions(InstructionsOptions),
    /// Two builds of the program in turns over one database: what a change has given.
    #[command(
        after_help = "Example: cargo run --release -p bench -- compare --before /tmp/seller-api --subject offer"
    )]
    Compare(Box<CompareOptions>),
    /// One subject again and again, on a stand whose process ids and URLs are told: for profilers and `psql`.
    #[command(after_help = "Example: cargo run --release -p bench -- profile --subject offer")]
    Profile(Box<ProfileOptions>),
}

/// Runs what the command line asks for.
pub fn run() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = runtime
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(until_signal(arguments)));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("bench: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Everything that a bench has started ends with its future: a signal drops it.
async fn until_signal(arguments: Arguments) -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let bench = async {
        match arguments.bench {
            Bench::All(options) => all::run(&options).await,
            Bench::Read(options) => read::run(&options).await,
            Bench::Write(options) => write::run(&options).await,
            Bench::Tokens(options) => tokens::run(&options).await,
            Bench::Deliveries(options) => deliveries::run(&options).await,
            Bench::Latency(options) => arrivals::run(&options).await,
            Bench::Growth(options) => growth::run(&options).await,
            Bench::Storage(options) => storage::run(&options).await,
            Bench::Soak(options) => soak::run(&options).await,
            Bench::Instructions(options) => instructions::run(&options).await,
            Bench::Compare(options) => compare::run(&options).await,
            Bench::Profile(options) => profile::run(&options).await,
        }
    };
    tokio::select! {
        result = bench => result,
        _ = interrupt.recv() => bail!("interrupted"),
        _ = terminate.recv() => bail!("terminated"),
        _ = hang_up.recv() => bail!("the terminal is gone"),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
