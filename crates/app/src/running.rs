//! A process from its listening to its end: servers, and whatever goes on beside them.

use std::{process::ExitCode, time::Duration};

use actix_server::{Server, ServerHandle};
use anyhow::anyhow;
use futures_util::future::join_all;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::{
    task::{JoinError, JoinSet},
    time::{sleep, timeout},
};
use tokio_util::task::AbortOnDropHandle;

use crate::{signals::Signals, wiring::Shared, workers::end_counting};

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
    let upkeep = AbortOnDropHandle::new(tokio::spawn(keep_metrics(shared.metrics.clone())));
    let outcome = tokio::select! {
        signal = signals.next() => Ok(signal),
        too_old = shared.readiness.watch() => Err(too_old.into()),
        Some(ended) = running.join_next() => Err(ended_early(ended)),
    };
    signals.end_at_the_next();
    shared.readiness.stop();
    // What waits and what goes on beside requests ends here: long polls answer, workers finish their batch.
    shared.tasks.stop();
    if let Ok(signal) = outcome {
        drain(shared, signal).await;
    }
    drop(upkeep);
    finish(shared, handles).await;
    outcome.map(|_| ExitCode::SUCCESS)
}

/// Goes on serving for a while, so that whoever sends requests here can see that this process is not ready any more. Every
/// answer closes its connection, which is how a client learns not to send another request on it.
async fn drain(shared: &Shared, signal: &'static str) {
    let drain = shared.config.server.drain;
    shared.stopping.drain();
    tracing::info!(signal, %drain, "stopping");
    sleep(drain.0).await;
}

/// Takes no new connections, and waits for what runs as long as the configuration says. Connections on which nothing has
/// come end at once; what has come is read and answered.
async fn finish(shared: &Shared, handles: Vec<ServerHandle>) {
    let finished = async {
        // The handles take their message at once; what they return is the wait.
        let stopped = handles.iter().map(|handle| handle.stop(true)).collect::<Vec<_>>();
        shared.stopping.end();
        join_all(stopped).await;
        shared.tasks.drained().await;
        end_counting(shared).await;
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
