//! Measuring one subject once: its rate, its latencies, and what each process spent on it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::cluster::Cluster;
use crate::cpu;
use crate::figures::real;
use crate::load::{self, Latency, Load};
use crate::metrics::Metrics;
use crate::noise::Stretch;
use crate::pgbench::{self, Script};
use crate::server::Server;
use crate::statements::Statements;
use crate::waits::{self, Backends, Waits};

/// Something that is measured.
#[derive(Clone, Debug)]
pub(crate) struct Subject<'a> {
    /// By what the report finds it.
    pub(crate) key: &'static str,
    /// What the report calls it.
    pub(crate) title: String,
    /// What is done.
    pub(crate) work: Work<'a>,
    /// The database whose backends are looked at meanwhile, if any.
    pub(crate) looked_at: Option<String>,
}

/// What is done.
#[derive(Clone, Debug)]
pub(crate) enum Work<'a> {
    /// A script, by so many clients for so long.
    Pgbench(Script, usize, Duration),
    /// A load on a server.
    Http(&'a Server, Load),
}

impl Work<'_> {
    /// The same for no longer than this.
    pub(crate) fn lasting(mut self, most: Duration) -> Self {
        match &mut self {
            Self::Pgbench(_, _, duration) => *duration = most.min(*duration),
            Self::Http(_, load) => load.measured = most.min(load.measured),
        }
        self
    }
}

/// How many statements the scripts among the subjects have, by their subjects' keys.
pub(crate) fn statements(subjects: &[Subject<'_>]) -> BTreeMap<&'static str, usize> {
    let of = |subject: &Subject<'_>| match &subject.work {
        Work::Pgbench(script, ..) => Some((subject.key, script.statements())),
        Work::Http(..) => None,
    };
    subjects.iter().filter_map(of).collect()
}

/// What one measurement of a subject gave.
#[derive(Debug)]
pub(crate) struct Sample {
    /// Requests, or statements, a second.
    pub(crate) rate: f64,
    /// How long each took.
    pub(crate) latency: Latency,
    /// CPU microseconds of each process per request.
    pub(crate) cpu: CpuEach,
    /// The server's grouped statements for each request; none for pgbench, whose requests are statements.
    pub(crate) statements: Statements,
    /// Where the server spent the time of each request; nothing for pgbench.
    pub(crate) waits: Waits,
    /// What PostgreSQL's backends were doing; nothing where nobody looked.
    pub(crate) backends: Backends,
    /// The share of the machine that other processes took meanwhile.
    pub(crate) others: f64,
}

/// CPU microseconds per request, by process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CpuEach {
    /// PostgreSQL, all its processes.
    pub(crate) postgres: f64,
    /// The server; nothing for `pgbench`.
    pub(crate) server: f64,
    /// The load generator, or `pgbench`.
    pub(crate) client: f64,
}

impl CpuEach {
    /// What a request costs the machine.
    pub(crate) fn sum(&self) -> f64 {
        self.postgres + self.server + self.client
    }
}

/// Measures one subject once, and looks at the backends meanwhile if it says so.
pub(crate) async fn measure_looking(cluster: &Cluster, subject: &Subject<'_>) -> anyhow::Result<Sample> {
    let work = Box::pin(measure(cluster, &subject.work));
    let Some(database) = &subject.looked_at else {
        return work.await;
    };
    let (sample, backends) = waits::during(cluster, database, work).await?;
    Ok(Sample { backends, ..sample })
}

/// Measures one subject once.
pub(crate) async fn measure(cluster: &Cluster, work: &Work<'_>) -> anyhow::Result<Sample> {
    match work {
        Work::Pgbench(script, clients, duration) => {
            measure_pgbench(cluster, script, *clients, *duration).await
        }
        Work::Http(server, load) => measure_http(cluster, server, load).await,
    }
}

async fn measure_pgbench(
    cluster: &Cluster,
    script: &Script,
    clients: usize,
    duration: Duration,
) -> anyhow::Result<Sample> {
    let postgres = cluster.server()?;
    let backends = cpu::children(postgres)?.len();
    let used = || anyhow::Ok([cpu::family(postgres)?, Duration::ZERO, cpu::ended_children()?]);
    let (stretch, before) = (Stretch::begin()?, used()?);
    let run = pgbench::run(cluster, script, clients, duration).await?;
    cpu::few_children(postgres, backends).await?;
    let spent = Spent::between(before, used()?);
    Ok(Sample {
        rate: run.rate,
        latency: run.latency,
        cpu: spent.each(run.transactions),
        statements: Statements::default(),
        waits: Waits::default(),
        backends: Backends::default(),
        others: stretch.others(spent.sum())?,
    })
}

async fn measure_http(cluster: &Cluster, server: &Server, load: &Load) -> anyhow::Result<Sample> {
    let (postgres, own) = (cluster.server()?, std::process::id());
    let used = || {
        anyhow::Ok([
            cpu::family(postgres)?,
            cpu::process(server.pid)?,
            cpu::process(own)?,
        ])
    };
    let counted = |metrics: &Metrics| (Statements::so_far(metrics), Waits::so_far(metrics));
    let (statements, waits) = counted(&Metrics::of(server.back_office).await?);
    let begun = || anyhow::Ok((Stretch::begin()?, used()?));
    let ended = |(stretch, before): (Stretch, [Duration; 3])| {
        let spent = Spent::between(before, used()?);
        anyhow::Ok((stretch.others(spent.sum())?, spent))
    };
    let (interval, (others, spent)) = load::run(load, begun, ended).await?;
    let (statements_after, waits_after) = counted(&Metrics::of(server.back_office).await?);
    // A log of every request would fill the disk.
    server.clear_log()?;
    let counted = interval.latency.count();
    Ok(Sample {
        rate: real(counted) / interval.elapsed.as_secs_f64(),
        latency: interval.latency,
        cpu: spent.each(counted),
        statements: statements_after.each(statements, interval.requests),
        waits: waits_after.each(waits, interval.requests),
        backends: Backends::default(),
        others,
    })
}

/// CPU time of PostgreSQL, the server and the client.
pub(crate) struct Spent([Duration; 3]);

impl Spent {
    /// From one reading to another.
    pub(crate) fn between(before: [Duration; 3], after: [Duration; 3]) -> Self {
        let mut before = before.into_iter();
        Self(after.map(|after| after.saturating_sub(before.next().unwrap_or_default())))
    }

    /// All three.
    pub(crate) fn sum(&self) -> Duration {
        self.0.iter().sum()
    }

    /// For each of so many requests.
    pub(crate) fn each(&self, requests: u64) -> CpuEach {
        let [postgres, server, client] = self.0.map(|used| used.as_secs_f64() * 1e6 / real(requests));
        CpuEach {
            postgres,
            server,
            client,
        }
    }
}
