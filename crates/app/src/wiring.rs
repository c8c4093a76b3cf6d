//! Wires adapters to ports, for each thread of the two servers.

use std::{
    net::TcpListener,
    num::NonZeroUsize,
    sync::{Arc, atomic::AtomicBool},
    thread,
};

use actix_web::{dev::Server, web::ServiceConfig};
use adapter_backoffice::{BackOffice, BackOfficeSettings};
use adapter_docs_site::{Audience, Docs, DocsSettings};
use adapter_http::{HttpSettings as ApiSettings, Public, UsageMeter};
use adapter_panel::{Panel, PanelSettings};
use adapter_postgres::Database;
use adapter_sealing::{Argon2Hasher, HashingBounds, KeyError, KeyRing, SystemRandomness};
use anyhow::{Context as _, anyhow};
use ipnet::IpNet;
use offers::OfferChanges;
use orders::PollSchedule;
use rustls::ServerConfig;
use tokio::runtime::Handle;
use web::{Tasks, client_ip::TrustedProxies};

use crate::{
    config::Config,
    external_services::{ExternalServices, docs_url},
    http_server::{self, ListenerOptions},
    prometheus::Metrics,
    readiness::Readiness,
};

/// The marketplace has few connections, but an import must not block other requests.
const BACKOFFICE_THREADS: usize = 2;
/// Two at a time leave other requests their cores. Those who wait behind 64 get their answer after about a second.
const PASSWORD_HASHES: HashingBounds = HashingBounds {
    at_a_time: 2,
    waiting: 64,
};
/// The connections of a thread of the public listener, beside the pool.
const CONNECTIONS_OF_A_THREAD: usize = 8;
/// What changes of offers open besides: one to read and one to save.
const CONNECTIONS_OF_CHANGES: usize = 2;

/// The state shared by all threads.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) config: Arc<Config>,
    pub(crate) public_url: String,
    docs_url: String,
    pub(crate) database: Database,
    offer_changes: Option<Arc<dyn OfferChanges>>,
    pub(crate) sealer: Arc<KeyRing>,
    pub(crate) passwords: Arc<Argon2Hasher>,
    pub(crate) randomness: Arc<SystemRandomness>,
    pub(crate) tasks: Tasks,
    pub(crate) usage: UsageMeter,
    pub(crate) readiness: Readiness,
    pub(crate) draining: Arc<AtomicBool>,
    pub(crate) metrics: Metrics,
    pub(crate) external: ExternalServices,
}

/// The configured database.
pub(crate) fn database(config: &Config) -> anyhow::Result<Database> {
    let url = config.database.url.as_ref().context(
        "no database is configured: set DATABASE_URL, or `database.url`, to \
         postgres://user:password@host:5432/name",
    )?;
    let settings = config.database.settings(url.expose(), config.rate_limit.default);
    let database =
        Database::new(settings).map_err(|error| anyhow!("configuration key `database.url` {error}"))?;
    Ok(database.with_polling(poll_schedule(config)))
}

/// The configured sealing keys.
pub(crate) fn sealer(config: &Config) -> anyhow::Result<Arc<KeyRing>> {
    Ok(Arc::new(config.keys.ring().map_err(without_keys)?))
}

/// The schedule of parcel look-ups at carriers.
pub(crate) fn poll_schedule(config: &Config) -> PollSchedule {
    PollSchedule {
        interval: config.tracking.poll_interval.time_delta(),
    }
}

impl Shared {
    /// Wires everything together, without connecting to anything yet.
    pub(crate) fn new(
        config: &Config,
        public_url: String,
        external: ExternalServices,
    ) -> anyhow::Result<Self> {
        let sealer = sealer(config)?;
        // Installed before the database is created, because that registers its metrics.
        let metrics = Metrics::install()?;
        let database = database(config)?.with_sealer(sealer.clone());
        Ok(Self {
            docs_url: docs_url(config, &public_url),
            public_url,
            readiness: Readiness::new(database.clone(), Arc::clone(&sealer)),
            sealer,
            passwords: Arc::new(Argon2Hasher::new(PASSWORD_HASHES)),
            randomness: Arc::new(SystemRandomness::new()),
            tasks: Tasks::new(Handle::current()),
            usage: UsageMeter::default(),
            draining: Arc::default(),
            metrics,
            config: Arc::new(config.clone()),
            external,
            offer_changes: database.offer_changes(),
            database,
        })
    }

