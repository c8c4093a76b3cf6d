//! A process from its listening to its end: servers, and whatever goes on beside them.

use std::{process::ExitCode, time::Duration};

use actix_web::dev::{Server, ServerHandle};
use anyhow::anyhow;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::{
    task::{JoinError, JoinSet},
    time::{sleep, timeout},
};

use crate::{signals::Signals, wiring::Shared};

/// How often histograms are moved to where they are rendered from.
const UPKEEP: Duration = Duration::from_secs(5);

/// Serves until a signal comes and all that runs is finished. `listening` is called once all listeners answer.
pub(crate) async fn until_stopped(
    shared: &Shared,
    servers: Vec<Server>,
    mut signals: Signals,
    listening: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let handles = servers.iter().map(Server::handle).collect::<Vec<_>>();
    let mut running = JoinSet::new();
    for server in servers {
        running.spawn(server);
    }
    listening()?;
    let upkeep = tokio::spawn(keep_metrics(shared.metrics.clone()));
    let outcome = tokio::select! {
        signal = signals.next() => {
            tracing::info!(signal, "stopping: finishing what runs");
            Ok(ExitCode::SUCCESS)
        }
        too_old = shared.readiness.watch() => Err(too_old.into()),
        Some(ended) = running.join_next() => Err(ended_early(ended)),
    };
    signals.end_at_the_next();
    upkeep.abort();
    finish(shared, handles).await;
    outcome
}

/// Takes no new connections, and waits for what runs as long as the configuration says.
async fn finish(shared: &Shared, handles: Vec<ServerHandle>) {
    shared.readiness.stop();
    shared.tasks.stop();
    let finished = async {
        let mut stopping = JoinSet::new();
        for handle in handles {
            stopping.spawn(async move { handle.stop(true).await });
        }
        stopping.join_all().await;
        shared.tasks.drained().await;
    };
    let patience = shared.config.server.shutdown_timeout;
    if timeout(patience.0, finished).await.is_ok() {
        tracing::info!("stopped");
    } else {
        tracing::warn!(after = %patience, "stopped, though not everything was finished");
    }
}

fn ended_early(ended: Result<std::io::Result<()>, JoinError>) -> anyhow::Error {
    match ended {
        Ok(Ok(())) => anyhow!("a server ended by itself"),
        Ok(Err(error)) => anyhow::Error::new(error).context("a server failed"),
        Err(error) => anyhow::Error::new(error).context("a server failed"),
    }
}

/// Moves what histograms have gathered to where it is rendered from, so that memory stays bounded where nobody asks.
async fn keep_metrics(metrics: PrometheusHandle) {
    loop {
        sleep(UPKEEP).await;
        metrics.run_upkeep();
    }
}
