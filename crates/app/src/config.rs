//! The configuration: defaults, overridden by a TOML file, then by the environment, then by the command line.
//!
//! Each field below declares a key: its name, type, default, bounds (those of a duration are texts), the
//! commands that read it, and its meaning. Loading, checks, messages and the reference
//! (`docs/operations/configuration.md`) derive from it. In the environment `server.bind` is
//! `SELLER_API__SERVER__BIND`, and lists are comma-separated. An unknown key or an invalid value stops the
//! start with a message that names the key and its source.

mod error;
mod external;
mod load;
pub mod reference;
mod values;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::{NonZeroU16, NonZeroU32};
use std::path::{Path, PathBuf};
use std::time::Duration;

use adapter_postgres::{DatabaseSettings, Layout, check_url};
use adapter_sealing::{KeyError, KeyRing};
use orders::PollSchedule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;
use tracing_subscriber::EnvFilter;

pub use self::{
    error::{ConfigError, Fault},
    external::{CarriersConfig, MailConfig, TracingConfig, WebhooksConfig},
    load::{Layer, Loaded, Sources},
    values::{ListenAddress, Network, Period, Secret, ServiceUrl},
};

pub(crate) fn fault(key: impl Into<String>, reason: impl Into<String>) -> Fault {
    Fault {
        key: key.into(),
        reason: reason.into(),
        is_rule: false,
        set_in: None,
    }
}

/// The value breaks a rule, such as "from 1 to 512".
fn must_be(key: impl Into<String>, rule: &str) -> Fault {
    Fault {
        is_rule: true,
        ..fault(key, format!("must be {rule}"))
    }
}

/// The effective configuration.
#[derive(Debug, Clone, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The two listeners.
    #[schemars(extend("x-read-by" = "serve, worker, sandbox"))]
    pub server: ServerConfig,
    /// The database.
    #[schemars(extend("x-read-by" = "every command that needs it"))]
    pub database: DatabaseConfig,
    /// Keys that seal stored values.
    #[schemars(extend("x-read-by" = "serve, worker, sandbox, admin keys status, admin keys reseal"))]
    pub keys: KeysConfig,
    /// The OAuth endpoints.
    #[schemars(extend("x-read-by" = "serve, sandbox"))]
    pub oauth: OauthConfig,
    /// The rate limit of `/v1`.
    #[schemars(extend("x-read-by" = "serve, sandbox"))]
    pub rate_limit: RateLimitConfig,
    /// The sellers' panel.
    #[schemars(extend("x-read-by" = "serve, sandbox"))]
    pub panel: PanelConfig,
    /// Idempotency keys.
    #[schemars(extend("x-read-by" = "serve, sandbox"))]
    pub idempotency: IdempotencyConfig,
    /// Mail to buyers and sellers.
    #[schemars(extend("x-read-by" = "serve, worker"))]
    pub mail: MailConfig,
    /// The carriers, for the tracking of parcels.
    #[schemars(extend("x-read-by" = "serve, worker"))]
    pub carriers: CarriersConfig,
    /// The tracking of parcels.
    #[schemars(extend("x-read-by" = "serve, worker, sandbox"))]
    pub tracking: TrackingConfig,
    /// Webhooks and their deliveries.
    #[schemars(extend("x-read-by" = "serve, worker, sandbox"))]
    pub webhooks: WebhooksConfig,
    /// Retention of personal data.
    #[schemars(extend("x-read-by" = "serve, worker, sandbox"))]
    pub retention: RetentionConfig,
    /// The process of `seller-api worker`.
    #[schemars(extend("x-read-by" = "worker"))]
    pub worker: WorkerConfig,
    /// The export of traces.
    #[schemars(extend("x-read-by" = "serve, worker, sandbox"))]
    pub tracing: TracingConfig,
    /// The log.
    #[schemars(extend("x-read-by" = "every command"))]
    pub log: LogConfig,
}

