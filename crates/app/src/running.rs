//! A process from its listening to its end: servers, and whatever goes on beside them.

use std::{process::ExitCode, time::Duration};

use actix_server::{Server, ServerHandle};
use anyhow::anyhow;
use futures_util::future::join_all;
use tokio::{
    task::{JoinError, JoinSet},
    time::{Instant, sleep, timeout},
};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    meters::watch_queues, signals::Signals, supervisor, traces, wiring::Shared, workers::end_counting,
};

/// How long the collector of traces is waited for at the end, at most.
const LAST_SPANS: Duration = Duration::from_secs(3);

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
    supervisor::listening();
    let beside = (supervisor::tell_of_life(), keep_measuring(shared));
    let outcome = tokio::select! {
        signal = signals.next() => Ok(signal),
        too_old = shared.readiness.watch() => Err(too_old.into()),
        Some(ended) = running.join_next() => Err(ended_early(ended)),
    };
    signals.end_at_the_next();
    shared.readiness.stop();
    let (drain_for, finish_within) = (
        shared.config.server.drain.0,
        shared.config.server.shutdown_timeout.0,
    );
    supervisor::stopping(drain_for.saturating_add(finish_within));
    // What waits and what goes on beside requests ends here: long polls answer, workers finish their batch.
    shared.tasks.stop();
    if let Ok(signal) = outcome {
        drain(shared, signal).await;
    }
    finish(shared, handles).await;
    drop(beside);
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
    let (patience, begun) = (shared.config.server.shutdown_timeout, Instant::now());
    let is_finished = timeout(patience.0, finished).await.is_ok();
    // The last requests' spans among them; a collector that is away has what is left of the time and no more.
    traces::end(patience.0.saturating_sub(begun.elapsed()).min(LAST_SPANS)).await;
    if is_finished {
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

/// Keeps the meters in order, and looks at the queues, for as long as the handles are kept.
fn keep_measuring(shared: &Shared) -> [AbortOnDropHandle<()>; 2] {
    let queues = watch_queues(shared.database.clone(), shared.readiness.clone());
    [
        AbortOnDropHandle::new(tokio::spawn(shared.meters.clone().keep_up())),
        AbortOnDropHandle::new(tokio::spawn(queues)),
    ]
}
