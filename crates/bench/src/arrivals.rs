//! How long requests take that come at random: at half and at four fifths of what the machine can do.

mod report;
mod subjects;

use std::time::Duration;

use crate::catalogue::Catalogue;
use crate::figures::{Spread, ratio_spread};
use crate::goals::{Found, Goal};
use crate::load::{Latency, Load, open};
use crate::measure::{Subject, Work, measure as measure_once};
use crate::noise::{Patience, Stretch};
use crate::options::ArrivalsOptions;
use crate::progress::Progress;
use crate::publish::{self, Report};
use crate::read::key;
use crate::stand::{Ground, Stand};
use crate::write;
pub(crate) use report::Findings;

/// The report's section in the document.
pub(crate) const SECTION: &str = "latency";
/// The shares of the capacity at which requests come.
pub(crate) const SHARES: [f64; 2] = [0.5, 0.8];
/// How long answers may take to become as quick as they are at a steady rate.
const WARM_UP: Duration = Duration::from_secs(1);

/// What was measured of one kind of request.
#[derive(Debug)]
pub(crate) struct Kind {
    /// By what the report finds it.
    key: &'static str,
    /// What the report calls it.
    title: String,
    /// What the machine can do of it, in each round.
    capacity: Vec<f64>,
    /// What came at each share of that.
    at: [Vec<Share>; SHARES.len()],
}

/// What came in one round at one share of the capacity.
#[derive(Debug)]
struct Share {
    arrived: open::Arrived,
    /// The share of the machine that was busy meanwhile, with whatever.
    busy: f64,
}

impl Kind {
    fn of(subject: &Subject<'_>) -> Self {
        Self {
            key: subject.key,
            title: subject.title.clone(),
            capacity: Vec::new(),
            at: std::array::from_fn(|_| Vec::new()),
        }
    }

    /// A quantile in milliseconds, in each round at a share.
    fn quantile(shares: &[Share], quantile: f64) -> Spread {
        let milliseconds = |latency: &Latency| latency.quantile(quantile).as_secs_f64() * 1e3;
        Spread::of(shares.iter().map(|share| milliseconds(&share.arrived.latency)))
    }
}

/// Runs it all and writes the report.
pub(crate) async fn run(options: &ArrivalsOptions) -> anyhow::Result<()> {
    let progress = Progress::new();
    publish::report(&options.report, SECTION, async {
        let ground = Ground::prepare(&options.stand, progress).await?;
        publication(&measure(&ground, options, progress).await?)
    })
    .await
}

/// What was found of the goals.
pub(crate) fn goals(findings: &Findings) -> Vec<Found> {
    let half = |goal, kind: &Kind| {
        let [half, _] = &kind.at;
        let median = ratio_spread(Kind::quantile(half, 0.5));
        Found::of(goal, Kind::quantile(half, 0.99)).because(format!("Half of them take {median} ms."))
    };
    let goal = |kind: &Kind| match kind.key {
        key::OFFER => Some(half(Goal::OfferLatency, kind)),
        key::PAGE => Some(half(Goal::PageLatency, kind)),
        _ => None,
    };
    findings.kinds.iter().filter_map(goal).collect()
}

/// What is told of it.
pub(crate) fn publication(findings: &Findings) -> anyhow::Result<Report> {
    Ok(Report::with(
        report::render(findings)?,
        vec![report::plot(findings)?],
    ))
}

/// Measures on a cluster that others may use before and after.
pub(crate) async fn measure(
    ground: &Ground,
    options: &ArrivalsOptions,
    progress: Progress,
) -> anyhow::Result<Findings> {
    let Ground { program, cluster, .. } = ground;
    let catalogue = Catalogue::new(options.offers, options.stand.sellers);
    let stand = Stand::raise(cluster, program, "bench_arrivals", catalogue, progress).await?;
    let subjects = subjects::on(options, cluster, &stand, progress).await?;
    let mut kinds: Vec<_> = subjects.iter().map(Kind::of).collect();
    let mut patience = Patience::new(Duration::from_secs(options.stand.patience));
    let total = (options.report.rounds + 1) * u64::try_from(subjects.len())?;
    let step = progress.counted("measuring", total);
    for round in 0..=options.report.rounds {
        for (subject, kind) in subjects.iter().zip(&mut kinds) {
            step.now(&format!(
                "round {round} of {}: {}",
                options.report.rounds, subject.title
            ));
            patience.await_quiet().await?;
            let capacity = measure_once(cluster, &subject.work).await?.rate;
            // The first round warms caches and plans up.
            if let Work::Http(_, load) = &subject.work
                && round > 0
            {
                kind.capacity.push(capacity);
                for (share, shares) in SHARES.into_iter().zip(&mut kind.at) {
                    shares.push(at_rate(load, capacity * share, round).await?);
                }
                stand.server.clear_log()?;
            }
            step.advance(1);
        }
        if round == 0 {
            // Plans that were made while tables were nearly empty, as those of tokens are at first, end here.
            stand.settle(cluster).await?;
        }
    }
    stand.server.stop().await?;
    ground.clear(&stand.database).await?;
    Ok(Findings {
        machine: ground.machine.clone(),
        date: publish::date(&options.report),
        options: options.clone(),
        kinds,
    })
}

async fn at_rate(load: &Load, rate: f64, seed: u64) -> anyhow::Result<Share> {
    let load = Load {
        warm_up: WARM_UP,
        ..load.clone()
    };
    let stretch = Stretch::begin()?;
    let arrived = open::run(&load, rate, seed).await?;
    let busy = stretch.others(Duration::ZERO)?;
    Ok(Share { arrived, busy })
}

/// As many orders as were asked for, or more than are shipped: in each round, and in the one before them, once by the closed loop
/// and at each share by the open one, which is slower; each time for a second more than is measured, at most.
fn orders(options: &ArrivalsOptions) -> anyhow::Result<u64> {
    let loops = (options.report.rounds + 1) * u64::try_from(1 + SHARES.len())?;
    let needed = write::orders_for(loops * (options.stand.seconds + 1));
    Ok(options.orders.unwrap_or(needed))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Arguments {
        #[command(flatten)]
        options: ArrivalsOptions,
    }

    fn orders_with(arguments: &str) -> u64 {
        let arguments = format!("latency {arguments}");
        orders(&Arguments::parse_from(arguments.split_whitespace()).options).unwrap()
    }

    #[test]
    fn there_are_orders_for_all_rounds() {
        // Seconds that are measured or warm up, and those of the round that does not count.
        let seconds = |rounds: u64, each: u64| rounds * (each + 1) * 3 + (each + 1);
        assert!(orders_with("--rounds 2 --seconds 3") >= write::orders_for(seconds(2, 3)));
        assert!(orders_with("--rounds 9 --seconds 1") >= write::orders_for(seconds(9, 1)));
        assert_eq!(orders_with("--orders 2000"), 2_000);
    }
}
