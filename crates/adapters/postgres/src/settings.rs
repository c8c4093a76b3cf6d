//! What an operator can choose about the database, and the URL that names it.

use std::{fmt, num::NonZeroU32, time::Duration};

use tokio_postgres::{Config, config::SslMode};

/// How the database is reached and how long it may take.
#[derive(Clone)]
pub struct DatabaseSettings {
    /// `postgres://user:password@host:port/database`. The host may be the percent-encoded folder of a unix socket.
    pub url: String,
    /// Connections for transactions and rare reads, at least 1. Each gate opens one more of its own, each reader of offers
    /// up to two, and each server thread that is asked for tokens three.
    pub pool_size: usize,
    /// How long opening a connection may take.
    pub connect_timeout: Duration,
    /// How long a transaction waits for a free connection.
    pub acquire_timeout: Duration,
    /// How long one statement of a transaction may take.
    pub statement_timeout: Duration,
    /// Whether what is in flight is gathered into one statement.
    pub gathering: Gathering,
    /// Requests a minute on `/v1` for an application without a limit of its own.
    pub default_rate_limit: NonZeroU32,
}

impl fmt::Debug for DatabaseSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseSettings")
            .field("pool_size", &self.pool_size)
            .field("gathering", &self.gathering)
            .finish_non_exhaustive()
    }
}

/// How look-ups and counts of requests in flight are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Gathering {
    /// While one statement is under way, the next requests gather and go as one.
    #[default]
    Grouped,
    /// One key per statement, so that a distributed PostgreSQL can send each to the one node that has its rows.
    Router,
}

/// What is wrong with a database URL. Never tells any of it: it may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseUrlError {
    /// It cannot be read.
    #[error(
        "is no URL of the form postgres://user:password@host:port/database; characters such as @ / : ? # in a password \
         have to be percent-encoded"
    )]
    Malformed,
    /// It names no host.
    #[error("names no host: write postgres://user:password@host:port/database")]
    NoHost,
    /// It names no database.
    #[error("names no database: write postgres://user:password@host:port/database")]
    NoDatabase,
    /// It demands TLS.
    #[error(
        "demands TLS by sslmode, which this version does not speak: let a PgBouncer or a tunnel on this machine do it"
    )]
    Tls,
}

/// Reads a URL. What it leaves open is set so that a dead connection is noticed.
pub(crate) fn parse(url: &str) -> Result<Config, DatabaseUrlError> {
    if !(url.starts_with("postgres://") || url.starts_with("postgresql://")) {
        return Err(DatabaseUrlError::Malformed);
    }
    // What the driver does not know it refuses, and does not tell why.
    if url.contains("sslmode=verify") {
        return Err(DatabaseUrlError::Tls);
    }
    let mut config = url.parse::<Config>().map_err(|_| DatabaseUrlError::Malformed)?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err(DatabaseUrlError::NoHost);
    }
    if config.get_dbname().is_none() {
        return Err(DatabaseUrlError::NoDatabase);
    }
    if matches!(config.get_ssl_mode(), SslMode::Require) {
        return Err(DatabaseUrlError::Tls);
    }
    if config.get_application_name().is_none() {
        config.application_name("seller-api");
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(Duration::from_secs(10));
    }
    config.keepalives_idle(Duration::from_secs(30));
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_that_are_refused() {
        for (url, expected) in [
            ("", DatabaseUrlError::Malformed),
            ("host=db password=secret", DatabaseUrlError::Malformed),
            ("mysql://u:secret@db/x", DatabaseUrlError::Malformed),
            ("postgres://u:secret@db:port/x", DatabaseUrlError::Malformed),
            ("postgres:///x", DatabaseUrlError::NoHost),
            ("postgres://u:secret@db", DatabaseUrlError::NoDatabase),
            ("postgres://u:secret@db/x?sslmode=require", DatabaseUrlError::Tls),
            (
                "postgres://u:secret@db/x?sslmode=verify-full",
                DatabaseUrlError::Tls,
            ),
        ] {
            let error = parse(url).unwrap_err();
            assert_eq!(error, expected, "{url}");
            assert!(!error.to_string().contains("sec"), "{error}");
        }
    }

    #[test]
    fn urls_that_are_fine() {
        for url in [
            "postgres://u:secret@db:5432/x",
            "postgresql://db/x?connect_timeout=3",
            "postgres://u@%2Frun%2Fpostgresql/x",
            "postgres://u@one:5432,two:5433/x?target_session_attrs=read-write",
        ] {
            assert!(parse(url).is_ok(), "{url}");
        }
    }
}
