//! Hours of mixed load, for what grows slowly: memory, file descriptors, threads, connections to the database.

mod mixture;
mod report;
mod samples;

use std::sync::Mutex;
use std::time::Duration;

use anyhow::Context as _;

use crate::catalogue::Catalogue;
use crate::load::{self, Load};
use crate::options::SoakOptions;
use crate::progress::Progress;
use crate::publish::{self, Report};
use crate::stand::{Ground, Stand};
use report::Findings;

/// The report's section in the document.
const SECTION: &str = "soak";
/// For how long nothing is looked at: caches fill, and connections are opened.
const WARM_UP: Duration = Duration::from_secs(20);

/// Runs it all and writes the report.
pub(crate) async fn run(options: &SoakOptions) -> anyhow::Result<()> {
    let progress = Progress::new();
    publish::report(&options.report, SECTION, async {
        Ok(Report::of(report::render(&measure(options, progress).await?)?))
    })
    .await
}

async fn measure(options: &SoakOptions, progress: Progress) -> anyhow::Result<Findings> {
    let ground = Ground::prepare(&options.stand, progress).await?;
    let Ground { program, cluster, .. } = &ground;
    let catalogue = Catalogue::new(options.offers, options.stand.sellers);
    let stand = Stand::raise(cluster, program, "bench_soak", catalogue, progress).await?;
    stand.settle(cluster).await?;
    let load = Load {
        server: stand.server.public,
        connections: options.stand.concurrency.into(),
        requests: mixture::on(&stand),
        expected: 200,
        warm_up: WARM_UP,
        measured: Duration::from_secs(options.minutes * 60),
    };
    let step = progress.step("soaking");
    let samples = Mutex::new(Vec::new());
    let (counted, ()) = tokio::select! {
        counted = load::run(&load, || Ok(()), Ok) => counted?,
        failed = samples::take(cluster, &stand, WARM_UP, options.interval(), &samples) => match failed? {},
    };
    drop(step);
    stand.server.stop().await?;
    Ok(Findings {
        machine: ground.machine.clone(),
        date: publish::date(&options.report),
        options: options.clone(),
        counted,
        samples: samples.into_inner().ok().context("no samples")?,
    })
}
