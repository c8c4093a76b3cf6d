//! One subject again and again, with what a profiler needs to know.

use crate::catalogue::Catalogue;
use crate::chosen;
use crate::measure::measure;
use crate::options::ProfileOptions;
use crate::progress::{Progress, say};
use crate::stand::{Ground, Stand};

/// Raises a stand, tells its process ids and URLs, and measures the chosen subjects until it is interrupted.
pub(crate) async fn run(options: &ProfileOptions) -> anyhow::Result<()> {
    let progress = Progress::new();
    let stand_options = &options.stand;
    let ground = Ground::prepare(stand_options, progress).await?;
    let Ground { program, cluster, .. } = &ground;
    let catalogue = Catalogue::new(options.offers, stand_options.sellers);
    let stand = Stand::raise(cluster, program, "bench", catalogue, progress).await?;
    stand.settle(cluster).await?;
    say(&format!(
        "server: process {}, http://{}",
        stand.server.pid, stand.server.public
    ));
    say(&format!("back office: http://{}", stand.server.back_office));
    say(&format!(
        "PostgreSQL: process {}, {}",
        cluster.server()?,
        cluster.url(&stand.database)
    ));
    let first = stand.first_seller()?;
    say(&format!("first seller: {}, token {}", first.id, first.token));
    let all = chosen::all_on(stand_options, cluster, &stand, options.orders, progress).await?;
    let chosen = chosen::chosen(all, &options.subjects)?;
    if options.rounds == Some(0) {
        say("held until it is interrupted");
        std::future::pending::<()>().await;
    }
    let mut round = 0;
    while options.rounds.is_none_or(|rounds| round < rounds) {
        round += 1;
        for subject in &chosen {
            let sample = measure(cluster, &subject.work).await?;
            say(&format!(
                "{:<10} {:>8.0}/s  p50 {:>7.2} ms  p99 {:>7.2} ms  µs each: PostgreSQL {:>5.1}, server {:>5.1}, client {:>4.1}  \
                 statements each: {:.2}, questions each: {:.2}  \
                 others {:.0} %",
                subject.key,
                sample.rate,
                sample.latency.quantile(0.5).as_secs_f64() * 1e3,
                sample.latency.quantile(0.99).as_secs_f64() * 1e3,
                sample.cpu.postgres,
                sample.cpu.server,
                sample.cpu.client,
                sample.statements.count,
                sample.statements.questions,
                sample.others * 100.0,
            ));
        }
    }
    Ok(())
}
