//! The configuration: defaults, over them a TOML file, over it the environment, over all the command line.
//!
//! Every key has a section and a name (`server.bind`). In the environment it is written `SELLER_API__SERVER__BIND`;
//! lists are separated by commas there. `DATABASE_URL` stands for `database.url`. A key that nobody knows, or a value that
//! cannot be, stops the start with a message that names the key and where it came from.

mod carriers;
mod database;
mod error;
mod jobs;
mod keys;
mod kinds;
mod layer;
mod limits;
mod load;
mod log;
mod mail;
mod panel;
mod print;
pub mod reference;
mod server;
mod tls;
mod tracing;
mod values;
mod webhooks;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::{
    carriers::{CarriersConfig, ClientConfig, DhlConfig, DpdConfig, InpostConfig, PocztaPolskaConfig},
    database::DatabaseConfig,
    error::{ConfigError, Problem},
    jobs::{IdempotencyConfig, RetentionConfig, TrackingConfig, WorkerConfig},
    keys::KeysConfig,
    layer::Layer,
    limits::{OauthConfig, RateLimitConfig},
    load::{Loaded, Sources},
    log::{LogConfig, LogFormat},
    mail::{MailConfig, MailSecurity},
    panel::PanelConfig,
    server::{PublicUrl, ServerConfig, WorkersMode, reachable},
    tls::TlsConfig,
    tracing::TracingConfig,
    values::{List, Network, Period, Secret, ServiceUrl},
    webhooks::{AddressesMode, NameServer, WebhooksConfig},
};

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
    /// Keys of the service's own.
    #[schemars(extend("x-read-by" = "serve, worker, sandbox, admin keys status, admin keys reseal"))]
    pub keys: KeysConfig,
    /// The OAuth endpoints.
    #[schemars(extend("x-read-by" = "serve, sandbox"))]
    pub oauth: OauthConfig,
    /// The limit of `/v1`.
    #[schemars(extend("x-read-by" = "serve, sandbox"))]
    pub rate_limit: RateLimitConfig,
    /// The sellers' panel.
    #[schemars(extend("x-read-by" = "serve, sandbox"))]
    pub panel: PanelConfig,
    /// Keys that make a request happen once.
    #[schemars(extend("x-read-by" = "serve, sandbox"))]
    pub idempotency: IdempotencyConfig,
    /// Mail to buyers.
    #[schemars(extend("x-read-by" = "serve, worker"))]
    pub mail: MailConfig,
    /// The carriers that are asked about parcels.
    #[schemars(extend("x-read-by" = "serve, worker"))]
    pub carriers: CarriersConfig,
    /// Following parcels on their way.
    #[schemars(extend("x-read-by" = "serve, worker, sandbox"))]
    pub tracking: TrackingConfig,
    /// Webhooks and their deliveries.
    #[schemars(extend("x-read-by" = "serve, worker, sandbox"))]
    pub webhooks: WebhooksConfig,
    /// How long what is done with is kept.
    #[schemars(extend("x-read-by" = "serve, worker, sandbox"))]
    pub retention: RetentionConfig,
    /// The process of `seller-api worker`.
    #[schemars(extend("x-read-by" = "worker"))]
    pub worker: WorkerConfig,
    /// Spans for a collector of traces.
    #[schemars(extend("x-read-by" = "serve, worker, sandbox"))]
    pub tracing: TracingConfig,
    /// The log.
    #[schemars(extend("x-read-by" = "every command"))]
    pub log: LogConfig,
}

impl Config {
    /// What is wrong with values that each look right on their own: the key, and why.
    fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = self.server.problems();
        problems.extend(self.database.problems());
        problems.extend(self.keys.problems());
        problems.extend(self.oauth.problems());
        problems.extend(self.rate_limit.problems());
        problems.extend(self.panel.problems());
        problems.extend(self.idempotency.problems());
        problems.extend(self.mail.problems());
        problems.extend(self.carriers.problems());
        problems.extend(self.tracking.problems());
        problems.extend(self.webhooks.problems());
        problems.extend(self.retention.problems());
        problems.extend(self.tracing.problems());
        problems.extend(self.log.problems());
        problems
    }
}

#[cfg(test)]
mod tests;
