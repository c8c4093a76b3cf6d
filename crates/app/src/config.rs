//! The configuration: defaults, over them a TOML file, over it the environment, over all the command line.
//!
//! Every key has a section and a name (`server.bind`). In the environment it is written `SELLER_API__SERVER__BIND`;
//! lists are separated by commas there. `DATABASE_URL` stands for `database.url`. A key that nobody knows, or a value that
//! cannot be, stops the start with a message that names the key and where it came from.

mod database;
mod error;
mod keys;
mod layer;
mod limits;
mod load;
mod log;
mod print;
mod server;
mod values;

use serde::{Deserialize, Serialize};

pub use self::{
    database::{DatabaseConfig, GatheringMode},
    error::{ConfigError, Problem},
    keys::KeysConfig,
    layer::Layer,
    limits::{OauthConfig, RateLimitConfig},
    load::{Loaded, Sources},
    log::{LogConfig, LogFormat},
    server::{PublicUrl, ServerConfig, reachable},
    values::{List, Period, Proxy, Secret},
};

/// The effective configuration.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The two listeners.
    pub server: ServerConfig,
    /// The database.
    pub database: DatabaseConfig,
    /// Keys of the service's own.
    pub keys: KeysConfig,
    /// The OAuth endpoints.
    pub oauth: OauthConfig,
    /// The limit of `/v1`.
    pub rate_limit: RateLimitConfig,
    /// The log.
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
        problems.extend(self.log.problems());
        problems
    }
}

#[cfg(test)]
mod tests;