impl Config {
    /// Faults beyond types: values outside their range, then those found by the sections.
    fn faults(&self) -> Vec<Fault> {
        let mut faults = reference::out_of_range(self);
        let sections = [
            self.server.faults(),
            self.database.faults(),
            self.keys.faults(),
            self.mail.faults(&self.server.name),
            self.carriers.faults(),
            self.webhooks.faults(),
            self.log.faults(),
        ];
        for fault in sections.into_iter().flatten() {
            // An adapter may also refuse a value that is already out of range.
            if faults.iter().all(|found| found.key != fault.key) {
                faults.push(fault);
            }
        }
        faults
    }

    /// The adapter's settings for the database at `url`.
    pub fn database_settings(&self, url: &str) -> DatabaseSettings {
        let database = &self.database;
        DatabaseSettings {
            url: url.to_owned(),
            pool_size: database.pool_size,
            connect_timeout: database.connect_timeout.0,
            acquire_timeout: database.acquire_timeout.0,
            statement_timeout: database.statement_timeout.0,
            layout: database.layout,
            default_rate_limit: self.rate_limit.default,
        }
    }

    /// When parcels are looked up.
    pub fn poll_schedule(&self) -> PollSchedule {
        PollSchedule {
            interval: self.tracking.poll_interval.time_delta(),
        }
    }
}

const NAME_RULE: &str = "1 to 64 characters on one line, without spaces around them";
const SERVICE_NAME_RULE: &str =
    "1 to 64 ASCII letters, digits, '.', '_' or '-', the first one a letter or a digit";

#[derive(Debug, Clone, SmartDefault, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Address of the public listener (`/v1`, `/oauth`, `/panel`, `/docs`); port 0 takes a free one.
    #[schemars(extend("x-read-by" = "serve, worker, sandbox, openapi"))]
    #[default(ListenAddress(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))))]
    pub bind: ListenAddress,
    /// Address of the back office; port 0 takes a free one.
    #[schemars(extend("x-read-by" = "serve, sandbox"))]
    #[default(ListenAddress(SocketAddr::from((Ipv4Addr::LOCALHOST, 8081))))]
    pub backoffice_bind: ListenAddress,
    /// The origin that clients use, without a path; also the OAuth issuer. `serve` and `worker` need it with
    /// `trusted_proxies`, and where `bind` is not a loopback address. If unset: `http://` (`https://` with
    /// `server.tls`) and the bound address.
    #[schemars(extend("x-read-by" = "serve, worker, sandbox, openapi"))]
    pub public_url: Option<ServiceUrl>,
    /// Address of the documentation. If unset: `/docs` below `public_url`.
    #[schemars(extend("x-read-by" = "serve, worker, sandbox, openapi"))]
    pub docs_url: Option<ServiceUrl>,
    /// The product's name: on the documentation's pages, in the panel and in mails to sellers.
    #[schemars(extend("x-rule" = NAME_RULE, "x-read-by" = "serve, worker, sandbox, openapi"))]
    #[default("Seller API")]
    pub name: String,
    /// The service's name for programs: the realm of a 401, and the product in the `User-Agent` of its own
    /// requests.
    #[schemars(extend("x-rule" = SERVICE_NAME_RULE))]
    #[default("seller-api")]
    pub service_name: String,
    /// Addresses or networks of the peers whose `X-Forwarded-For` and `traceparent` are believed.
    #[schemars(extend("x-read-by" = "serve, sandbox"))]
    pub trusted_proxies: Vec<Network>,
    /// After SIGTERM connections are still accepted for this time, while `/readyz` is 503 and every response
    /// closes its connection. The sandbox skips it unless it is set.
    #[schemars(extend("minimum" = "0s", "maximum" = "1h"))]
    #[default(Period(Duration::from_secs(2)))]
    pub drain: Period,
    /// Time limit for requests in flight to finish after `drain`.
    #[schemars(extend("minimum" = "1s", "maximum" = "1h"))]
    #[default(Period(Duration::from_secs(10)))]
    pub shutdown_timeout: Period,
    /// Time limit for a request's head, a second longer after a connection's first, and for the TLS
    /// handshake. The HTTP library measures the first in steps of half a second.
    #[schemars(extend("minimum" = "1s", "maximum" = "1h"))]
    #[default(Period(Duration::from_secs(5)))]
    pub header_timeout: Period,
    /// Time limit for a request's body; in an import, for each part of it.
    #[schemars(extend("minimum" = "100ms", "maximum" = "1h", "x-read-by" = "serve, sandbox"))]
    #[default(Period(Duration::from_secs(10)))]
    pub body_timeout: Period,
    /// Time limit for an idle connection.
    #[schemars(extend("minimum" = "1s", "maximum" = "1h"))]
    #[default(Period(Duration::from_secs(75)))]
    pub keep_alive: Period,
    /// Concurrent connections, over all threads; further ones wait to be accepted.
    #[schemars(range(min = 1, max = 1_000_000))]
    #[default(16_000)]
    pub max_connections: u32,
    /// Threads of the public listener. If unset: one for each processor.
    #[schemars(range(min = 1, max = 512), extend("x-read-by" = "serve, sandbox"))]
    pub threads: Option<NonZeroU16>,
    /// Which background workers run in `serve`.
    #[schemars(extend("x-read-by" = "serve, sandbox"))]
    pub workers: WorkersMode,
    /// TLS of the public listener. If unset, it speaks plain HTTP to a proxy.
    pub tls: TlsConfig,
    /// TLS of the back office.
    pub backoffice_tls: TlsConfig,
}

