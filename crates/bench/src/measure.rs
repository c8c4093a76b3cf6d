//! Measures scenarios in rounds: the program, or PostgreSQL alone.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context as _;

use crate::context::{BenchContext, SeededServer, step};
use crate::deliveries::{self, Receivers};
use crate::figures::{Spread, real};
use crate::load::{self, Latency, Load, no_latencies};
use crate::pgbench;
use crate::program::Server;
use crate::scenario::Scenario;
use crate::usage;
use crate::waiting::Readers;

/// Deliveries that are due at once.
const BACKLOG: u64 = 10_000;

/// Which side of a scenario to measure.
pub(crate) enum Side<'a> {
    /// The program answers requests.
    Requests(&'a Server, Load),
    /// A server of its own answers requests while this many readers wait at its journal. A place is kept
    /// until the wait is over, though the reader has gone: on a server that goes on it would count in the
    /// next measurement.
    BesideReaders(u64),
    /// A worker of this server's program works off a backlog.
    Deliveries(&'a Server, &'a Receivers),
    /// PostgreSQL alone, with this script of pgbench.
    Pgbench(String),
}

/// One side of a scenario over a seeded database.
pub(crate) struct Subject<'a> {
    pub(crate) seeded: &'a SeededServer,
    pub(crate) scenario: Scenario,
    pub(crate) side: Side<'a>,
}

/// One measurement.
pub(crate) struct Sample {
    /// Requests, transactions or deliveries a second; of batches, their offers.
    pub(crate) rate: f64,
    latencies: Latency,
    /// CPU time per request, transaction or delivery in microseconds: of PostgreSQL, the program, and the
    /// client or receivers.
    cpu: [f64; 3],
}

impl<'a> Subject<'a> {
    /// The program of `server`. Deliveries need receivers.
    pub(crate) async fn of_program(
        seeded: &'a SeededServer,
        scenario: Scenario,
        server: &'a Server,
        receivers: Option<&'a Receivers>,
    ) -> anyhow::Result<Self> {
        let side = match scenario {
            Scenario::Delivery => Side::Deliveries(server, receivers.context("deliveries need receivers")?),
            _ => Side::Requests(server, seeded.load(scenario, server).await?),
        };
        Ok(Self {
            seeded,
            scenario,
            side,
        })
    }

    /// PostgreSQL alone, if the scenario has a script.
    pub(crate) fn of_pgbench(seeded: &'a SeededServer, scenario: Scenario) -> Option<Self> {
        let side = Side::Pgbench(scenario.script(&seeded.seed)?);
        Some(Self {
            seeded,
            scenario,
            side,
        })
    }

    /// The subject's name in tables.
    pub(crate) fn title(&self) -> &'static str {
        match self.side {
            Side::Pgbench(_) => "… `pgbench`",
            _ => self.scenario.title(),
        }
    }

    /// The lowest acceptable ratio to pgbench.
    pub(crate) fn goal(&self) -> Option<f64> {
        match self.side {
            Side::Pgbench(_) => None,
            _ => self.scenario.goal(),
        }
    }

    /// Measures once; `brief` is for the warm-up.
    async fn measure(&self, context: &BenchContext, brief: bool) -> anyhow::Result<Sample> {
        let (seconds, backlog) = if brief {
            (1, BACKLOG / 10)
        } else {
            (context.options.seconds, BACKLOG)
        };
        match &self.side {
            Side::Requests(server, load) => self.answer(context, server, load, seconds).await,
            Side::BesideReaders(readers) => {
                let (cluster, seed) = (&context.cluster, &self.seeded.seed);
                let server = Server::start("serve", &context.program, cluster, &self.seeded.database).await?;
                let load = self.seeded.load(self.scenario, &server).await?;
                let readers = Readers::open(seed, server.public, *readers).await?;
                let sample = self.answer(context, &server, &load, seconds).await?;
                readers.end()?;
                server.stop().await?;
                Ok(sample)
            }
            Side::Deliveries(server, receivers) => self.drain(context, server, receivers, backlog).await,
            Side::Pgbench(script) => self.run_pgbench(context, script, seconds).await,
        }
    }

    /// Measures requests in a closed loop.
    async fn answer(
        &self,
        context: &BenchContext,
        server: &Server,
        load: &Load,
        seconds: u64,
    ) -> anyhow::Result<Sample> {
        if self.scenario == Scenario::Journal {
            // The journal has a limit of its own, which no setting raises.
            let counts = "delete from rate_windows where kind = 12";
            context.cluster.sql(&self.seeded.database.name, counts).await?;
        }
        let meter = || cpu(context, Some(server.pid));
        let measured = Duration::from_secs(seconds);
        let counted = load::closed(load, context.options.connections, measured, meter).await?;
        server.clear_log()?;
        let count = counted.latencies.len() * self.scenario.weight();
        Ok(Sample {
            rate: real(count) / counted.elapsed.as_secs_f64(),
            latencies: counted.latencies,
            cpu: each(counted.meter, count),
        })
    }

    /// The worker runs only during this measurement: otherwise it would take the deliveries of another
    /// build's worker.
    async fn drain(
        &self,
        context: &BenchContext,
        server: &Server,
        receivers: &Receivers,
        backlog: u64,
    ) -> anyhow::Result<Sample> {
        let (cluster, database) = (&context.cluster, &self.seeded.database);
        deliveries::clear(cluster, &database.name).await?;
        let worker = Server::start("worker", &server.program, cluster, database).await?;
        let meter = || cpu(context, Some(worker.pid));
        // Warm-up: the worker connects and prepares its statements.
        deliveries::drain(cluster, &database.name, receivers, backlog / 10, meter).await?;
        let (rate, used) = deliveries::drain(cluster, &database.name, receivers, backlog, meter).await?;
        worker.stop().await?;
        Ok(Sample {
            rate,
            latencies: no_latencies()?,
            cpu: each(used, backlog),
        })
    }

    async fn run_pgbench(
        &self,
        context: &BenchContext,
        script: &str,
        seconds: u64,
    ) -> anyhow::Result<Sample> {
        let (cluster, database) = (&context.cluster, &self.seeded.database.name);
        let before = cpu(context, None)?;
        let run = pgbench::run(cluster, database, script, context.options.connections, seconds).await?;
        let after = cpu(context, None)?;
        Ok(Sample {
            rate: run.rate * real(self.scenario.weight()),
            latencies: no_latencies()?,
            cpu: each([before, after], run.transactions * self.scenario.weight()),
        })
    }
}

