//! How long a server takes until it is ready.

use crate::cluster::Cluster;
use crate::figures::Spread;
use crate::program::Program;
use crate::progress::Progress;
use crate::server::Server;
use crate::stand::Stand;

/// Starts another server over the stand's database several times, and gives the milliseconds from the start of its
/// process until `/readyz` says 200.
pub(crate) async fn measure(
    cluster: &Cluster,
    program: &Program,
    stand: &Stand,
    times: u64,
    progress: Progress,
) -> anyhow::Result<Spread> {
    let step = progress.counted("starting servers", times);
    let url = cluster.url(&stand.database);
    let mut milliseconds = Vec::new();
    for _ in 0..times {
        let server = Server::start(program, &url, &stand.key, &cluster.scratch("startup.log")).await?;
        milliseconds.push(server.ready_after.as_secs_f64() * 1e3);
        server.stop().await?;
        step.advance(1);
    }
    Ok(Spread::of(milliseconds))
}
