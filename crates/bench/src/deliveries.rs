//! The bench of webhooks, from the empty cluster to the report.

mod backlog;
mod drain;
mod events;
mod findings;
mod neighbour;
mod pending;
mod receiver;
mod report;
mod site;

use std::time::Duration;

use crate::machine::Machine;
use crate::noise::Patience;
use crate::options::DeliveriesOptions;
use crate::progress::Progress;
use crate::{connections, publish, stand};
use findings::{Findings, Rounds};
use site::Site;

/// The report's section in the document.
const SECTION: &str = "deliveries";
/// Files that are open here at most: receivers' sockets, and the database's.
const FILES: u64 = 4_096;

/// Runs it all and writes the report.
pub(crate) async fn run(options: &DeliveriesOptions) -> anyhow::Result<()> {
    let progress = Progress::new();
    publish::report(&options.report, SECTION, async {
        report::render(&measure(options, progress).await?)
    })
    .await
}

async fn measure(options: &DeliveriesOptions, progress: Progress) -> anyhow::Result<Findings> {
    connections::raise_file_limit(FILES)?;
    let (program, cluster) = stand::prepare(&options.stand, progress).await?;
    let machine = Machine::describe(&cluster, &program).await?;
    let site = Site::raise(&cluster, &program, options, progress).await?;
    let mut patience = Patience::new(Duration::from_secs(options.stand.patience));
    let rounds = measure_rounds(&site, options, &mut patience, progress).await?;
    let counted = drain::counted(&site, options, progress).await?;
    let pending = pending::measure(&site, options, progress).await?;
    Ok(Findings {
        machine,
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