/// Starts the receivers if a scenario needs them.
pub(crate) async fn receivers(
    scenarios: &[Scenario],
    seeded: &SeededServer,
) -> anyhow::Result<Option<Receivers>> {
    if !scenarios.contains(&Scenario::Delivery) {
        return Ok(None);
    }
    let receivers = Receivers::subscribe(&seeded.seed, seeded.server.public).await?;
    Ok(Some(receivers))
}

/// CPU time so far: of PostgreSQL; of the program, if given; and of this process, or of pgbench without a
/// program.
fn cpu(context: &BenchContext, program: Option<u32>) -> anyhow::Result<[Duration; 3]> {
    let postgres = usage::of_postgres(context.cluster.pid()?)?;
    Ok(match program {
        Some(pid) => [
            postgres,
            usage::of_process(pid)?,
            usage::of_process(std::process::id())?,
        ],
        None => [postgres, Duration::ZERO, usage::of_ended_children()?],
    })
}

fn each([before, after]: [[Duration; 3]; 2], count: u64) -> [f64; 3] {
    let mut before = before.into_iter();
    after.map(|after| {
        let used = after.saturating_sub(before.next().unwrap_or_default());
        used.as_secs_f64() * 1e6 / real(count)
    })
}

/// The samples of one subject, in the order of the rounds.
#[derive(Default)]
pub(crate) struct Series(pub(crate) Vec<Sample>);

impl Series {
    pub(crate) fn rate(&self) -> Spread {
        Spread::of(self.0.iter().map(|sample| sample.rate))
    }

    /// The ratio of this rate to another's, round by round.
    pub(crate) fn ratio_to(&self, other: &Self) -> Spread {
        let pairs = self.0.iter().zip(&other.0);
        Spread::of(pairs.map(|(own, other)| own.rate / other.rate))
    }

    /// Median CPU time per request in microseconds: of PostgreSQL, the program, the client.
    pub(crate) fn cpu(&self) -> [f64; 3] {
        let median =
            |part: fn(&[f64; 3]) -> f64| Spread::of(self.0.iter().map(|sample| part(&sample.cpu))).median();
        [
            median(|[postgres, ..]| *postgres),
            median(|[_, program, _]| *program),
            median(|[.., client]| *client),
        ]
    }

    /// The latency quantile `share` in milliseconds; `–` if no latencies were measured.
    pub(crate) fn quantile(&self, share: f64) -> anyhow::Result<String> {
        let mut all = no_latencies()?;
        for sample in &self.0 {
            all.add(&sample.latencies)?;
        }
        Ok(match all.len() {
            0 => "–".to_owned(),
            _ => format!("{:.2}", real(all.value_at_quantile(share)) / 1e3),
        })
    }
}

/// Measures every subject once per round, after a warm-up round. Every other round runs in reverse order, so
/// that a temporary disturbance of the machine affects all subjects alike.
pub(crate) async fn rounds(context: &BenchContext, subjects: &[Subject<'_>]) -> anyhow::Result<Vec<Series>> {
    let rounds = context.options.rounds;
    let mut all: Vec<Series> = subjects.iter().map(|_| Series::default()).collect();
    for round in 0..=rounds {
        let mut order: Vec<_> = subjects.iter().zip(&mut all).collect();
        if !round.is_multiple_of(2) {
            order.reverse();
        }
        for (subject, series) in order {
            step(&format!("round {round} of {rounds}: {}", subject.title()));
            let sample = subject.measure(context, round == 0).await?;
            if round > 0 {
                series.0.push(sample);
            }
        }
        if round == 0 {
            settle(context, subjects).await?;
        }
    }
    Ok(all)
}

/// Analyzes the tables, so that no plan from a nearly empty table remains. Autovacuum would do so within a
/// minute.
async fn settle(context: &BenchContext, subjects: &[Subject<'_>]) -> anyhow::Result<()> {
    let databases: BTreeSet<&str> = subjects
        .iter()
        .map(|subject| subject.seeded.database.name.as_str())
        .collect();
    for database in databases {
        context.cluster.sql(database, "vacuum (analyze)").await?;
    }
    context.cluster.sql("postgres", "checkpoint").await?;
    Ok(())
}
