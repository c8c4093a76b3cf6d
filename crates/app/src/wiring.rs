//! Puts adapters behind the ports, for each thread of the two servers.

use std::{net::TcpListener, num::NonZeroUsize, sync::Arc, thread};

use actix_server::Server;
use adapter_backoffice::{BackOffice, BackOfficeSettings};
use adapter_http::{HttpSettings, Public};
use adapter_postgres::Database;
use adapter_sealing::{Argon2Hasher, KeyRing, SystemClock, SystemRandomness};
use anyhow::Context as _;
use metrics_exporter_prometheus::PrometheusHandle;
use web::Tasks;

use crate::{
    config::Config,
    connections::{self, Settings, Stopping},
    readiness::Readiness,
};

/// The marketplace has few connections, but an import must not hold up everything else.
const BACKOFFICE_THREADS: usize = 2;

/// What all threads share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) config: Arc<Config>,
    pub(crate) public_url: String,
    pub(crate) database: Database,
    pub(crate) sealer: Arc<KeyRing>,
    pub(crate) passwords: Arc<Argon2Hasher>,
    pub(crate) randomness: Arc<SystemRandomness>,
    pub(crate) tasks: Tasks,
    pub(crate) readiness: Readiness,
    pub(crate) stopping: Arc<Stopping>,
    pub(crate) metrics: PrometheusHandle,
}

impl Shared {
    /// The server of `/v1` and `/oauth`.
    pub(crate) fn public(&self, listener: TcpListener) -> anyhow::Result<Server> {
        let (shared, settings) = (self.clone(), Arc::new(self.http_settings()));
        let threads = self
            .config
            .server
            .threads
            .map_or_else(processors, |threads| threads.get().into());
        let configure = move || adapter_http::configure(shared.public_state(&settings));
        connections::serve(listener, &self.connections("api", threads), configure).context("cannot serve")
    }

    /// The server of the marketplace.
    pub(crate) fn backoffice(&self, listener: TcpListener) -> anyhow::Result<Server> {
        let (shared, settings) = (self.clone(), Arc::new(self.backoffice_settings()));
        let threads = processors().min(BACKOFFICE_THREADS);
        let configure = move || adapter_backoffice::configure(shared.backoffice_state(&settings));
        connections::serve(listener, &self.connections("backoffice", threads), configure)
            .context("cannot serve")
    }

    fn connections(&self, listener: &'static str, threads: usize) -> Settings {
        let server = &self.config.server;
        Settings {
            listener,
            threads,
            max_connections: usize::try_from(server.max_connections).unwrap_or(usize::MAX),
            header_timeout: server.header_timeout.0,
            keep_alive: server.keep_alive.0,
            shutdown_timeout: server.shutdown_timeout.0,
            stopping: Arc::clone(&self.stopping),
        }
    }

    /// A gate and readers of one thread: they gather what is in flight there, on connections of their own.
    fn public_state(&self, settings: &Arc<HttpSettings>) -> Public {
        Public {
            units: self.database.units(),
            gate: self.database.gate(),
            offers: self.database.offer_reader(),
            applications: self.database.applications(),
            rates: self.database.rate_counter(),
            sealer: self.sealer.clone(),
            randomness: self.randomness.clone(),
            tasks: self.tasks.clone(),
            settings: Arc::clone(settings),
        }
    }

    fn backoffice_state(&self, settings: &Arc<BackOfficeSettings>) -> BackOffice {
        let metrics = self.metrics.clone();
        BackOffice {
            units: self.database.units(),
            sellers: self.database.sellers(),
            offers: self.database.offer_reader(),
            applications: self.database.applications(),
            operators: self.database.operator_tokens(),
            passwords: self.passwords.clone(),
            randomness: self.randomness.clone(),
            tasks: self.tasks.clone(),
            health: Arc::new(self.readiness.clone()),
            metrics: Arc::new(move || metrics.render()),
            settings: Arc::clone(settings),
        }
    }

    fn http_settings(&self) -> HttpSettings {
        let Config {
            server,
            oauth,
            rate_limit,
            ..
        } = &*self.config;
        HttpSettings {
            public_url: self.public_url.clone(),
            realm: server.service_name.clone(),
            default_rate_limit: rate_limit.default,
            access_token_ttl: oauth.access_token_ttl.time_delta(),
            token_limit_per_ip: oauth.token_limit_per_ip,
            token_limit_per_client: oauth.token_limit_per_client,
            trusted_proxies: server.trusted_proxies.0.iter().map(|proxy| proxy.0).collect(),
            body_timeout: server.body_timeout.0,
            clock: Arc::new(SystemClock),
        }
    }

    fn backoffice_settings(&self) -> BackOfficeSettings {
        BackOfficeSettings {
            realm: self.config.server.service_name.clone(),
            default_rate_limit: self.config.rate_limit.default,
            body_timeout: self.config.server.body_timeout.0,
        }
    }
}

fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}
