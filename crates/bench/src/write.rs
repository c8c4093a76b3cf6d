//! The bench of the writing endpoints, and of lists of orders, from the empty cluster to the report.

mod bars;
pub(crate) mod key;
mod report;
mod requests;
mod scripts;
mod seed;
mod subjects;
mod trade;

use std::time::Duration;

use crate::catalogue::Catalogue;
use crate::cluster::Cluster;
use crate::goals::{Found, Goal};
use crate::measure::{self, Subject};
use crate::noise::Patience;
use crate::options::{StandOptions, WriteOptions};
use crate::progress::Progress;
use crate::publish::Report;
use crate::report::pictures;
use crate::report::subjects::find;
use crate::requests::{Calls, Requests};
use crate::stand::{Ground, Stand};
use crate::{counts, publish, rounds};
pub(crate) use report::Findings;
use subjects::Writes;
use trade::Trade;

/// The report's section in the document.
pub(crate) const SECTION: &str = "write";
/// More shipments a second than have been seen anywhere.
const FASTEST: u64 = 3_000;

/// Runs it all and writes the report.
pub(crate) async fn run(options: &WriteOptions) -> anyhow::Result<()> {
    let progress = Progress::new();
    publish::report(&options.report, SECTION, async {
        let ground = Ground::prepare(&options.stand, progress).await?;
        publication(&measure(&ground, options, progress).await?)
    })
    .await
}

/// What was found of the goals.
pub(crate) fn goals(findings: &Findings) -> anyhow::Result<Vec<Found>> {
    let subject = |key| find(&findings.measured, key);
    let (patch, rows) = (subject(key::PATCH)?, subject(key::PATCH_ROWS)?);
    let costs = format!("CPU time: {}; pgbench: {}.", patch.cost(), rows.cost());
    Ok(vec![Found::of(Goal::Patch, patch.ratio_to(rows)).because(costs)])
}

/// What is told of it.
pub(crate) fn publication(findings: &Findings) -> anyhow::Result<Report> {
    let goal = |subject: &str| (subject == key::PATCH).then_some(0.8);
    let (measured, base_of) = (&findings.measured, report::base_of);
    let plots = vec![
        pictures::ratios("writes", "Writes a second ÷ pgbench's", measured, base_of, goal)?,
        pictures::costs("writes-cost", "CPU time of a write, µs", measured),
    ];
    Ok(Report::with(report::render(findings)?, plots))
}

/// Measures on a cluster that others may use before and after.
pub(crate) async fn measure(
    ground: &Ground,
    options: &WriteOptions,
    progress: Progress,
) -> anyhow::Result<Findings> {
    let Ground { program, cluster, .. } = ground;
    let catalogue = Catalogue::new(options.offers, options.stand.sellers);
    let stand = Stand::raise(cluster, program, "bench_write", catalogue, progress).await?;
    let trade = fill(cluster, &stand, options.orders, progress).await?;
    let writes = Writes::on(&stand, trade)?;
    let asked = counts::measure(
        cluster,
        program,
        &stand,
        [&writes.patches, &writes.shipments, &writes.placings],
        progress,
    )
    .await?;
    let mut subjects = subjects::of(&options.stand, cluster, &stand, trade, &writes, progress).await?;
    for subject in &mut subjects {
        subject.looked_at = report::waits_told(subject.key).then(|| stand.database.clone());
    }
    let scripts = measure::statements(&subjects);
    let mut patience = Patience::new(Duration::from_secs(options.stand.patience));
    let measured = rounds::run(cluster, subjects, options.report.rounds, &mut patience, progress).await?;
    stand.server.stop().await?;
    ground.clear(&stand.database).await?;
    Ok(Findings {
        machine: ground.machine.clone(),
        date: publish::date(&options.report),
        options: options.clone(),
        measured,
        asked,
        scripts,
    })
}

/// Fills a stand with orders, and gives what is measured on it.
pub(crate) async fn subjects_on<'a>(
    options: &StandOptions,
    cluster: &Cluster,
    stand: &'a Stand,
    orders: u64,
    progress: Progress,
) -> anyhow::Result<Vec<Subject<'a>>> {
    let trade = fill(cluster, stand, orders, progress).await?;
    let writes = Writes::on(stand, trade)?;
    subjects::of(options, cluster, stand, trade, &writes, progress).await
}

/// Fills a stand with orders, and gives keyed changes, shipments and placings of orders.
pub(crate) async fn calls_on(
    cluster: &Cluster,
    stand: &Stand,
    orders: u64,
    progress: Progress,
) -> anyhow::Result<[Calls; 3]> {
    let trade = fill(cluster, stand, orders, progress).await?;
    let Writes {
        patches,
        shipments,
        placings,
    } = Writes::on(stand, trade)?;
    Ok([patches, shipments, placings])
}

/// Orders that are not used up when they are shipped for so many seconds.
pub(crate) const fn orders_for(seconds: u64) -> u64 {
    trade::orders_to_ship(seconds * FASTEST)
}

/// Keyed changes of all offers of a catalogue, by its sellers' tokens.
pub(crate) fn patches_of(catalogue: Catalogue, tokens: &[&str]) -> Requests {
    requests::Patches::of_all(catalogue, tokens)
}

/// Keyed changes of all offers of a stand.
pub(crate) fn patches_on(stand: &Stand) -> Requests {
    requests::Patches::of_all(stand.catalogue, &stand.tokens())
}

async fn fill(cluster: &Cluster, stand: &Stand, orders: u64, progress: Progress) -> anyhow::Result<Trade> {
    let sellers = stand.catalogue.sellers;
    let trade = Trade { orders, sellers };
    seed::orders(cluster, &stand.database, trade, &stand.seller_ids(), progress).await?;
    seed::stock(cluster, &stand.database).await?;
    let _step = progress.step("vacuum, analyze, checkpoint");
    stand.settle(cluster).await?;
    Ok(trade)
}
