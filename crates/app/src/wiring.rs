//! Wires adapters to ports: [`Shared`] once a process, a listener's state once a thread.

use std::net::TcpListener;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};
use std::thread;

use actix_web::dev::Server;
use actix_web::web::{Bytes, ServiceConfig};
use adapter_backoffice::{BackOffice, Imports, OfficeSettings};
use adapter_docs_site::{Audience, Docs};
use adapter_http::{HttpSettings, Public, UsageMeter, Waiting};
use adapter_panel::{Panel, PanelSettings, Places};
use adapter_postgres::Database;
use adapter_sandbox_page::SandboxPage;
use adapter_sealing::{Argon2Hasher, HashingBounds, KeyRing, SystemClock, SystemRandomness};
use anyhow::{Context as _, anyhow};
use oauth::ClientId;
use offers::OfferChanges;
use rustls::ServerConfig;
use tokio::runtime::Handle;
use usecases::Announcement;
use usecases::own_applications::ApplicationLimits;
use usecases::sign_in::AttemptLimits;
use web::{Observer, ServiceSettings, Tasks, TrustedProxies, listener::Ports, openapi::ServedDocument};

use crate::config::Config;
use crate::external_services::{ExternalServices, docs_url};
use crate::http_server::{self, ListenerOptions};
use crate::prometheus::Metrics;
use crate::readiness::Readiness;

/// The marketplace has few connections, but an import must not block other requests.
const BACKOFFICE_THREADS: usize = 2;
/// At most two at a time, and at most half of the processors, leave other requests theirs. Those who wait behind 64 get
/// their answer after a second or two.
fn password_hashes() -> HashingBounds {
    HashingBounds {
        at_a_time: (processors() / 2).clamp(1, 2),
        waiting: 64,
    }
}

/// For sellers that the back office registers: many at once must not delay sign-ins.
const OFFICE_PASSWORD_HASHES: HashingBounds = HashingBounds {
    at_a_time: 1,
    waiting: 64,
};

/// The state shared by all threads.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) config: Arc<Config>,
    pub(crate) service: Arc<ServiceSettings>,
    pub(crate) database: Database,
    offer_changes: Option<Arc<dyn OfferChanges<Announcement>>>,
    waiting: Waiting,
    host_checks: web::places::Places<ClientId>,
    imports: Imports,
    pub(crate) sealer: Arc<KeyRing>,
    pub(crate) passwords: Arc<Argon2Hasher>,
    office_passwords: Arc<Argon2Hasher>,
    places: Places,
    pub(crate) randomness: Arc<SystemRandomness>,
    pub(crate) tasks: Tasks,
    pub(crate) usage: UsageMeter,
    pub(crate) readiness: Readiness,
    pub(crate) draining: Arc<AtomicBool>,
    pub(crate) metrics: Metrics,
    pub(crate) external: ExternalServices,
    /// The sandbox's page.
    pub(crate) page: Option<Arc<SandboxPage>>,
}

/// The configured database, as a command opens it.
pub(crate) fn database(config: &Config) -> anyhow::Result<Database> {
    let url = config.database.url.as_ref().context(
        "no database is configured: set DATABASE_URL, or `database.url`, to \
         postgres://user:password@host:5432/name",
    )?;
    Database::new(config.database_settings(url.expose()))
        .map_err(|error| anyhow!("configuration key `database.url` {error}"))
}

/// The configured sealing keys.
pub(crate) fn sealer(config: &Config) -> anyhow::Result<Arc<KeyRing>> {
    Ok(Arc::new(
        config.keys.ring().context("configuration key `keys.sealing`")?,
    ))
}

/// The threads of the public listener.
fn threads(config: &Config) -> usize {
    let configured = config.server.threads;
    configured.map_or_else(processors, |threads| threads.get().into())
}

