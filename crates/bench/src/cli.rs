//! The command line, and how a run ends: by itself, by an error, or by a signal.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};

use crate::progress::say;
use crate::{profile, read};

/// Measures the program beside PostgreSQL alone and writes the report into docs/PERFORMANCE.md.
#[derive(Debug, Parser)]
#[command(name = "bench", version)]
struct Arguments {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// Reading: offers by id, pages, the token itself; the import that fills the catalogue; start and memory.
    #[command(after_help = "Example: cargo run --release -p bench -- read --offers 1000000")]
    Read(Box<ReadOptions>),
    /// One subject again and again, on a stand whose process ids and URLs are told: for profilers and `psql`.
    #[command(after_help = "Example: cargo run --release -p bench -- profile --subject offer")]
    Profile(Box<ProfileOptions>),
}

/// What is common to all benches: what they stand on, and how a subject is measured.
#[derive(Clone, Debug, Args)]
pub(crate) struct StandOptions {
    /// Sellers, each with one application and one token; the first holds a fifth of the offers
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(2..))]
    pub(crate) sellers: u64,
    /// Connections, and pgbench's clients
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) concurrency: u16,
    /// Seconds that each subject is measured in each round
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seconds: u64,
    /// Seconds that may be spent, in all, on waiting for other processes and on repeating what they disturbed
    #[arg(long, default_value_t = 300)]
    pub(crate) patience: u64,
    /// PostgreSQL's setting `shared_buffers`
    #[arg(long, default_value = "2GB")]
    pub(crate) shared_buffers: String,
    /// The folder for the throw-away cluster, instead of the system's for temporary files
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
    /// The program to measure, instead of building it
    #[arg(long)]
    pub(crate) server: Option<PathBuf>,
}

/// How the bench of the reading endpoints is run.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReadOptions {
    /// Offers in the large catalogue
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) offers: u64,
    /// Offers in the small catalogue, which the large one's throughput is compared with
    #[arg(long, default_value_t = 10_000)]
    pub(crate) small_offers: u64,
    #[command(flatten)]
    pub(crate) stand: StandOptions,
    /// Rounds that count; one more goes first and does not
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rounds: u64,
    /// Keep-alive connections that the server's memory is measured with
    #[arg(long, default_value_t = 2_000)]
    pub(crate) kept_connections: u64,
    /// Starts of the server that are timed
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) starts: u64,
    /// The date that the report names, instead of today's
    #[arg(long)]
    pub(crate) date: Option<String>,
    /// The document to write into; `-` prints the report instead
    #[arg(long, default_value = "docs/PERFORMANCE.md")]
    pub(crate) output: PathBuf,
}

/// What is profiled.
#[derive(Clone, Debug, Args)]
pub(crate) struct ProfileOptions {
    /// Offers in the catalogue
    #[arg(long, default_value_t = 100_000)]
    pub(crate) offers: u64,
    #[command(flatten)]
    pub(crate) stand: StandOptions,
    /// The subjects: row, offer, one-token, me, page-rows, page, deep; all where none is named
    #[arg(long = "subject")]
    pub(crate) subjects: Vec<String>,
    /// How often each is measured; without end where it is left out. 0 measures nothing and holds the stand
    #[arg(long)]
    pub(crate) rounds: Option<u64>,
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
            Bench::Read(options) => read::run(&options).await,
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
