//! The bench of the reading endpoints, from the empty cluster to the report.

pub(crate) mod subjects;

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::catalogue::Catalogue;
use crate::cli::ReadOptions;
use crate::cluster::Cluster;
use crate::machine::Machine;
use crate::noise::Patience;
use crate::program::Program;
use crate::progress::{self, Progress};
use crate::report::{self, Findings};
use crate::stand::Stand;
use crate::{connections, document, import, rounds, startup};

/// The report's section in the document.
const SECTION: &str = "read";

/// Runs it all and writes the report.
pub(crate) async fn run(options: &ReadOptions) -> anyhow::Result<()> {
    let printed = options.output == Path::new("-");
    if !printed {
        document::check(&options.output, SECTION)?;
    }
    let progress = Progress::new();
    let findings = measure(options, progress).await?;
    let report = report::render(&findings)?;
    if printed {
        std::io::stdout().write_all(report.as_bytes())?;
    } else {
        document::replace(&options.output, SECTION, &report)?;
        progress::say(&format!("{} is written", options.output.display()));
    }
    Ok(())
}

async fn measure(options: &ReadOptions, progress: Progress) -> anyhow::Result<Findings> {
    let program = prepare(options, progress).await?;
    let cluster = start_cluster(options, progress).await?;
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
    let measured = rounds::run(&cluster, subjects, options.rounds, &mut patience, progress).await?;
    let starts = startup::measure(&cluster, &program, &large, options.starts, progress).await?;
    let kept = connections::measure(&cluster, &program, &large, options.kept_connections, progress).await?;
    let findings = Findings {
        machine,
        date: options.date.clone().unwrap_or_else(today),
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

async fn prepare(options: &ReadOptions, progress: Progress) -> anyhow::Result<Program> {
    let _step = progress.step("building the program");
    Program::locate(options.stand.server.as_deref()).await
}

async fn start_cluster(options: &ReadOptions, progress: Progress) -> anyhow::Result<Cluster> {
    let _step = progress.step("starting PostgreSQL");
    Cluster::start(&options.stand.shared_buffers, options.stand.folder.as_deref()).await
}

async fn settle(cluster: &Cluster, stands: &[&Stand], progress: Progress) -> anyhow::Result<()> {
    let _step = progress.step("vacuum, analyze, checkpoint");
    for stand in stands {
        stand.settle(cluster).await?;
    }
    Ok(())
}

fn today() -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "a report names the day it was made on, and no rule hangs on it"
    )]
    let now: DateTime<Utc> = std::time::SystemTime::now().into();
    now.format("%Y-%m-%d").to_string()
}
