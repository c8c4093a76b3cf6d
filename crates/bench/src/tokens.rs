//! The bench of the token endpoint, from the empty cluster to the report.

mod bars;
mod key;
mod report;
mod requests;
mod scripts;
mod seed;
mod subjects;

use std::time::Duration;

use crate::catalogue::Catalogue;
use crate::machine::Machine;
use crate::noise::Patience;
use crate::options::TokensOptions;
use crate::progress::Progress;
use crate::requests::Requests;
use crate::stand::Stand;
use crate::{counts, measure, publish, rounds, stand};
use report::Findings;
use subjects::Calls;

/// The report's section in the document.
const SECTION: &str = "tokens";

/// Runs it all and writes the report.
pub(crate) async fn run(options: &TokensOptions) -> anyhow::Result<()> {
    let progress = Progress::new();
    publish::report(&options.report, SECTION, async {
        report::render(&measure(options, progress).await?)
    })
    .await
}

/// Calls for tokens of all applications of a stand.
pub(crate) fn issuing_on(stand: &Stand) -> Requests {
    requests::client_credentials(&stand.sellers)
}

async fn measure(options: &TokensOptions, progress: Progress) -> anyhow::Result<Findings> {
    let (program, cluster) = stand::prepare(&options.stand, progress).await?;
    let machine = Machine::describe(&cluster, &program).await?;
    let catalogue = Catalogue::new(0, options.stand.sellers);
    let stand = Stand::raise(&cluster, &program, "bench_tokens", catalogue, progress).await?;
    seed::applications(&cluster, &stand).await?;
    let calls = Calls::on(&options.stand, &cluster, &stand).await?;
    let step = progress.step("vacuum, analyze, checkpoint");
    stand.settle(&cluster).await?;
    drop(step);
    let kinds = [&calls.issuing, &calls.refreshing];
    let asked = counts::measure(&cluster, &program, &stand, kinds, progress).await?;
    let subjects = subjects::of(&options.stand, &stand, &calls);
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
