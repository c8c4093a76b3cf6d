//! The bench of webhooks, from the empty cluster to the report.

mod backlog;
pub(crate) mod churn;
mod drain;
mod events;
mod findings;
mod neighbour;
mod pending;
mod receiver;
mod report;
mod site;

use std::time::Duration;

use crate::figures::Spread;
use crate::goals::{Found, Goal};
use crate::noise::Patience;
use crate::options::DeliveriesOptions;
use crate::progress::Progress;
use crate::publish::Report;
use crate::stand::Ground;
use crate::{connections, publish};
pub(crate) use findings::Findings;
use findings::Rounds;
use site::Site;

/// The report's section in the document.
pub(crate) const SECTION: &str = "deliveries";
/// Files that are open here at most: receivers' sockets, and the database's.
const FILES: u64 = 4_096;

/// Runs it all and writes the report.
pub(crate) async fn run(options: &DeliveriesOptions) -> anyhow::Result<()> {
    let progress = Progress::new();
    publish::report(&options.report, SECTION, async {
        let ground = Ground::prepare(&options.stand, progress).await?;
        publication(&measure(&ground, options, progress).await?)
    })
    .await
}

/// What was found of the goals.
pub(crate) fn goals(findings: &Findings) -> Vec<Found> {
    let [_, counted] = &findings.counted;
    vec![
        Found::of(
            Goal::Deliveries,
            findings::spread(&findings.rounds.all, |drained| drained.rate),
        ),
        Found::of(Goal::DeliveryStatements, Spread::of([counted.all])),
    ]
}

/// What is told of it.
pub(crate) fn publication(findings: &Findings) -> anyhow::Result<Report> {
    Ok(Report::with(
        report::render(findings)?,
        vec![report::costs(findings)],
    ))
}

/// Measures on a cluster that others may use before and after.
pub(crate) async fn measure(
    ground: &Ground,
    options: &DeliveriesOptions,
    progress: Progress,
) -> anyhow::Result<Findings> {
    connections::raise_file_limit(FILES)?;
    let site = Site::raise(&ground.cluster, &ground.program, options, progress).await?;
    let mut patience = Patience::new(Duration::from_secs(options.stand.patience));
    let rounds = measure_rounds(&site, options, &mut patience, progress).await?;
    let counted = drain::counted(&site, options, progress).await?;
    let pending = pending::measure(&site, options, progress).await?;
    ground.clear(&site.database).await?;
    Ok(Findings {
        machine: ground.machine.clone(),
        date: publish::date(&options.report),
        options: options.clone(),
        rounds,
        counted,
        pending,
    })
}

async fn measure_rounds(
    site: &Site<'_>,
    options: &DeliveriesOptions,
    patience: &mut Patience,
    progress: Progress,
) -> anyhow::Result<Rounds> {
    let step = progress.counted("measuring", options.report.rounds + 1);
    let server = site.server().await?;
    let mut rounds = Rounds::default();
    for round in 0..=options.report.rounds {
        step.now(&format!("round {round} of {}", options.report.rounds));
        // The first round warms caches and plans up.
        let counts = round > 0;
        for (lanes, drains) in [(1, &mut rounds.one), (options.subscriptions, &mut rounds.all)] {
            patience.await_quiet().await?;
            let drained = drain::measure(site, &server, lanes, options.deliveries).await?;
            drains.extend(counts.then_some(drained));
        }
        patience.await_quiet().await?;
        if counts {
            rounds.quiet.push(neighbour::quiet(site, &server, options).await?);
            rounds
                .beside
                .push(neighbour::beside(site, &server, options).await?);
        }
        step.advance(1);
    }
    server.stop().await?;
    Ok(rounds)
}