impl Shared {
    /// Wires everything together, without connecting to anything yet.
    pub(crate) fn new(
        config: &Config,
        public_url: String,
        external: ExternalServices,
        observer: Option<Arc<dyn Observer>>,
    ) -> anyhow::Result<Self> {
        let sealer = sealer(config)?;
        // Installed before the database is created, because that registers its metrics.
        let metrics = Metrics::install()?;
        let database = database(config)?.with_sealer(sealer.clone());
        Ok(Self {
            service: Arc::new(service_settings(config, public_url, observer)),
            readiness: Readiness::new(database.clone(), Arc::clone(&sealer)),
            sealer,
            passwords: Arc::new(Argon2Hasher::new(password_hashes())),
            office_passwords: Arc::new(Argon2Hasher::new(OFFICE_PASSWORD_HASHES)),
            randomness: Arc::new(SystemRandomness::new()),
            tasks: Tasks::new(Handle::current()),
            usage: UsageMeter::default(),
            places: Places::default(),
            draining: Arc::default(),
            metrics,
            config: Arc::new(config.clone()),
            external,
            page: None,
            offer_changes: database.offer_changes(),
            host_checks: web::places::Places::default(),
            waiting: Waiting::new(database.journals(config.retention.events.time_delta())),
            // As many as one seller's transactions.
            imports: Imports::new((config.database.pool_size / 4).max(1)),
            database,
        })
    }

    /// The server of `/v1`, `/oauth`, the panel and the documentation.
    pub(crate) fn public(&self, listener: TcpListener, tls: Option<ServerConfig>) -> anyhow::Result<Server> {
        // The sandbox's reader is its operator, too.
        let readers = match self.page {
            Some(_) => Audience::Operators,
            None => Audience::Integrators,
        };
        let openapi = openapi(Arc::clone(&self.service));
        let docs = Docs::new(Arc::clone(&self.service), readers, Arc::clone(&openapi));
        let shared = self.clone();
        let options = ListenerOptions {
            name: "api",
            threads: threads(&self.config),
            tls,
            half_closed: true,
        };
        let configure = move || {
            let public = shared.public_state(Arc::clone(&openapi));
            let panel = shared.panel_state(&public);
            let (docs, page) = (docs.clone(), shared.page.clone());
            |config: &mut ServiceConfig| {
                if let Some(page) = page {
                    adapter_sandbox_page::configure(page)(config);
                }
                adapter_panel::configure(panel)(config);
                adapter_docs_site::configure(docs)(config);
                adapter_http::configure(public)(config);
            }
        };
        http_server::serve(self, listener, options, configure)
    }

    /// The server of the back office.
    pub(crate) fn backoffice(
        &self,
        listener: TcpListener,
        tls: Option<ServerConfig>,
    ) -> anyhow::Result<Server> {
        let shared = self.clone();
        let options = ListenerOptions {
            name: "backoffice",
            threads: processors().min(BACKOFFICE_THREADS),
            tls,
            // A long poll must end when its client disconnects.
            half_closed: false,
        };
        let configure = move || adapter_backoffice::configure(shared.backoffice_state());
        http_server::serve(self, listener, options, configure)
    }

    /// The server of a process that runs only workers: probes and metrics.
    pub(crate) fn probes(&self, listener: TcpListener) -> anyhow::Result<Server> {
        let shared = self.clone();
        let configure = move || adapter_backoffice::configure_probes(shared.backoffice_state());
        let options = ListenerOptions {
            name: "probes",
            threads: 1,
            tls: None,
            half_closed: true,
        };
        http_server::serve(self, listener, options, configure)
    }

    fn ports(&self) -> Ports {
        Ports {
            units: self.database.units(),
            claims: self.database.claims(),
            randomness: self.randomness.clone(),
            tasks: self.tasks.clone(),
            finished: self.database.finished_flag(),
            service: Arc::clone(&self.service),
        }
    }

    /// The ports of one thread. Its reads are batched and use the thread's own connections.
    fn public_state(&self, openapi: ServedDocument) -> Public {
        Public {
            ports: self.ports(),
            gate: self.database.gate(),
            offers: self.database.offer_reader(),
            offer_changes: self.offer_changes.clone(),
            orders: self.database.order_reader(),
            carriers: Arc::clone(&self.external.carriers),
            subscriptions: self.database.subscriptions(),
            hosts: self.external.receivers.clone(),
            host_checks: self.host_checks.clone(),
            applications: self.database.applications(),
            tokens: self.database.token_issuer(),
            grants: self.database.grants(),
            usage: self.usage.clone(),
            rates: self.database.rate_counter(),
            waiting: self.waiting.clone(),
            sealer: self.sealer.clone(),
            openapi,
            settings: Arc::new(self.http_settings()),
        }
    }

