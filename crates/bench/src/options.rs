//! How the benches are run, as the command line says it.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

/// What is common to all benches: what they stand on, and how a subject is measured.
#[derive(Clone, Debug, Args)]
pub(crate) struct StandOptions {
    /// Sellers, each with one application and one token; the first holds a fifth of all
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
    /// PostgreSQL's setting `shared_buffers`, instead of a quarter of the machine's memory
    #[arg(long)]
    pub(crate) shared_buffers: Option<String>,
    /// The folder for the throw-away cluster, instead of the system's for temporary files
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
    /// The program to measure, instead of building it
    #[arg(long)]
    pub(crate) server: Option<PathBuf>,
}

/// What is common to all benches that end in a report.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReportOptions {
    /// Rounds that count; one more goes first and does not
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rounds: u64,
    /// The date that the report names, instead of today's
    #[arg(long)]
    pub(crate) date: Option<String>,
    /// The document to write into; `-` prints the report instead
    #[arg(long, default_value = "docs/PERFORMANCE.md")]
    pub(crate) output: PathBuf,
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
    /// Keep-alive connections that the server's memory is measured with
    #[arg(long, default_value_t = 2_000)]
    pub(crate) kept_connections: u64,
    /// Starts of the server that are timed
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) starts: u64,
    #[command(flatten)]
    pub(crate) report: ReportOptions,
}

/// How the bench of the writing endpoints is run.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("seconds", |seconds| seconds.default_value("3")))]
#[command(mut_arg("patience", |patience| patience.default_value("60")))]
pub(crate) struct WriteOptions {
    /// Offers in the catalogue, of which random ones are changed
    #[arg(long, default_value_t = 100_000)]
    pub(crate) offers: u64,
    /// Orders. The first seller's are listed, and those of the others shipped: few of them are soon used up
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(10_000..))]
    pub(crate) orders: u64,
    #[command(flatten)]
    pub(crate) stand: StandOptions,
    #[command(flatten)]
    pub(crate) report: ReportOptions,
}

/// How the bench of the token endpoint is run.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("seconds", |seconds| seconds.default_value("3")))]
#[command(mut_arg("patience", |patience| patience.default_value("60")))]
pub(crate) struct TokensOptions {
    #[command(flatten)]
    pub(crate) stand: StandOptions,
    #[command(flatten)]
    pub(crate) report: ReportOptions,
}

/// How the bench of webhooks is run.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("seconds", |seconds| seconds.help("Seconds that latencies are measured in each round").default_value("6")))]
#[command(mut_arg("patience", |patience| patience.default_value("40")))]
#[command(mut_arg("rounds", |rounds| rounds.default_value("3")))]
#[command(mut_arg("sellers", |sellers| sellers.hide(true)))]
#[command(mut_arg("concurrency", |concurrency| concurrency.hide(true)))]
pub(crate) struct DeliveriesOptions {
    /// Deliveries that are committed at once and then worked off, in each round
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1_000..))]
    pub(crate) deliveries: u64,
    /// Subscriptions, each of another seller and with a receiver at an address of its own
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(2..=250))]
    pub(crate) subscriptions: u64,
    /// Events a second while latencies are measured
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) events: u64,
    /// Deliveries that wait for a dead receiver meanwhile
    #[arg(long, default_value_t = 100_000)]
    pub(crate) dead: u64,
    /// Deliveries that wait while the worker's memory is read
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) pending: u64,
    #[command(flatten)]
    pub(crate) stand: StandOptions,
    #[command(flatten)]
    pub(crate) report: ReportOptions,
}

/// How the bench of requests that come at random is run.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("seconds", |seconds| seconds.default_value("4")))]
#[command(mut_arg("patience", |patience| patience.default_value("40")))]
#[command(mut_arg("rounds", |rounds| rounds.default_value("3")))]
pub(crate) struct ArrivalsOptions {
    /// Offers in the catalogue
    #[arg(long, default_value_t = 100_000)]
    pub(crate) offers: u64,
    /// Orders, each of which is shipped once; where it is left out, enough for 3 000 shipments a second
    #[arg(long, value_parser = clap::value_parser!(u64).range(1_000..))]
    pub(crate) orders: Option<u64>,
    #[command(flatten)]
    pub(crate) stand: StandOptions,
    #[command(flatten)]
    pub(crate) report: ReportOptions,
}

/// How the bench of growth is run.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("seconds", |seconds| seconds.default_value("3")))]
#[command(mut_arg("patience", |patience| patience.default_value("60")))]
#[command(mut_arg("rounds", |rounds| rounds.default_value("3")))]
pub(crate) struct GrowthOptions {
    /// The most offers; the sizes are 10 000, 100 000, 1 000 000 and 10 000 000 (about 8 GB)
    #[arg(long, default_value_t = 10_000_000)]
    pub(crate) offers_max: u64,
    /// Sellers of the catalogue of many sellers
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(2..))]
    pub(crate) sellers_max: u64,
    #[command(flatten)]
    pub(crate) stand: StandOptions,
    #[command(flatten)]
    pub(crate) report: ReportOptions,
}

