//! Settings as plain values: the program maps its configuration to them.

use std::{net::SocketAddr, num::NonZeroUsize, time::Duration};

use webhooks::AddressRules;

#[derive(Debug, Clone)]
pub struct SenderSettings {
    /// The product name in `User-Agent`, as in `<service_name>-webhooks/1.0` (RFC 9110 §10.1.5: a token).
    pub service_name: String,
    /// Included in `User-Agent`, for integrators who find it in a log.
    pub docs_url: String,
    /// The addresses that connections may go to.
    pub rules: AddressRules,
    /// DNS servers, over UDP and, for long answers, TCP. Empty: the machine's servers.
    pub name_servers: Vec<SocketAddr>,
    /// Certificates (PEM) that are trusted besides the machine's, such as a marketplace's private authority.
    pub extra_roots: Option<String>,
    /// Timeout of a whole attempt. A worker's lease on a delivery must be longer.
    pub attempt_timeout: Duration,
    /// Timeout of all queries for a name.
    pub resolve_timeout: Duration,
    /// Timeout of the TCP connections to all addresses of a host; excludes the TLS handshake.
    pub connect_timeout: Duration,
    /// Maximum number of concurrent attempts to one host, on any port. Further ones are postponed at once. An
    /// application with less than an eighth of its share is still admitted, up to twice this number.
    pub attempts_per_host: NonZeroUsize,
    /// One application's share of these: several applications may have receivers at the same host.
    pub attempts_per_application: NonZeroUsize,
    /// Maximum number of idle connections in total; the least recently used is closed first. 0: none.
    pub max_idle_connections: usize,
    /// Maximum age at which a connection may be reused, however busy it is: certificates expire.
    pub max_connection_age: Duration,
}

impl SenderSettings {
    /// The deadlines of D52; 256 attempts per host, 64 of them per application; 256 idle connections, for a
    /// minute.
    pub fn new(service_name: impl Into<String>, docs_url: impl Into<String>, rules: AddressRules) -> Self {
        const PER_HOST: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);
        const PER_APPLICATION: NonZeroUsize = NonZeroUsize::MIN.saturating_add(63);
        Self {
            service_name: service_name.into(),
            docs_url: docs_url.into(),
            rules,
            name_servers: Vec::new(),
            extra_roots: None,
            attempt_timeout: Duration::from_secs(10),
            resolve_timeout: Duration::from_secs(2),
            connect_timeout: Duration::from_secs(3),
            attempts_per_host: PER_HOST,
            attempts_per_application: PER_APPLICATION,
            max_idle_connections: 256,
            max_connection_age: Duration::from_mins(1),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("the service's name and the address of its documentation cannot be sent as `User-Agent`")]
    UserAgent,
    #[error("names cannot be resolved with the machine's settings")]
    NameServers(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Certificates are unreadable or missing, or rustls rejects the configuration.
    #[error("TLS cannot be set up with the given certificates")]
    Tls(#[source] Box<dyn std::error::Error + Send + Sync>),
}
