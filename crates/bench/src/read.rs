//! The bench of the reading endpoints, from the empty cluster to the report.

mod bars;
pub(crate) mod key;
mod report;
mod scripts;
pub(crate) mod subjects;

use std::time::Duration;

use crate::catalogue::Catalogue;
use crate::cluster::Cluster;
use crate::figures::{Spread, real, whole};
use crate::goals::{Found, Goal};
use crate::noise::Patience;
use crate::options::ReadOptions;
use crate::progress::Progress;
use crate::publish::Report;
use crate::report::pictures;
use crate::rounds::Measured;
use crate::stand::{Ground, Stand};
use crate::{connections, import, publish, rounds, startup};
pub(crate) use report::Findings;

/// The connections that the goal of memory is about.
pub(crate) const CONNECTIONS: u64 = 10_000;
/// The report's section in the document.
pub(crate) const SECTION: &str = "read";

/// Runs it all and writes the report.
pub(crate) async fn run(options: &ReadOptions) -> anyhow::Result<()> {
    let progress = Progress::new();
    publish::report(&options.report, SECTION, async {
        let ground = Ground::prepare(&options.stand, progress).await?;
        publication(&measure(&ground, options, progress).await?)
    })
    .await
}

/// What was found of the goals.
pub(crate) fn goals(findings: &Findings) -> anyhow::Result<Vec<Found>> {
    let subject = |key| findings.subject(key);
    let (row, offer) = (subject(key::ROW)?, subject(key::OFFER)?);
    let (page, rows, deep) = (subject(key::PAGE)?, subject(key::PAGE_ROWS)?, subject(key::DEEP)?);
    let postgres = |measured: &Measured| measured.middle(|sample| sample.cpu.postgres);
    let beside =
        |own: &Measured, other: &Measured| format!("CPU time: {}; pgbench: {}.", own.cost(), other.cost());
    let gate = format!(
        "Of {:.0} µs, `GET /v1/me` alone has {:.0}; pgbench's row {:.0}.",
        postgres(offer),
        postgres(subject(key::ME)?),
        postgres(row)
    );
    let megabytes = real(findings.kept.with_all.memory.resident) * 1_024.0 / 1e6;
    let mut memory = Found::of(Goal::Memory, Spread::of([megabytes]));
    let connections = findings.kept.with_all.connections;
    memory.but = (connections != CONNECTIONS).then(|| format!("with {}", whole(real(connections))));
    Ok(vec![
        Found::of(Goal::Offer, offer.ratio_to(row)).because(beside(offer, row)),
        Found::of(Goal::OfferCpu, offer.over(row, |sample| sample.cpu.postgres)).because(gate),
        Found::of(Goal::Page, page.ratio_to(rows)).because(beside(page, rows)),
        Found::of(Goal::Deep, page.ratio_to(deep)).because(format!(
            "CPU time: {} at depth, {} first.",
            deep.cost(),
            page.cost()
        )),
        memory,
        Found::of(Goal::Ready, findings.starts),
    ])
}

/// What is told of it.
pub(crate) fn publication(findings: &Findings) -> anyhow::Result<Report> {
    let goal = |subject: &str| match subject {
        key::OFFER => Some(0.75),
        key::PAGE => Some(0.6),
        _ => None,
    };
    let (measured, base_of) = (&findings.measured, report::base_of);
    let plots = vec![
        pictures::ratios("reads", "Reads a second ÷ pgbench's", measured, base_of, goal)?,
        pictures::costs("reads-cost", "CPU time of a read, µs", measured),
    ];
    Ok(Report::with(report::render(findings)?, plots))
}

/// Measures on a cluster that others may use before and after.
pub(crate) async fn measure(
    ground: &Ground,
    options: &ReadOptions,
    progress: Progress,
) -> anyhow::Result<Findings> {
    let Ground { program, cluster, .. } = ground;
    let catalogue = Catalogue::new(options.small_offers, options.stand.sellers);
    let small = Stand::raise(cluster, program, "bench_small", catalogue, progress).await?;
    let catalogue = Catalogue::new(options.offers, options.stand.sellers);
    let large = Stand::raise(cluster, program, "bench_large", catalogue, progress).await?;
    let copied = import::copy(cluster, &large.database, large.catalogue.offers, progress).await?;
    settle(cluster, &[&small, &large], progress).await?;
    let mut subjects = subjects::of(&options.stand, &large).await?;
    subjects.extend(subjects::for_growth(&options.stand, &small));
    let mut patience = Patience::new(Duration::from_secs(options.stand.patience));
    let measured = rounds::run(cluster, subjects, options.report.rounds, &mut patience, progress).await?;
    let starts = startup::measure(cluster, program, &large, options.starts, progress).await?;
    let kept = connections::measure(cluster, program, &large, options.kept_connections, progress).await?;
    let findings = Findings {
        machine: ground.machine.clone(),
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
        ground.clear(&stand.database).await?;
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
