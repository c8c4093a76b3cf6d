//! The bench of the reading endpoints, from the empty cluster to the report.

mod bars;
mod key;
mod report;
mod scripts;
pub(crate) mod subjects;

use std::time::Duration;

use crate::catalogue::Catalogue;
use crate::cluster::Cluster;
use crate::machine::Machine;
use crate::noise::Patience;
use crate::options::ReadOptions;
use crate::progress::Progress;
use crate::stand::Stand;
use crate::{connections, import, publish, rounds, stand, startup};
use report::Findings;

/// The report's section in the document.
const SECTION: &str = "read";

/// Runs it all and writes the report.
pub(crate) async fn run(options: &ReadOptions) -> anyhow::Result<()> {
    let progress = Progress::new();
    publish::report(&options.report, SECTION, async {
        report::render(&measure(options, progress).await?)
    })
    .await
}

async fn measure(options: &ReadOptions, progress: Progress) -> anyhow::Result<Findings> {
    let (program, cluster) = stand::prepare(&options.stand, progress).await?;
    let machine = Machine::describe(&cluster, &program).await?;
    let catalogue = Catalogue::new(options.small_offers, options.stand.sellers);
    let small = Stand::raise(&cluster, &program, "bench_small", catalogue, progress).await?;
    let catalogue = Catalogue::new(options.offers, options.stand.sellers);
    let large = Stand::raise(&cluster, &program, "bench_large", catalogue, progress).await?;
    let copied = import::copy(&cluster, &large.database, large.catalogue.offers, progress).await?;
    settle(&cluster, &[&small, &large], progress).await?;
    let mut subjects = subjects::of(&options.stand, &large).await?;
    subjects.extend(subjects::for_growth(&options.stand, &small));
    let mut patience = Patience::new(Duration::from_secs(options.stand.patience));
    let measured = rounds::run(&cluster, subjects, options.report.rounds, &mut patience, progress).await?;
    let starts = startup::measure(&cluster, &program, &large, options.starts, progress).await?;
    let kept = connections::measure(&cluster, &program, &large, options.kept_connections, progress).await?;
    let findings = Findings {
        machine,
        date: publish::date(&options.report),
        options: options.clone(),
        filling: large.filling.clone(),
        copied,
        measured,
        starts,
        kept,
    };
    for stand in [small, large] {
        stand.server.stop().await?;
    }
    Ok(findings)
}

async fn settle(cluster: &Cluster, stands: &[&Stand], progress: Progress) -> anyhow::Result<()> {
    let _step = progress.step("vacuum, analyze, checkpoint");
    for stand in stands {
        stand.settle(cluster).await?;
    }
    Ok(())
}