/// `server.workers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkersMode {
    /// All of them.
    #[default]
    All,
    /// None: `seller-api worker` runs them.
    None,
}

impl ServerConfig {
    /// Whether both listeners cannot be bound.
    pub(crate) fn shares_a_port(&self) -> bool {
        let (bind, backoffice_bind) = (self.bind.0, self.backoffice_bind.0);
        let (own, other) = (bind.ip(), backoffice_bind.ip());
        // `[::]` is all addresses, `0.0.0.0` those of IPv4.
        let covers = |all: IpAddr, one: IpAddr| all.is_unspecified() && (all.is_ipv6() || one.is_ipv4());
        (own == other || covers(own, other) || covers(other, own))
            && bind.port() != 0
            && bind.port() == backoffice_bind.port()
    }

    fn faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let is_line = self.name.trim() == self.name && !self.name.contains(char::is_control);
        if !is_line || !(1..=64).contains(&self.name.chars().count()) {
            faults.push(must_be("server.name", NAME_RULE));
        }
        if !is_product(&self.service_name) {
            faults.push(must_be("server.service_name", SERVICE_NAME_RULE));
        }
        if self.public_url.as_ref().is_some_and(|url| !url.is_origin()) {
            let rule =
                "an origin such as https://api.example.com, without a path: what is served lies at its root";
            faults.push(must_be("server.public_url", rule));
        }
        if self.shares_a_port() {
            let reason = format!(
                "must have another port than `server.bind`, which is {}",
                self.bind.0
            );
            faults.push(fault("server.backoffice_bind", reason));
        }
        faults.extend(self.tls.fault("server.tls"));
        faults.extend(self.backoffice_tls.fault("server.backoffice_tls"));
        faults
    }

    /// Fails where the bound address cannot be the one that clients use.
    pub fn require_public_url(&self) -> Result<(), ConfigError> {
        let why = if !self.trusted_proxies.is_empty() {
            "where `server.trusted_proxies` is"
        } else if !self.bind.0.ip().is_loopback() {
            "where `server.bind` is not a loopback address"
        } else {
            return Ok(());
        };
        if self.public_url.is_some() {
            return Ok(());
        }
        let reason = format!("must be set {why}: it is the address that clients use, and the OAuth issuer");
        Err(ConfigError::Faults(vec![fault("server.public_url", reason)]))
    }

    /// The public origin of a service that listens at `address`.
    pub fn public_url_at(&self, address: SocketAddr) -> String {
        let scheme = if self.tls.files().is_some() {
            "https"
        } else {
            "http"
        };
        match &self.public_url {
            Some(url) => url.base().to_owned(),
            None => format!("{scheme}://{}", reachable(address)),
        }
    }
}

