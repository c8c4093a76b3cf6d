//! `database.*`: where PostgreSQL is, and how it is used.

use std::{num::NonZeroU32, time::Duration};

use adapter_postgres::{DatabaseSettings, check_url};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::{Period, Secret};

/// `database.*`.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DatabaseConfig {
    /// The database, `postgres://user:password@host:port/name`; may lead through `PgBouncer` (1.21 or newer) in transaction
    /// mode.
    pub url: Option<Secret>,
    /// The same database and role without a pooler between, for migrations. Without it: `url`.
    #[schemars(extend("x-read-by" = "migrate"))]
    pub direct_url: Option<Secret>,
    /// Connections for transactions, 1 to 1000. Each server thread has eight more, for reads and for the token endpoint.
    #[schemars(extend("x-range" = "from 1 to 1000"))]
    pub pool_size: usize,
    /// How long opening a connection may take.
    #[schemars(extend("x-range" = "from 100ms to 1m"))]
    pub connect_timeout: Period,
    /// How long a transaction may wait for a connection.
    #[schemars(extend("x-range" = "from 100ms to 1m"))]
    pub acquire_timeout: Period,
    /// How long one statement may take. A server that is silent is given half a second more; with the default every request
    /// is answered within 3 s all the same, but for one whose COMMIT got no answer, which waits for its outcome: up to 17.5 s with an
    /// idempotency key, half a minute at the token endpoint.
    #[schemars(extend("x-range" = "from 100ms to 1m"))]
    pub statement_timeout: Period,
}

impl Default for DatabaseConfig {
    fn default() -> Self {
        Self {
            url: None,
            direct_url: None,
            pool_size: 16,
            connect_timeout: Period(Duration::from_millis(1_500)),
            acquire_timeout: Period(Duration::from_millis(2_500)),
            statement_timeout: Period(Duration::from_secs(2)),
        }
    }
}

impl DatabaseConfig {
    pub(super) fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        for (key, url) in [
            ("database.url", &self.url),
            ("database.direct_url", &self.direct_url),
        ] {
            if let Some(Err(error)) = url.as_ref().map(|url| check_url(url.expose())) {
                problems.push((key, error.to_string()));
            }
        }
        if !(1..=1_000).contains(&self.pool_size) {
            problems.push(("database.pool_size", "must be from 1 to 1000".to_owned()));
        }
        for (key, period) in [
            ("database.connect_timeout", self.connect_timeout),
            ("database.acquire_timeout", self.acquire_timeout),
            ("database.statement_timeout", self.statement_timeout),
        ] {
            if !(Duration::from_millis(100)..=Duration::from_mins(1)).contains(&period.0) {
                problems.push((key, "must be from 100ms to 1m".to_owned()));
            }
        }
        problems
    }

    /// What the adapter needs to know to reach the database at `url`.
    pub fn settings(&self, url: &str, default_rate_limit: NonZeroU32) -> DatabaseSettings {
        DatabaseSettings {
            url: url.to_owned(),
            pool_size: self.pool_size,
            connect_timeout: self.connect_timeout.0,
            acquire_timeout: self.acquire_timeout.0,
            statement_timeout: self.statement_timeout.0,
            default_rate_limit,
        }
    }
}
