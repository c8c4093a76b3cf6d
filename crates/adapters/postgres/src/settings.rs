//! What an operator can choose about the database, and what can be wrong with the URL that names it.

use std::{fmt, num::NonZeroU32, path::PathBuf, time::Duration};

/// How the database is reached and how long it may take.
#[derive(Clone)]
pub struct DatabaseSettings {
    /// `postgres://user:password@host:port/database`. The host may be the percent-encoded folder of a unix socket, or several
    /// hosts with commas between them, of which the one that takes writes is used. Of libpq's parameters it knows `sslmode`,
    /// `sslrootcert`, `sslcert` and `sslkey`, and those that `tokio_postgres::Config` does.
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
    /// Requests a minute on `/v1` for an application without a limit of its own.
    pub default_rate_limit: NonZeroU32,
}

impl fmt::Debug for DatabaseSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseSettings")
            .field("pool_size", &self.pool_size)
            .finish_non_exhaustive()
    }
}

/// The parameters that a URL may have, in the order in which people need them.
const KNOWN_PARAMETERS: &str = "sslmode, sslrootcert, sslcert, sslkey, sslnegotiation, channel_binding, target_session_attrs, \
    application_name, options, connect_timeout, tcp_user_timeout, keepalives, keepalives_idle, keepalives_interval, \
    keepalives_retries, hostaddr and load_balance_hosts";

/// What is wrong with a database URL. Never tells what may be a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseUrlError {
    /// It cannot be read.
    #[error(
        "is no URL of the form postgres://user:password@host:port/database; characters such as @ / : ? # in a password \
         have to be percent-encoded"
    )]
    Malformed,
    /// There are quotes or white space around it, as files of variables often bring them in.
    #[error("stands in quotes or has white space around it: write it without")]
    Wrapped,
    /// It has a parameter that nobody knows. Which one is not told: it may be a part of a password.
    #[error(
        "has an unknown parameter behind its `?`: known are {KNOWN_PARAMETERS}; a ? in a password has to be percent-encoded"
    )]
    Parameter,
    /// A parameter, or the port, has a value that cannot be.
    #[error("has a value that cannot be for `{0}`")]
    Value(String),
    /// It names no host.
    #[error("names no host: write postgres://user:password@host:port/database")]
    NoHost,
    /// It names no database.
    #[error("names no database: write postgres://user:password@host:port/database")]
    NoDatabase,
    /// It wants a server that does not write.
    #[error(
        "asks for a server that only reads, and this service writes: write target_session_attrs=read-write"
    )]
    ReadOnly,
    /// Its `sslmode` is unknown.
    #[error("has an sslmode that is none of disable, prefer, require, verify-ca and verify-full")]
    SslMode,
    /// It names trusted certificates, and nothing that is held against them.
    #[error("names certificates in sslrootcert, but its sslmode checks none: write sslmode=verify-full")]
    Unchecked,
    /// It names a certificate for the client without its key, or the other way round.
    #[error("names only one of sslcert and sslkey: a certificate goes with its key")]
    HalfIdentity,
    /// It names a file that cannot be used.
    #[error("names the file {} in {parameter}, which cannot be used: {reason}", .path.display())]
    File {
        /// The URL's parameter.
        parameter: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// It wants a certificate that is trusted, and nothing is.
    #[error(
        "demands a certificate that is trusted, and this machine trusts none: install its root certificates \
         (ca-certificates), or name a file of them in sslrootcert"
    )]
    NoRoots,
    /// TLS cannot be set up by it.
    #[error("makes TLS impossible: {0}")]
    Tls(String),
}