    /// The panel's ports in one thread, some of them the API's.
    fn panel_state(&self, beside: &Public) -> Panel {
        Panel {
            ports: beside.ports.clone(),
            accounts: self.database.panel(),
            grants: self.database.grants(),
            offers: Arc::clone(&beside.offers),
            orders: Arc::clone(&beside.orders),
            subscriptions: self.database.subscriptions(),
            applications: Arc::clone(&beside.applications),
            rates: Arc::clone(&beside.rates),
            passwords: self.passwords.clone(),
            sealer: self.sealer.clone(),
            places: self.places.clone(),
            settings: Arc::new(self.panel_settings()),
        }
    }

    fn backoffice_state(&self) -> BackOffice {
        let (metrics, database) = (self.metrics.clone(), self.database.clone());
        let readiness = self.readiness.clone();
        BackOffice {
            ports: self.ports(),
            sealer: self.sealer.clone(),
            sellers: self.database.sellers(),
            offers: self.database.offer_reader(),
            imports: self.imports.clone(),
            orders: self.database.order_directory(),
            changes: self.database.change_reader(),
            applications: self.database.application_directory(),
            operators: Some(self.database.operator_tokens()),
            carriers: Arc::clone(&self.external.carriers),
            passwords: self.office_passwords.clone(),
            ready: Arc::new(move || Box::pin(readiness.clone().ready())),
            metrics: Arc::new(move || metrics.render(&database)),
            settings: OfficeSettings {
                applications_per_seller: self.config.panel.applications_per_seller,
                link_interval: self.config.panel.link_interval.time_delta(),
                tracking: self.config.poll_schedule(),
            },
        }
    }

    fn http_settings(&self) -> HttpSettings {
        let oauth = &self.config.oauth;
        HttpSettings {
            access_token_ttl: oauth.access_token_ttl.time_delta(),
            refresh_token_ttl: oauth.refresh_token_ttl.time_delta(),
            token_limit_per_ip: oauth.token_limit_per_ip,
            token_limit_per_client: oauth.token_limit_per_client,
            authorize_limit_per_ip: oauth.authorize_limit_per_ip,
            addresses: self.config.webhooks.addresses,
            tracking: self.config.poll_schedule(),
            clock: Arc::new(SystemClock),
        }
    }

    fn panel_settings(&self) -> PanelSettings {
        let Config { oauth, panel, .. } = &*self.config;
        PanelSettings {
            code_ttl: oauth.code_ttl.time_delta(),
            attempts: AttemptLimits {
                per_address: panel.sign_in_limit_per_ip,
                longest_delay: panel.sign_in_longest_delay.0,
            },
            pages_per_minute: panel.pages_per_minute,
            link_interval: panel.link_interval.time_delta(),
            applications: ApplicationLimits {
                per_seller: panel.applications_per_seller,
                registered_per_hour: panel.registrations_per_hour,
            },
            terms_url: panel.terms_url.as_ref().map(|url| url.0.to_string()),
        }
    }
}

fn service_settings(
    config: &Config,
    public_url: String,
    observer: Option<Arc<dyn Observer>>,
) -> ServiceSettings {
    let server = &config.server;
    let proxies = server.trusted_proxies.iter().map(|proxy| proxy.0);
    ServiceSettings {
        docs_url: docs_url(config, &public_url),
        public_url,
        name: server.name.clone(),
        realm: server.service_name.clone(),
        default_rate_limit: config.rate_limit.default,
        trusted_proxies: TrustedProxies::new(proxies),
        body_timeout: server.body_timeout.0,
        idempotency_lease: config.idempotency.lease.0,
        observer,
    }
}

/// A function that generates the OpenAPI document at its first call.
fn openapi(service: Arc<ServiceSettings>) -> ServedDocument {
    let document = LazyLock::new(move || {
        let document = adapter_http::openapi(&service.name, &service.public_url, &service.docs_url);
        Bytes::from(document.to_string())
    });
    Arc::new(move || Bytes::clone(&document))
}

fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}
