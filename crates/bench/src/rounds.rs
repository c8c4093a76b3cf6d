//! Several rounds, each of which measures every subject once: what disturbs the machine for a while hits all of them, and
//! ratios are taken within a round.

use std::time::Duration;

use crate::cluster::Cluster;
use crate::cpu;
use crate::figures::{Spread, real};
use crate::load::{self, Latency, Load};
use crate::pgbench::{self, Script};
use crate::progress::Progress;
use crate::server::Server;

/// Something that is measured.
#[derive(Clone, Debug)]
pub(crate) struct Subject<'a> {
    /// By what the report finds it.
    pub(crate) key: &'static str,
    /// What the report calls it.
    pub(crate) title: String,
    /// What is done.
    pub(crate) work: Work<'a>,
}

/// What is done.
#[derive(Clone, Debug)]
pub(crate) enum Work<'a> {
    /// A script, by so many clients for so long.
    Pgbench(Script, usize, Duration),
    /// A load on a server.
    Http(&'a Server, Load),
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

/// A subject with its samples, one for each round.
#[derive(Debug)]
pub(crate) struct Measured {
    /// See [`Subject::key`].
    pub(crate) key: &'static str,
    /// See [`Subject::title`].
    pub(crate) title: String,
    /// In the rounds' order.
    pub(crate) samples: Vec<Sample>,
}

impl Measured {
    /// Requests a second.
    pub(crate) fn rate(&self) -> Spread {
        Spread::of(self.samples.iter().map(|sample| sample.rate))
    }

    /// This one's rate over another's, taken round by round.
    pub(crate) fn ratio_to(&self, other: &Self) -> Spread {
        let pairs = self.samples.iter().zip(&other.samples);
        Spread::of(pairs.map(|(own, other)| own.rate / other.rate))
    }

    /// A figure of the CPU time per request, in the middle of the rounds.
    pub(crate) fn cpu(&self, figure: impl Fn(&CpuEach) -> f64) -> f64 {
        Spread::of(self.samples.iter().map(|sample| figure(&sample.cpu))).median
    }

    /// The latencies of all rounds.
    pub(crate) fn latency(&self) -> anyhow::Result<Latency> {
        let mut samples = self.samples.iter();
        let mut sum = match samples.next() {
            Some(first) => first.latency.clone(),
            None => Latency::new()?,
        };
        for sample in samples {
            sum.add(&sample.latency)?;
        }
        Ok(sum)
    }
}

/// Measures every subject once a round, after one round that does not count.
pub(crate) async fn run(
    cluster: &Cluster,
    subjects: Vec<Subject<'_>>,
    rounds: u64,
    progress: Progress,
) -> anyhow::Result<Vec<Measured>> {
    let total = u64::try_from(subjects.len())? * (rounds + 1);
    let step = progress.counted("measuring", total);
    let mut measured: Vec<Measured> = subjects
        .iter()
        .map(|subject| Measured {
            key: subject.key,
            title: subject.title.clone(),
            samples: Vec::new(),
        })
        .collect();
    for round in 0..=rounds {
        let mut order: Vec<_> = subjects.iter().zip(&mut measured).collect();
        // There and back again, so that nobody always follows the same neighbour.
        if !round.is_multiple_of(2) {
            order.reverse();
        }
        for (subject, measured) in order {
            step.now(&format!("round {round} of {rounds}: {}", subject.title));
            let sample = measure(cluster, &subject.work).await?;
            // The first round warms caches and plans up.
            if round > 0 {
                measured.samples.push(sample);
            }
            step.advance(1);
        }
    }
    Ok(measured)
}

async fn measure(cluster: &Cluster, work: &Work<'_>) -> anyhow::Result<Sample> {
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
    let before = (cpu::family(postgres)?, cpu::ended_children()?);
    let run = pgbench::run(cluster, script, clients, duration).await?;
    cpu::few_children(postgres, backends).await?;
    let each = |used: Duration| used.as_secs_f64() * 1e6 / real(run.transactions);
    let cpu = CpuEach {
        postgres: each(cpu::family(postgres)?.saturating_sub(before.0)),
        server: 0.0,
        client: each(cpu::ended_children()?.saturating_sub(before.1)),
    };
    Ok(Sample {
        rate: run.rate,
        latency: run.latency,
        cpu,
    })
}

async fn measure_http(cluster: &Cluster, server: &Server, load: &Load) -> anyhow::Result<Sample> {
    let postgres = cluster.server()?;
    let used = || {
        let own = cpu::process(std::process::id())?;
        anyhow::Ok((cpu::family(postgres)?, cpu::process(server.pid)?, own))
    };
    let (interval, before, after) = load::run(load, used, used).await?;
    // A log of every request would fill the disk.
    server.clear_log()?;
    let requests = real(interval.latency.count());
    let each =
        |after: Duration, before: Duration| after.saturating_sub(before).as_secs_f64() * 1e6 / requests;
    let cpu = CpuEach {
        postgres: each(after.0, before.0),
        server: each(after.1, before.1),
        client: each(after.2, before.2),
    };
    Ok(Sample {
        rate: requests / interval.elapsed.as_secs_f64(),
        latency: interval.latency,
        cpu,
    })
}