/// An address at which the listener can be reached from the same machine.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        return (Ipv4Addr::LOCALHOST, address.port()).into();
    }
    address
}

/// Whether `name` is a valid product name in a `User-Agent` (contract: Request headers).
fn is_product(name: &str) -> bool {
    let part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    name.len() <= 64 && name.bytes().all(part) && name.starts_with(|c: char| c.is_ascii_alphanumeric())
}

/// `server.tls.*` and `server.backoffice_tls.*`.
#[derive(Debug, Clone, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsConfig {
    /// File with the listener's certificate, then the intermediate ones (PEM). With it the listener speaks
    /// TLS (1.2 and 1.3) alone.
    #[schemars(extend("x-read-by" = "serve"))]
    pub certificate: Option<PathBuf>,
    /// File with the private key of that certificate (PEM, not encrypted).
    #[schemars(extend("x-read-by" = "serve"))]
    pub key: Option<PathBuf>,
}

impl TlsConfig {
    /// Certificate and key, if the listener uses TLS.
    pub fn files(&self) -> Option<(&Path, &Path)> {
        self.certificate.as_deref().zip(self.key.as_deref())
    }

    fn fault(&self, section: &str) -> Option<Fault> {
        let (names, files) = (["certificate", "key"], [&self.certificate, &self.key]);
        // An empty variable must not disable TLS.
        for (name, file) in names.into_iter().zip(files) {
            if file.as_ref().is_some_and(|file| file.as_os_str().is_empty()) {
                return Some(must_be(format!("{section}.{name}"), "the path of a file"));
            }
        }
        missing_half(section, names, files.map(Option::is_some))
    }
}

/// Reports the missing one of two keys that must be set together.
fn missing_half(section: &str, [one, other]: [&str; 2], set: [bool; 2]) -> Option<Fault> {
    let missing = |missing, set| {
        let reason = format!("must be set where {section}.{set} is");
        Some(fault(format!("{section}.{missing}"), reason))
    };
    match set {
        [true, false] => missing(other, one),
        [false, true] => missing(one, other),
        [true, true] | [false, false] => None,
    }
}

#[derive(Debug, Clone, SmartDefault, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DatabaseConfig {
    /// The database, `postgres://user:password@host:port/name`, directly or through PgBouncer (1.21 or newer)
    /// in transaction mode.
    pub url: Option<Secret>,
    /// The same database without a pooler, as the role that owns its tables, for migrations. If unset: `url`.
    #[schemars(extend("x-read-by" = "sandbox, migrate"))]
    pub direct_url: Option<Secret>,
    /// Where offers and orders are. Must match the database: `migrate --distribute` distributes it.
    #[schemars(
        with = "String",
        extend("x-kind" = "`single`: On one PostgreSQL server. `citus`: Distributed by seller over the workers of a Citus cluster.")
    )]
    pub layout: Layout,
    /// Connections for transactions, of which those of one seller, or of one application, take a quarter at most. Each server thread
    /// has eleven more, for reads, sessions and tokens, a process fourteen, for lists by `updated_after`,
    /// changes of offers, outcomes of lost commits, cancellations and the back office, and its workers up to
    /// eight. Nothing compares the sum over all processes with the server's `max_connections`.
    #[schemars(range(min = 1, max = 1000))]
    #[default(16)]
    pub pool_size: usize,
    /// Time limit for opening a connection.
    #[schemars(extend("minimum" = "100ms", "maximum" = "1m"))]
    #[default(Period(Duration::from_millis(1_500)))]
    pub connect_timeout: Period,
    /// How long a transaction waits for a connection.
    #[schemars(extend("minimum" = "100ms", "maximum" = "1m"))]
    #[default(Period(Duration::from_millis(2_500)))]
    pub acquire_timeout: Period,
    /// Time limit for one statement of a transaction; others are given up after 2.5 s. A silent server gets
    /// half a second more. With the default every public request is answered within 3 s, except while the outcome
    /// of a COMMIT is unknown: up to 17.5 s with an idempotency key, 30 s at the token endpoint.
    #[schemars(extend("minimum" = "100ms", "maximum" = "1m"))]
    #[default(Period(Duration::from_secs(2)))]
    pub statement_timeout: Period,
}

