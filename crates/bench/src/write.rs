//! The bench of the writing endpoints, and of lists of orders, from the empty cluster to the report.

mod bars;
mod key;
mod report;
mod requests;
mod scripts;
mod seed;
mod subjects;
mod trade;

use std::time::Duration;

use crate::catalogue::Catalogue;
use crate::cluster::Cluster;
use crate::machine::Machine;
use crate::measure::{self, Subject};
use crate::noise::Patience;
use crate::options::{StandOptions, WriteOptions};
use crate::progress::Progress;
use crate::requests::Requests;
use crate::stand::Stand;
use crate::{counts, publish, rounds, stand};
use report::Findings;
use subjects::Writes;
use trade::Trade;

/// The report's section in the document.
const SECTION: &str = "write";

/// Runs it all and writes the report.
pub(crate) async fn run(options: &WriteOptions) -> anyhow::Result<()> {
    let progress = Progress::new();
    publish::report(&options.report, SECTION, async {
        report::render(&measure(options, progress).await?)
    })
    .await
}

async fn measure(options: &WriteOptions, progress: Progress) -> anyhow::Result<Findings> {
    let (program, cluster) = stand::prepare(&options.stand, progress).await?;
    let machine = Machine::describe(&cluster, &program).await?;
    let catalogue = Catalogue::new(options.offers, options.stand.sellers);
    let stand = Stand::raise(&cluster, &program, "bench_write", catalogue, progress).await?;
    let trade = fill(&cluster, &stand, options.orders, progress).await?;
    let writes = Writes::on(&stand, trade)?;
    let asked = counts::measure(
        &cluster,
        &program,
        &stand,
        [&writes.patches, &writes.shipments],
        progress,
    )
    .await?;
    let subjects = subjects::of(&options.stand, &cluster, &stand, trade, &writes, progress).await?;
    let scripts = measure::statements(&subjects);
    let mut patience = Patience::new(Duration::from_secs(options.stand.patience));
    let measured = rounds::run(&cluster, subjects, options.report.rounds, &mut patience, progress).await?;
    stand.server.stop().await?;
    Ok(Findings {
        machine,
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

/// Keyed changes of all offers of a stand.
pub(crate) fn patches_on(stand: &Stand) -> Requests {
    requests::Patches::of_all(stand.catalogue, &stand.tokens())
}

async fn fill(cluster: &Cluster, stand: &Stand, orders: u64, progress: Progress) -> anyhow::Result<Trade> {
    let sellers = stand.catalogue.sellers;
    let trade = Trade { orders, sellers };
    seed::orders(cluster, &stand.database, trade, &stand.seller_ids(), progress).await?;
    let _step = progress.step("vacuum, analyze, checkpoint");
    stand.settle(cluster).await?;
    Ok(trade)
}
