//! The environment of measurements: the options of every part, the program, a cluster, and filled databases
//! with a server over each.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use procfs::Current as _;

use crate::cluster::Cluster;
use crate::figures::{real, whole};
use crate::load::Load;
use crate::program::{Database, Program, Server};
use crate::scenario::Scenario;
use crate::seed::{Catalogue, Seed};

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
    /// Folder for the throw-away cluster, instead of the system's temporary one
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
    /// Program to measure, instead of building it
    #[arg(long)]
    pub(crate) server: Option<PathBuf>,
}

/// Shared by all parts.
#[derive(Debug)]
pub(crate) struct BenchContext {
    pub(crate) options: Options,
    pub(crate) program: Program,
    pub(crate) cluster: Cluster,
    /// The number of databases so far; it names them.
    databases: AtomicU32,
}

impl BenchContext {
    pub(crate) async fn prepare(options: Options) -> anyhow::Result<Self> {
        // Processes that are started later inherit it.
        rlimit::increase_nofile_limit(u64::MAX).context("the limit of open files cannot be raised")?;
        step("building the program");
        let program = Program::locate(options.server.as_deref()).await?;
        step("starting PostgreSQL");
        let cluster = Cluster::start(options.folder.as_deref()).await?;
        Ok(Self {
            options,
            program,
            cluster,
            databases: AtomicU32::new(0),
        })
    }

    /// One line with the machine, the versions and the sizes.
    pub(crate) async fn description(&self) -> anyhow::Result<String> {
        let processors = procfs::CpuInfo::current()?;
        let memory = procfs::Meminfo::current()?.mem_total;
        let version = self.cluster.value("postgres", "show server_version").await?;
        let buffers = self.cluster.value("postgres", "show shared_buffers").await?;
        let options = &self.options;
        Ok(format!(
            "{} × {}, {} MB of memory; PostgreSQL {version} with {buffers} of shared_buffers; {}; {} rounds of \
             {} s, {} connections.\n",
            processors.num_cores(),
            processors.model_name(0).unwrap_or("an unknown processor"),
            whole(real(memory) / 1e6),
            self.program.output("", &["--version"]).await?,
            options.rounds,
            options.seconds,
            options.connections,
        ))
    }
}

/// A filled database with a server over it.
#[derive(Debug)]
pub(crate) struct SeededServer {
    pub(crate) database: Database,
    pub(crate) seed: Arc<Seed>,
    pub(crate) server: Server,
}

impl SeededServer {
    pub(crate) async fn start(context: &BenchContext, catalogue: Catalogue) -> anyhow::Result<Self> {
        let BenchContext { program, cluster, .. } = context;
        let Catalogue { offers, sellers } = catalogue;
        step(&format!("{offers} offers of {sellers} sellers"));
        let name = format!("bench_{}", context.databases.fetch_add(1, Ordering::Relaxed));
        let database = Database::create(cluster, program, &name).await?;
        let families = context.options.connections;
        let seed = Arc::new(Seed::fill(cluster, &name, catalogue, families).await?);
        let server = Server::start("serve", program, cluster, &database).await?;
        Ok(Self {
            database,
            seed,
            server,
        })
    }

    /// The requests of a scenario to a server over this database.
    pub(crate) async fn load(&self, scenario: Scenario, server: &Server) -> anyhow::Result<Load> {
        let requests = Arc::new(scenario.requests(&self.seed, server.public).await?);
        let server = match scenario {
            Scenario::PaidOrder => server.backoffice,
            _ => server.public,
        };
        Ok(Load { server, requests })
    }
}

/// Says on standard error what is under way.
pub(crate) fn step(title: &str) {
    // Standard error may be closed.
    let _ = writeln!(std::io::stderr(), "{title}");
}