impl DatabaseConfig {
    fn faults(&self) -> Vec<Fault> {
        let urls = [
            ("database.url", &self.url),
            ("database.direct_url", &self.direct_url),
        ];
        let checked = urls.into_iter().filter_map(|(key, url)| {
            let error = check_url(url.as_ref()?.expose()).err()?;
            Some(fault(key, error.to_string()))
        });
        checked.collect()
    }
}

#[derive(Debug, Clone, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeysConfig {
    /// Keys, each `<id>:<base64 of 32 bytes>`. The first one seals, all of them open.
    pub sealing: Vec<Secret>,
}

impl KeysConfig {
    fn faults(&self) -> Vec<Fault> {
        match self.ring() {
            // Not every command needs keys; those that do fail with their own message.
            Ok(_) | Err(KeyError::None) => Vec::new(),
            Err(error) => vec![fault("keys.sealing", format!("cannot be used: {error}"))],
        }
    }

    /// The key ring of these keys.
    pub fn ring(&self) -> Result<KeyRing, KeyError> {
        let keys = self.sealing.iter().map(|key| key.0.clone());
        KeyRing::parse(&keys.collect::<Vec<_>>())
    }
}

#[derive(Debug, Clone, SmartDefault, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OauthConfig {
    /// Lifetime of an access token.
    #[schemars(extend("minimum" = "1s", "maximum" = "366d"))]
    #[default(Period(Duration::from_hours(12)))]
    pub access_token_ttl: Period,
    /// Lifetime of a refresh token.
    #[schemars(extend("minimum" = "1s", "maximum" = "366d"))]
    #[default(Period(Duration::from_hours(90 * 24)))]
    pub refresh_token_ttl: Period,
    /// Lifetime of an authorization code.
    #[schemars(extend("minimum" = "1s", "maximum" = "366d"))]
    #[default(Period(Duration::from_mins(10)))]
    pub code_ttl: Period,
    /// Calls a minute of `/oauth/token` and `/oauth/revoke` from one address.
    #[schemars(range(min = 1, max = 10_000_000))]
    #[default(30)]
    pub token_limit_per_ip: u32,
    /// Authenticated calls a minute of `/oauth/token` and `/oauth/revoke` by one client.
    #[schemars(range(min = 1, max = 10_000_000))]
    #[default(60)]
    pub token_limit_per_client: u32,
    /// Calls a minute of `/oauth/authorize` from one address.
    #[schemars(range(min = 1, max = 10_000_000))]
    #[default(60)]
    pub authorize_limit_per_ip: u32,
}

#[derive(Debug, Clone, SmartDefault, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RateLimitConfig {
    /// Requests a minute of an application without a limit of its own.
    #[schemars(range(min = 1, max = 10_000_000))]
    #[default(NonZeroU32::MIN.saturating_add(599))]
    pub default: NonZeroU32,
}

