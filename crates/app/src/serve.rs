//! The main job: both servers over the database, until a signal ends them.

use std::{process::ExitCode, sync::Arc};

use actix_server::{Server, ServerHandle};
use adapter_postgres::Database;
use adapter_sealing::{Argon2Hasher, KeyError, SystemRandomness};
use anyhow::{Context as _, anyhow};
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::{
    runtime::Handle,
    task::JoinSet,
    time::{sleep, timeout},
};
use web::Tasks;

use crate::{
    config::{Config, Loaded},
    listeners::{Reserved, reserve},
    open_files,
    readiness::Readiness,
    retention,
    signals::Signals,
    wiring::Shared,
};

/// Bounds of the histograms, in seconds.
const BUCKETS: [f64; 12] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0,
];

/// A service whose configuration is in order and whose addresses are taken, but that does not listen yet.
pub(crate) struct Service {
    shared: Shared,
    public: Reserved,
    backoffice: Reserved,
}

/// Runs `serve`.
pub(crate) async fn serve(loaded: &Loaded) -> anyhow::Result<ExitCode> {
    let signals = Signals::new()?;
    let config = &loaded.config;
    let (public, backoffice) = reserve(
        config.server.bind,
        config.server.backoffice_bind,
        ["--bind", "--backoffice-bind"],
    )?;
    Service::new(config, public, backoffice)?
        .run(signals, || Ok(()))
        .await
}

impl Service {
    /// Puts everything together; connects to nothing yet.
    pub(crate) fn new(config: &Config, public: Reserved, backoffice: Reserved) -> anyhow::Result<Self> {
        let database = database(config)?;
        let metrics = PrometheusBuilder::new().set_buckets(&BUCKETS)?.install_recorder();
        let shared = Shared {
            public_url: config.server.public_url_at(public.address()),
            sealer: Arc::new(config.keys.ring().map_err(without_keys)?),
            passwords: Arc::new(Argon2Hasher::new()),
            randomness: Arc::new(SystemRandomness::new()),
            tasks: Tasks::new(Handle::current()),
            readiness: Readiness::new(database.clone()),
            stopping: Arc::default(),
            metrics: metrics.context("the recorder of metrics")?,
            config: Arc::new(config.clone()),
            database,
        };
        Ok(Self {
            shared,
            public,
            backoffice,
        })
    }

    /// Serves until a signal comes and all that runs is finished. `listening` is called once both listeners answer.
    pub(crate) async fn run(
        self,
        mut signals: Signals,
        listening: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<ExitCode> {
        let Self {
            shared,
            public,
            backoffice,
        } = self;
        open_files::allow(shared.config.server.max_connections);
        let addresses = (public.address(), backoffice.address());
        let servers = [
            shared.public(public.listen()?)?,
            shared.backoffice(backoffice.listen()?)?,
        ];
        let handles = servers.each_ref().map(Server::handle);
        let mut running = JoinSet::new();
        for server in servers {
            running.spawn(server);
        }
        tracing::info!(public = %addresses.0, backoffice = %addresses.1, "listening");
        listening()?;
        let mut background = JoinSet::new();
        background.spawn(retention::clear(shared.database.clone()));
        background.spawn(keep_metrics(shared.metrics.clone()));
        let outcome = tokio::select! {
            signal = signals.next() => Ok(signal),
            too_old = shared.readiness.watch() => Err(too_old.into()),
            Some(ended) = running.join_next() => Err(ended_early(ended)),
        };
        signals.end_at_the_next();
        shared.readiness.stop();
        if let Ok(signal) = outcome {
            drain(&shared, signal).await;
        }
        background.shutdown().await;
        finish(&shared, &handles).await;
        outcome.map(|_| ExitCode::SUCCESS)
    }
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
async fn finish(shared: &Shared, handles: &[ServerHandle; 2]) {
    let finished = async {
        let stopped = handles.each_ref().map(|handle| handle.stop(true));
        shared.stopping.end();
        let [public, backoffice] = stopped;
        tokio::join!(public, backoffice);
        shared.tasks.drained().await;
    };
    let patience = shared.config.server.shutdown_timeout;
    if timeout(patience.0, finished).await.is_ok() {
        tracing::info!("stopped");
    } else {
        tracing::warn!(after = %patience, "stopped, though not everything was finished");
    }
}

/// The configured database.
pub(crate) fn database(config: &Config) -> anyhow::Result<Database> {
    let url = config.database.url.as_ref().context(
        "no database is configured: set DATABASE_URL, or `database.url`, to \
         postgres://user:password@host:5432/name",
    )?;
    let settings = config.database.settings(url.expose(), config.rate_limit.default);
    Database::new(settings).context("configuration key `database.url` cannot be used")
}

fn without_keys(error: KeyError) -> anyhow::Error {
    match error {
        KeyError::None => anyhow!(
            "no key is configured: make one with `seller-api admin keys generate`, and set it as `keys.sealing` or \
             SELLER_API__KEYS__SEALING"
        ),
        other => anyhow::Error::new(other).context("configuration key `keys.sealing`"),
    }
}

fn ended_early(ended: Result<std::io::Result<()>, tokio::task::JoinError>) -> anyhow::Error {
    match ended {
        Ok(Ok(())) => anyhow!("a server ended by itself"),
        Ok(Err(error)) => anyhow::Error::new(error).context("a server failed"),
        Err(error) => anyhow::Error::new(error).context("a server failed"),
    }
}

/// Moves what histograms have gathered to where it is rendered from, so that memory stays bounded where nobody asks.
async fn keep_metrics(metrics: metrics_exporter_prometheus::PrometheusHandle) {
    loop {
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        metrics.run_upkeep();
    }
}