    /// The server of `/v1`, `/oauth`, the panel and the documentation.
    pub(crate) fn public(
        &self,
        listener: TcpListener,
        tls: Option<ServerConfig>,
        readers: Audience,
    ) -> anyhow::Result<Server> {
        let (shared, settings) = (self.clone(), Arc::new(self.http_settings()));
        let panel_settings = Arc::new(self.panel_settings());
        let docs = self.docs(readers)?;
        let options = ListenerOptions {
            threads: self.threads(),
            tls,
            half_closed: true,
        };
        let configure = move || {
            let public = shared.public_state(&settings);
            let panel = shared.panel_state(&panel_settings, &public);
            let docs = docs.clone();
            |config: &mut ServiceConfig| {
                adapter_panel::configure(panel)(config);
                adapter_docs_site::configure(docs)(config);
                adapter_http::configure(public)(config);
            }
        };
        self.serve(listener, options, configure)
    }

    /// The threads of the public listener.
    fn threads(&self) -> usize {
        let configured = self.config.server.threads;
        configured.map_or_else(processors, |threads| threads.get().into())
    }

    /// The most connections to the database that a process with or without the public listener opens.
    pub(crate) fn connections(&self, serves: bool) -> usize {
        let shared = if serves {
            let of_threads = self.threads().saturating_mul(CONNECTIONS_OF_A_THREAD);
            of_threads.saturating_add(CONNECTIONS_OF_CHANGES)
        } else {
            0
        };
        self.config.database.pool_size.saturating_add(shared)
    }

    /// The server of the back office.
    pub(crate) fn backoffice(
        &self,
        listener: TcpListener,
        tls: Option<ServerConfig>,
    ) -> anyhow::Result<Server> {
        let (shared, settings) = (self.clone(), Arc::new(self.backoffice_settings()));
        let options = ListenerOptions {
            threads: processors().min(BACKOFFICE_THREADS),
            tls,
            // A long poll must end when its client disconnects.
            half_closed: false,
        };
        let configure = move || adapter_backoffice::configure(shared.backoffice_state(&settings));
        self.serve(listener, options, configure)
    }

    /// The server of a process that runs only workers: probes and metrics.
    pub(crate) fn probes(&self, listener: TcpListener) -> anyhow::Result<Server> {
        let (shared, settings) = (self.clone(), Arc::new(self.backoffice_settings()));
        let configure = move || adapter_backoffice::configure_probes(shared.backoffice_state(&settings));
        let options = ListenerOptions {
            threads: 1,
            tls: None,
            half_closed: true,
        };
        self.serve(listener, options, configure)
    }

    fn serve<C: FnOnce(&mut ServiceConfig)>(
        &self,
        listener: TcpListener,
        options: ListenerOptions,
        configure: impl Fn() -> C + Send + Clone + 'static,
    ) -> anyhow::Result<Server> {
        let draining = Arc::clone(&self.draining);
        http_server::serve(listener, &self.config.server, options, draining, configure)
    }

    /// The ports of one thread. Its reads are batched and use the thread's own connections.
    fn public_state(&self, settings: &Arc<ApiSettings>) -> Public {
        Public {
            units: self.database.units(),
            gate: self.database.gate(),
            offers: self.database.offer_reader(),
            offer_changes: self.offer_changes.clone(),
            orders: self.database.order_reader(),
            carriers: Arc::clone(&self.external.carriers),
            subscriptions: self.database.subscriptions(),
            hosts: self.external.receivers.clone(),
            claims: self.database.claims(),
            applications: self.database.applications(),
            client_tokens: self.database.client_tokens(),
            grants: self.database.grants(),
            usage: self.usage.clone(),
            rates: self.database.rate_counter(),
            sealer: self.sealer.clone(),
            randomness: self.randomness.clone(),
            tasks: self.tasks.clone(),
            settings: Arc::clone(settings),
        }
    }

