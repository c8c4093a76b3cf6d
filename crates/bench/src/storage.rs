//! The bench of storage: what a write costs the write-ahead log, which updates spare the indexes, what an index and room on
//! pages change, queues under churn, and the plans of the statements that are executed most.

mod keys;
mod lists;
mod operations;
mod plans;
mod report;
mod shop;
mod updates;
mod writes;

use crate::deliveries::churn;
use crate::options::StorageOptions;
use crate::progress::Progress;
use crate::publish::{self, Report};
use crate::stand::Ground;
use crate::{tables, wal};
pub(crate) use report::Findings;
use shop::Shop;

/// The report's section in the document.
pub(crate) const SECTION: &str = "storage";

/// Runs it all and writes the report.
pub(crate) async fn run(options: &StorageOptions) -> anyhow::Result<()> {
    let progress = Progress::new();
    publish::report(&options.report, SECTION, async {
        let ground = Ground::prepare(&options.stand, progress).await?;
        publication(&measure(&ground, options, progress).await?)
    })
    .await
}

/// What is told of it.
pub(crate) fn publication(findings: &Findings) -> anyhow::Result<Report> {
    Ok(Report::of(report::render(findings)?))
}

/// Measures on a cluster that others may use before and after.
pub(crate) async fn measure(
    ground: &Ground,
    options: &StorageOptions,
    progress: Progress,
) -> anyhow::Result<Findings> {
    let cluster = &ground.cluster;
    wal::prepare(cluster).await?;
    wal::set_hurried_vacuum(cluster, true).await?;
    let churned = churn::measure(ground, options, progress).await?;
    let (shop, operations) = Shop::raise(ground, options, progress).await?;
    let rounds = options.report.rounds;
    wal::set_autovacuum(cluster, false).await?;
    tables::forget(cluster, &shop.database).await?;
    let requests = writes::of_requests(&shop, &operations, rounds, progress).await?;
    let updated = tables::updated(cluster, &shop.database).await?;
    let scripts = writes::of_scripts(&shop, &operations, rounds, progress).await?;
    wal::set_autovacuum(cluster, true).await?;
    let mut told = plans::told(&shop, &operations, progress).await?;
    told.extend(churned.told.iter().cloned());
    let keys = keys::measure(&shop, &operations, options, progress).await?;
    let variants = updates::measure(&shop, options, progress).await?;
    let polls = lists::measure(&shop, progress).await?;
    ground.clear(&shop.database).await?;
    wal::set_hurried_vacuum(cluster, false).await?;
    Ok(Findings {
        machine: ground.machine.clone(),
        date: publish::date(&options.report),
        options: options.clone(),
        requests,
        scripts,
        updated,
        variants,
        polls,
        keys,
        plans: plans::all(&told)?,
        churned,
    })
}
