//! The bench of the token endpoint, from the empty cluster to the report.

mod bars;
pub(crate) mod key;
mod report;
mod requests;
mod scripts;
mod seed;
mod subjects;

use std::time::Duration;

use crate::catalogue::Catalogue;
use crate::cluster::Cluster;
use crate::goals::{Found, Goal};
use crate::measure::Subject;
use crate::noise::Patience;
use crate::options::{StandOptions, TokensOptions};
use crate::progress::Progress;
use crate::publish::Report;
use crate::report::pictures;
use crate::report::subjects::find;
use crate::requests::Requests;
use crate::stand::{Ground, Stand};
use crate::{counts, measure, publish, rounds};
pub(crate) use report::Findings;
use subjects::Calls;

/// The report's section in the document.
pub(crate) const SECTION: &str = "tokens";

/// Runs it all and writes the report.
pub(crate) async fn run(options: &TokensOptions) -> anyhow::Result<()> {
    let progress = Progress::new();
    publish::report(&options.report, SECTION, async {
        let ground = Ground::prepare(&options.stand, progress).await?;
        publication(&measure(&ground, options, progress).await?)
    })
    .await
}

/// Calls for tokens of all applications of a stand.
pub(crate) fn issuing_on(stand: &Stand) -> Requests {
    requests::client_credentials(&stand.sellers)
}

/// Calls for tokens of all applications of a stand, and refreshes of so many families, one for each connection.
pub(crate) async fn calls_on(
    families: u16,
    cluster: &Cluster,
    stand: &Stand,
) -> anyhow::Result<[crate::requests::Calls; 2]> {
    seed::applications(cluster, stand).await?;
    let Calls { issuing, refreshing } = Calls::on(families, cluster, stand).await?;
    Ok([issuing, refreshing])
}

/// Makes what is measured on a stand, with a family to refresh for each connection.
pub(crate) async fn subjects_on<'a>(
    options: &StandOptions,
    cluster: &Cluster,
    stand: &'a Stand,
) -> anyhow::Result<Vec<Subject<'a>>> {
    seed::applications(cluster, stand).await?;
    let calls = Calls::on(options.concurrency, cluster, stand).await?;
    Ok(subjects::of(options, stand, &calls))
}

/// What was found of the goals.
pub(crate) fn goals(findings: &Findings) -> anyhow::Result<Vec<Found>> {
    let rate = find(&findings.measured, key::TOKEN)?.rate();
    Ok(vec![Found::of(Goal::Tokens, rate)])
}

/// What is told of it.
pub(crate) fn publication(findings: &Findings) -> anyhow::Result<Report> {
    let (measured, base_of) = (&findings.measured, report::base_of);
    let plots = vec![
        pictures::ratios(
            "tokens",
            "Tokens a second ÷ pgbench's",
            measured,
            base_of,
            |_| None,
        )?,
        pictures::costs("tokens-cost", "CPU time of a token, µs", measured),
    ];
    Ok(Report::with(report::render(findings)?, plots))
}

/// Measures on a cluster that others may use before and after.
pub(crate) async fn measure(
    ground: &Ground,
    options: &TokensOptions,
    progress: Progress,
) -> anyhow::Result<Findings> {
    let Ground { program, cluster, .. } = ground;
    let catalogue = Catalogue::new(0, options.stand.sellers);
    let stand = Stand::raise(cluster, program, "bench_tokens", catalogue, progress).await?;
    seed::applications(cluster, &stand).await?;
    let calls = Calls::on(options.stand.concurrency, cluster, &stand).await?;
    let step = progress.step("vacuum, analyze, checkpoint");
    stand.settle(cluster).await?;
    drop(step);
    let kinds = [&calls.issuing, &calls.refreshing];
    let asked = counts::measure(cluster, program, &stand, kinds, progress).await?;
    let subjects = subjects::of(&options.stand, &stand, &calls);
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