    /// The panel's ports in one thread; it shares batching readers with the API.
    fn panel_state(&self, settings: &Arc<PanelSettings>, beside: &Public) -> Panel {
        Panel {
            units: self.database.units(),
            panel: self.database.panel(),
            grants: self.database.grants(),
            subscriptions: self.database.subscriptions(),
            applications: Arc::clone(&beside.applications),
            sellers: self.database.sellers(),
            rates: Arc::clone(&beside.rates),
            passwords: self.passwords.clone(),
            sealer: self.sealer.clone(),
            randomness: self.randomness.clone(),
            tasks: self.tasks.clone(),
            settings: Arc::clone(settings),
        }
    }

    /// The documentation, with a reference generated from this program.
    fn docs(&self, audience: Audience) -> anyhow::Result<Docs> {
        let settings = DocsSettings {
            public_url: self.public_url.clone(),
            service_name: self.config.server.service_name.clone(),
            audience,
            trusted_proxies: TrustedProxies::new(self.trusted_proxies()),
        };
        let openapi = adapter_http::openapi(&self.public_url, &self.docs_url);
        Ok(Docs::new(&settings, &openapi, self.randomness.clone())?)
    }

    fn backoffice_state(&self, settings: &Arc<BackOfficeSettings>) -> BackOffice {
        let (metrics, database) = (self.metrics.clone(), self.database.clone());
        BackOffice {
            units: self.database.units(),
            sellers: self.database.sellers(),
            offers: self.database.offer_reader(),
            orders: self.database.order_directory(),
            changes: self.database.change_reader(),
            applications: self.database.applications(),
            panel: self.database.panel(),
            operators: Some(self.database.operator_tokens()),
            claims: self.database.claims(),
            carriers: Arc::clone(&self.external.carriers),
            passwords: self.passwords.clone(),
            randomness: self.randomness.clone(),
            tasks: self.tasks.clone(),
            health: Arc::new(self.readiness.clone()),
            metrics: Arc::new(move || metrics.render(&database)),
            settings: Arc::clone(settings),
        }
    }

    fn trusted_proxies(&self) -> impl Iterator<Item = IpNet> + '_ {
        self.config.server.trusted_proxies.iter().map(|proxy| proxy.0)
    }

    fn http_settings(&self) -> ApiSettings {
        let Config {
            server,
            oauth,
            rate_limit,
            ..
        } = &*self.config;
        ApiSettings {
            public_url: self.public_url.clone(),
            realm: server.service_name.clone(),
            default_rate_limit: rate_limit.default,
            access_token_ttl: oauth.access_token_ttl.time_delta(),
            refresh_token_ttl: oauth.refresh_token_ttl.time_delta(),
            token_limit_per_ip: oauth.token_limit_per_ip,
            token_limit_per_client: oauth.token_limit_per_client,
            authorize_limit_per_ip: oauth.authorize_limit_per_ip,
            docs_url: self.docs_url.clone(),
            trusted_proxies: self.trusted_proxies().collect(),
            addresses: self.config.webhooks.addresses.into(),
            body_timeout: server.body_timeout.0,
            idempotency_lease: self.config.idempotency.lease.0,
            clock: Arc::clone(&self.external.clock),
        }
    }

    fn panel_settings(&self) -> PanelSettings {
        let server = &self.config.server;
        PanelSettings {
            public_url: self.public_url.clone(),
            service_name: server.service_name.clone(),
            docs_url: self.docs_url.clone(),
            code_ttl: self.config.oauth.code_ttl.time_delta(),
            attempts: self.config.panel.attempts(),
            default_rate_limit: self.config.rate_limit.default,
            trusted_proxies: self.trusted_proxies().collect(),
            body_timeout: server.body_timeout.0,
        }
    }

    fn backoffice_settings(&self) -> BackOfficeSettings {
        let server = &self.config.server;
        BackOfficeSettings {
            realm: server.service_name.clone(),
            public_url: self.public_url.clone(),
            trusted_proxies: TrustedProxies::new(self.trusted_proxies()),
            default_rate_limit: self.config.rate_limit.default,
            body_timeout: server.body_timeout.0,
            idempotency_lease: self.config.idempotency.lease.0,
        }
    }
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

fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}