#[derive(Debug, Clone, SmartDefault, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PanelConfig {
    /// Attempts a minute from one address to sign in, to change a password or to reset one. Further ones are
    /// refused.
    #[schemars(range(min = 1, max = 1_000_000))]
    #[default(30)]
    pub sign_in_limit_per_ip: u32,
    /// The longest wait of an attempt. Beyond five a minute for one account each waits a second longer than
    /// the one before, so that nobody can lock the owner out.
    #[schemars(extend("minimum" = "0s", "maximum" = "30s"))]
    #[default(Period(Duration::from_secs(10)))]
    pub sign_in_longest_delay: Period,
    /// Pages and forms of the panel a minute of one account, all its sessions and all processes together.
    /// Signing out is not limited.
    #[schemars(range(min = 1, max = 1_000_000))]
    #[default(120)]
    pub pages_per_minute: u32,
    /// Within this time after a mail with a link an account gets no second one of the same kind. At most five
    /// go to an account in a clock hour. With 0s both bounds are off.
    #[schemars(extend("minimum" = "0s", "maximum" = "1h"))]
    #[default(Period(Duration::from_mins(5)))]
    pub link_interval: Period,
    /// Applications that a seller may have, registered in the panel or through the back office.
    #[schemars(range(min = 1, max = 1_000_000))]
    #[default(50)]
    pub applications_per_seller: u32,
    /// Applications that a seller may register in the panel in a clock hour, over all processes.
    #[schemars(range(min = 1, max = 1_000_000))]
    #[default(10)]
    pub registrations_per_hour: u32,
    /// Address of the terms of the API, linked where a seller accepts them. If unset: no link.
    pub terms_url: Option<ServiceUrl>,
}

#[derive(Debug, Clone, SmartDefault, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IdempotencyConfig {
    /// How long a request holds its key after its process has died.
    #[schemars(extend("minimum" = "100ms", "maximum" = "1h"))]
    #[default(Period(Duration::from_mins(1)))]
    pub lease: Period,
}

#[derive(Debug, Clone, SmartDefault, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrackingConfig {
    /// The time between two look-ups of a parcel that is out for delivery; young parcels take twice, later
    /// ones 6 and 24 times as long.
    #[schemars(extend("minimum" = "100ms", "maximum" = "1d"))]
    #[default(Period(Duration::from_mins(15)))]
    pub poll_interval: Period,
}

#[derive(Debug, Clone, SmartDefault, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionConfig {
    /// How long a buyer's personal data are kept after the order was placed. If unset: until they are erased.
    #[schemars(extend("minimum" = "1d", "maximum" = "36600d"))]
    pub buyer_data: Option<Period>,
    /// How long name, address and webhook subscriptions of a seller are kept after the account was closed. If unset: for good.
    #[schemars(extend("minimum" = "1d", "maximum" = "36600d"))]
    pub closed_sellers: Option<Period>,
    /// How long entries of the audit log are kept.
    #[schemars(extend("minimum" = "1d", "maximum" = "36600d"))]
    #[default(Period(Duration::from_hours(24 * 400)))]
    pub audit: Period,
    /// How long events of the journal are kept.
    #[schemars(extend("minimum" = "1s", "maximum" = "36600d"))]
    #[default(Period(Duration::from_hours(24 * 30)))]
    pub events: Period,
}

#[derive(Debug, Clone, SmartDefault, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkerConfig {
    /// Address of `/healthz`, `/readyz` and `/metrics` of `seller-api worker`; port 0 takes a free one.
    #[default(ListenAddress(SocketAddr::from((Ipv4Addr::LOCALHOST, 8082))))]
    pub bind: ListenAddress,
}

#[derive(Debug, Clone, SmartDefault, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    /// Format of the log on stderr.
    pub format: LogFormat,
    /// The lowest level, or a list of directives such as `info,usecases=debug` (tracing's `EnvFilter`).
    #[default("info")]
    pub level: String,
}

/// `log.format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    #[default]
    Text,
}

impl LogConfig {
    fn faults(&self) -> Vec<Fault> {
        const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];
        // The filter reads a single word as the name of a module, and then logs nothing else.
        let is_lone_word = |directive: &str| {
            let directive = directive.trim();
            let is_level = LEVELS.iter().any(|level| directive.eq_ignore_ascii_case(level));
            !is_level && !directive.contains(['=', '[', ']', '{', '}'])
        };
        if EnvFilter::try_new(&self.level).is_ok() && !self.level.split(',').any(is_lone_word) {
            return Vec::new();
        }
        let rule = "error, warn, info, debug, trace, off, or directives such as `info,usecases=debug`";
        vec![must_be("log.level", rule)]
    }
}

#[cfg(test)]
mod tests;
