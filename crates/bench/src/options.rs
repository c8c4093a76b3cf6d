//! The options of every part.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Those that `--only` names; without it all.
pub(crate) fn chosen<T: ValueEnum>(only: &[T]) -> &[T] {
    if only.is_empty() {
        T::value_variants()
    } else {
        only
    }
}

/// How a part is run.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// Rounds that count; one more runs first to warm up
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rounds: u64,
    /// Seconds for each measurement of each round
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seconds: u64,
    /// Connections of the load, and pgbench's clients
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) connections: u16,
    /// Offers in the catalogue
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) offers: u64,
    /// Sellers, each with an application; the first has a fifth of all offers
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(2..))]
    pub(crate) sellers: u64,
    /// Offers of the largest catalogue that growth is measured with (10 000 000 take about 8 GB)
    #[arg(long, default_value_t = 10_000_000)]
    pub(crate) largest: u64,
    /// Deliveries that are due at once
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(100..))]
    pub(crate) backlog: u64,
    /// Idle connections that the server's memory is measured with
    #[arg(long, default_value_t = 2_000)]
    pub(crate) idle: u64,
    /// Readers that wait at the journal
    #[arg(long, default_value_t = 1_000)]
    pub(crate) readers: u64,
    /// Folder for the throw-away cluster, instead of the system's temporary one
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
    /// Program to measure, instead of building it
    #[arg(long)]
    pub(crate) server: Option<PathBuf>,
    /// One short round over little data: shows that the bench works, measures nothing
    #[arg(long)]
    pub(crate) quick: bool,
}

impl Options {
    /// `--quick` overrides every size.
    pub(crate) fn scaled(self) -> Self {
        if !self.quick {
            return self;
        }
        Self {
            rounds: 1,
            seconds: 1,
            connections: 8,
            offers: 20_000,
            sellers: 100,
            largest: 20_000,
            backlog: 500,
            idle: 200,
            readers: 100,
            ..self
        }
    }
}