/// How the bench of storage is run.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("seconds", |seconds| seconds.hide(true)))]
#[command(mut_arg("patience", |patience| patience.hide(true)))]
#[command(mut_arg("rounds", |rounds| rounds.default_value("3")))]
pub(crate) struct StorageOptions {
    /// Offers in the catalogue; a fifth of them is in each table that is changed again and again
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(5_000..))]
    pub(crate) offers: u64,
    /// Orders, each of which is shipped once
    #[arg(long, default_value_t = 60_000, value_parser = clap::value_parser!(u64).range(10_000..))]
    pub(crate) orders: u64,
    /// Updates of each table of offers, in all rounds together
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1_000..))]
    pub(crate) updates: u64,
    /// Deliveries of a wave, and keys of one
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1_000..))]
    pub(crate) wave: u64,
    /// Waves
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(2..))]
    pub(crate) waves: u64,
    #[command(flatten)]
    pub(crate) stand: StandOptions,
    #[command(flatten)]
    pub(crate) report: ReportOptions,
}

/// The parts of a run of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// Offers and pages, the import, starts, memory with connections
    Reads,
    /// Keyed changes, shipments and orders; lists of orders
    Writes,
    /// The token endpoint
    Tokens,
    /// Webhooks end to end
    Webhooks,
    /// Requests that come at random, at half and at four fifths of the capacity
    Latency,
    /// Catalogues of several sizes
    Growth,
    /// What a write stores, indexes and room on pages, queues under churn, plans
    Storage,
}

/// How everything is run.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("seconds", |seconds| seconds.default_value("3")))]
#[command(mut_arg("rounds", |rounds| rounds.default_value("3")))]
#[command(mut_arg("patience", |patience| patience.default_value("20")
    .help("Seconds that each part may spend on waiting for other processes and on repeating what they disturbed")))]
pub(crate) struct AllOptions {
    /// Only these parts; the table of goals is then printed and not written
    #[arg(long, value_delimiter = ',')]
    pub(crate) only: Vec<Part>,
    /// The most offers that any catalogue has; less of everything else comes with less than a million
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(10_000..))]
    pub(crate) offers_max: u64,
    /// Keep-alive connections that the server's memory is measured with
    #[arg(long, default_value_t = crate::read::CONNECTIONS)]
    pub(crate) kept_connections: u64,
    #[command(flatten)]
    pub(crate) stand: StandOptions,
    #[command(flatten)]
    pub(crate) report: ReportOptions,
}

/// How long it soaks.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("seconds", |seconds| seconds.hide(true)))]
#[command(mut_arg("patience", |patience| patience.hide(true)))]
#[command(mut_arg("rounds", |rounds| rounds.hide(true)))]
pub(crate) struct SoakOptions {
    /// Minutes of load
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) minutes: u64,
    /// Offers in the catalogue
    #[arg(long, default_value_t = 100_000)]
    pub(crate) offers: u64,
    #[command(flatten)]
    pub(crate) stand: StandOptions,
    #[command(flatten)]
    pub(crate) report: ReportOptions,
}

impl SoakOptions {
    /// The time from one sample to the next: 60 in all.
    pub(crate) const fn interval(&self) -> Duration {
        Duration::from_secs(self.minutes)
    }
}

/// How instructions are counted.
#[derive(Clone, Debug, Args)]
pub(crate) struct InstructionsOptions {
    /// Records what is counted, instead of comparing it
    #[arg(long)]
    pub(crate) record: bool,
    /// Where it is recorded
    #[arg(long, default_value = "docs/performance/instructions.json")]
    pub(crate) recorded: PathBuf,
    /// The document that tells of it, when it is recorded
    #[arg(long, default_value = "docs/PERFORMANCE.md")]
    pub(crate) output: PathBuf,
    /// The example `paths`, instead of building it
    #[arg(long)]
    pub(crate) example: Option<PathBuf>,
}

/// What is profiled.
#[derive(Clone, Debug, Args)]
pub(crate) struct ProfileOptions {
    /// Offers in the catalogue
    #[arg(long, default_value_t = 100_000)]
    pub(crate) offers: u64,
    #[command(flatten)]
    pub(crate) stand: StandOptions,
    /// Orders, without which there are no subjects of writing; at least 10 000 make sense
    #[arg(long, default_value_t = 0)]
    pub(crate) orders: u64,
    /// The subjects: row, offer, one-token, me, page-rows, page, deep, token-rows, token-statement, token, refresh-rows, refresh;
    /// with orders also patch-rows, patch, shipment-rows, shipment, placing-rows, placing, orders, orders-deep; all where none
    /// is named
    #[arg(long = "subject")]
    pub(crate) subjects: Vec<String>,
    /// How often each is measured; without end where it is left out. 0 measures nothing and holds the stand
    #[arg(long)]
    pub(crate) rounds: Option<u64>,
}

/// How two builds are compared; `--server` is the one with the change.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("seconds", |seconds| seconds.default_value("3")))]
#[command(mut_arg("patience", |patience| patience.default_value("60")))]
pub(crate) struct CompareOptions {
    /// The program before the change
    #[arg(long)]
    pub(crate) before: PathBuf,
    /// Offers in the catalogue
    #[arg(long, default_value_t = 100_000)]
    pub(crate) offers: u64,
    /// Orders, without which nothing is compared that writes; each is shipped once. Where it is left out there are none, but
    /// enough for 3 000 shipments a second where a subject is named that needs them
    #[arg(long)]
    pub(crate) orders: Option<u64>,
    #[command(flatten)]
    pub(crate) stand: StandOptions,
    /// The subjects, as `profile` knows them; all that are requests where none is named
    #[arg(long = "subject")]
    pub(crate) subjects: Vec<String>,
    /// Rounds that count; one more goes first and does not
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rounds: u64,
}
