//! Runs the service from start to stop: `serve` runs both HTTP servers, with or without workers; `worker`
//! runs only the workers and a listener for probes.

use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actix_web::dev::{Server, ServerHandle};
use anyhow::anyhow;
use futures_util::future::join_all;
use sd_notify::NotifyState;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::config::{Loaded, WorkersMode};
use crate::external_services::ExternalServices;
use crate::http_server::BoundSocket;
use crate::process::Signals;
use crate::prometheus::{measure_database, set_role};
use crate::tls::Tls;
use crate::wiring::Shared;
use crate::{logging, process, workers};

/// Runs `serve`.
pub(crate) async fn serve(loaded: &Loaded) -> anyhow::Result<ExitCode> {
    let signals = Signals::new()?;
    let config = &loaded.config;
    let public = BoundSocket::bind(config.server.bind.0, "--bind")?;
    let backoffice = BoundSocket::bind(config.server.backoffice_bind.0, "--backoffice-bind")?;
    let public_url = config.server.public_url_at(public.address());
    let external = ExternalServices::real(loaded, &public_url)?;
    let shared = Shared::new(config, public_url, external, None)?;
    run(shared, [public, backoffice], signals, || ()).await
}

/// Runs `worker`.
pub(crate) async fn work(loaded: &Loaded) -> anyhow::Result<ExitCode> {
    let signals = Signals::new()?;
    let config = &loaded.config;
    process::raise_open_files_limit(config.webhooks.concurrency.get().into());
    let probes = BoundSocket::bind(config.worker.bind.0, "--bind")?;
    let public_url = config.server.public_url_at(config.server.bind.0);
    let external = ExternalServices::real(loaded, &public_url)?;
    let shared = Shared::new(config, public_url, external, None)?;
    let address = probes.address();
    set_role("worker");
    let servers = vec![shared.probes(probes.listen()?)?];
    run_until_stopped(&shared, servers, signals, || {
        tracing::info!(probes = %address, "listening");
        workers::start(&shared);
    })
    .await
}

/// Runs both listeners, with TLS and workers as configured, until stopped. Calls `listening` once they answer.
pub(crate) async fn run(
    shared: Shared,
    [public, backoffice]: [BoundSocket; 2],
    signals: Signals,
    listening: impl FnOnce(),
) -> anyhow::Result<ExitCode> {
    let (server, webhooks) = (&shared.config.server, &shared.config.webhooks);
    let tls = Tls::load(server).await?;
    let trusted = server.trusted_proxies.iter().map(|proxy| proxy.0);
    for network in trusted.filter(|network| network.prefix_len() == 0) {
        tracing::warn!(
            "ANY client is trusted to set `X-Forwarded-For`, and so chooses the address by which it is limited and logged: \
             `server.trusted_proxies` contains {network}; list the proxies alone"
        );
    }
    process::raise_open_files_limit(
        server
            .max_connections
            .saturating_add(webhooks.concurrency.get().into()),
    );
    let [public_tls, backoffice_tls] = tls.server_configs()?;
    let _reloading = tls.keep_current()?;
    let has_workers = server.workers == WorkersMode::All;
    set_role(if has_workers { "both" } else { "serve" });
    let addresses = (public.address(), backoffice.address());
    let servers = vec![
        shared.public(public.listen()?, public_tls)?,
        shared.backoffice(backoffice.listen()?, backoffice_tls)?,
    ];
    run_until_stopped(&shared, servers, signals, || {
        tracing::info!(public = %addresses.0, backoffice = %addresses.1, "listening");
        workers::start_counting(&shared);
        if has_workers {
            workers::start(&shared);
        }
        listening();
    })
    .await
}

/// The time limit for exporting the last spans.
const LAST_SPANS: Duration = Duration::from_secs(3);

/// Serves until a signal arrives and requests in flight have ended. Calls `listening` once all listeners
/// answer.
async fn run_until_stopped(
    shared: &Shared,
    servers: Vec<Server>,
    mut signals: Signals,
    listening: impl FnOnce(),
) -> anyhow::Result<ExitCode> {
    let handles = servers.iter().map(Server::handle).collect::<Vec<_>>();
    let mut running: JoinSet<_> = servers.into_iter().collect();
    listening();
    // A service that waits for its database also counts as started: otherwise systemd would stop it after
    // `TimeoutStartSec=`.
    process::notify(&[NotifyState::Ready]);
    let measuring = measure_database(shared.database.clone(), shared.readiness.clone());
    let background = (
        process::feed_watchdog(),
        AbortOnDropHandle::new(tokio::spawn(shared.metrics.clone().run_upkeep_loop())),
        AbortOnDropHandle::new(tokio::spawn(measuring)),
    );
    let outcome = tokio::select! {
        signal = signals.next() => Ok(signal),
        unfit = shared.readiness.watch() => Err(unfit.into()),
        Some(ended) = running.join_next() => Err(ended_early(ended)),
    };
    signals.exit_on_next();
    shared.readiness.stop();
    let server = &shared.config.server;
    process::notify_stopping(server.drain.0.saturating_add(server.shutdown_timeout.0));
    // Long polls answer now, and workers finish their batch.
    shared.tasks.stop();
    if let Ok(signal) = outcome {
        drain(shared, signal).await;
    }
    finish(shared, handles).await;
    drop(background);
    outcome.map(|_| ExitCode::SUCCESS)
}

/// Keeps serving for a while, so that load balancers see that this process is no longer ready. Every response
/// closes its connection, so that clients send their next request elsewhere.
async fn drain(shared: &Shared, signal: &'static str) {
    let drain = shared.config.server.drain;
    shared.draining.store(true, Ordering::Release);
    tracing::info!(signal, %drain, "stopping");
    sleep(drain.0).await;
}

/// Accepts no more connections, closes idle ones, and waits for requests in flight within the configured
/// time.
async fn finish(shared: &Shared, handles: Vec<ServerHandle>) {
    let finished = async {
        // The call itself stops the server; the future only waits for it.
        join_all(handles.iter().map(|handle| handle.stop(true))).await;
        shared.tasks.drained().await;
        workers::end_counting(shared).await;
    };
    let (limit, begun) = (shared.config.server.shutdown_timeout, Instant::now());
    let is_finished = timeout(limit.0, finished).await.is_ok();
    shared.database.connector().expect_losses();
    logging::finish_spans(limit.0.saturating_sub(begun.elapsed()).min(LAST_SPANS)).await;
    if is_finished {
        tracing::info!("stopped");
    } else {
        tracing::warn!(after = %limit, "the shutdown timeout has passed: requests or tasks in progress were aborted");
    }
}

fn ended_early(ended: Result<std::io::Result<()>, JoinError>) -> anyhow::Error {
    match ended.map_err(anyhow::Error::new).and_then(|served| Ok(served?)) {
        Ok(()) => anyhow!("an HTTP server ended unexpectedly"),
        Err(error) => error.context("a server failed"),
    }
}
