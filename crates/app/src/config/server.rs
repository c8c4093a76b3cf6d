//! `server.*`: the two listeners, and what the service says of itself.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    num::NonZeroU16,
    time::Duration,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::{
    tls::TlsConfig,
    values::{List, Network, Period, ServiceUrl},
};

/// `server.*`.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Where `/v1` and `/oauth` listen; port 0 takes a free one.
    #[schemars(extend("x-kind" = "an address with its port", "x-read-by" = "serve"))]
    pub bind: SocketAddr,
    /// Where the marketplace's interface listens; port 0 takes a free one.
    #[schemars(extend("x-kind" = "an address with its port", "x-read-by" = "serve"))]
    pub backoffice_bind: SocketAddr,
    /// The origin at which clients reach `bind`, without a path; also the OAuth issuer. Without it: `http://`, or with `server.tls` `https://`,
    /// and the bound address.
    #[schemars(extend("x-read-by" = "serve, worker, sandbox, openapi"))]
    pub public_url: Option<PublicUrl>,
    /// Where the documentation is read. Without it: `/docs` below `public_url`.
    pub docs_url: Option<PublicUrl>,
    /// The service's name: the realm of a 401, and the product in the `User-Agent` of what it sends.
    #[schemars(extend("x-range" = "1 to 64 letters, digits, `.`, `_` or `-`"))]
    pub service_name: String,
    /// Peers whose `X-Forwarded-For` is believed: addresses or networks.
    #[schemars(extend("x-read-by" = "serve, sandbox"))]
    pub trusted_proxies: List<Network>,
    /// How long connections are still taken after SIGTERM, while `/readyz` says no and every answer closes its connection;
    /// at most 1 h. The sandbox does without unless it is set.
    #[schemars(extend("x-range" = "from 0s to 1h"))]
    pub drain: Period,
    /// How long what runs may take to finish after that; at least 1 s.
    #[schemars(extend("x-range" = "from 1s to 1h"))]
    pub shutdown_timeout: Period,
    /// How long a client may take to send a request's head, and before that for the handshake of TLS; at least 1 s. The HTTP library measures it by a clock that ticks
    /// twice a second, so that less would cut off clients that are in time.
    #[schemars(extend("x-range" = "from 1s to 1h"))]
    pub header_timeout: Period,
    /// How long a client may take to send a request's body, imports aside.
    #[schemars(extend("x-range" = "from 100ms to 1h", "x-read-by" = "serve, sandbox"))]
    pub body_timeout: Period,
    /// How long a connection may idle between two requests.
    #[schemars(extend("x-range" = "from 1s to 1h"))]
    pub keep_alive: Period,
    /// Connections at a time, over all threads; those beyond wait to be accepted.
    #[schemars(extend("x-range" = "from 1 to 1000000"))]
    pub max_connections: u32,
    /// Threads that serve the public listener. Without it: one for each processor.
    #[schemars(extend("x-range" = "from 1 to 512", "x-read-by" = "serve, sandbox"))]
    pub threads: Option<NonZeroU16>,
    /// Which of the background workers run beside the listeners.
    #[schemars(extend("x-read-by" = "serve"))]
    pub workers: WorkersMode,
    /// TLS of the public listener's own. Without it TLS ends at a proxy in front.
    pub tls: TlsConfig,
    /// TLS of the marketplace's listener's own.
    pub backoffice_tls: TlsConfig,
}

/// `server.workers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkersMode {
    /// All of them.
    All,
    /// None: processes of `seller-api worker` do the work.
    None,
}

impl Default for ServerConfig {
    fn default() -> Self {
        let local = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        Self {
            bind: local(8080),
            backoffice_bind: local(8081),
            public_url: None,
            docs_url: None,
            service_name: "seller-api".to_owned(),
            trusted_proxies: List::default(),
            drain: Period(Duration::from_secs(2)),
            shutdown_timeout: Period(Duration::from_secs(10)),
            header_timeout: Period(Duration::from_secs(5)),
            body_timeout: Period(Duration::from_secs(10)),
            keep_alive: Period(Duration::from_secs(75)),
            max_connections: 16_000,
            threads: None,
            workers: WorkersMode::All,
            tls: TlsConfig::default(),
            backoffice_tls: TlsConfig::default(),
        }
    }
}

impl ServerConfig {
    pub(super) fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        let mut check = |fine: bool, key, reason: &str| {
            if !fine {
                problems.push((key, reason.to_owned()));
            }
        };
        let hour = Period(Duration::from_hours(1));
        let within = |period: Period, at_least: u64| {
            (Period(Duration::from_millis(at_least))..=hour).contains(&period)
        };
        check(
            is_product(&self.service_name),
            "server.service_name",
            PRODUCT_RULE,
        );
        check(within(self.drain, 0), "server.drain", "must be from 0s to 1h");
        check(
            within(self.shutdown_timeout, 1_000),
            "server.shutdown_timeout",
            "must be from 1s to 1h",
        );
        check(
            within(self.header_timeout, 1_000),
            "server.header_timeout",
            "must be from 1s to 1h",
        );
        check(
            within(self.body_timeout, 100),
            "server.body_timeout",
            "must be from 100ms to 1h",
        );
        check(
            within(self.keep_alive, 1_000),
            "server.keep_alive",
            "must be from 1s to 1h",
        );
        check(
            (1..=1_000_000).contains(&self.max_connections),
            "server.max_connections",
            "must be from 1 to 1000000",
        );
        check(
            self.threads.is_none_or(|threads| threads.get() <= 512),
            "server.threads",
            "must be from 1 to 512",
        );
        check(
            self.public_url.as_ref().is_none_or(PublicUrl::is_origin),
            "server.public_url",
            "must be an origin such as https://api.example.com, without a path: what is served lies at its root",
        );
        if self.bind.port() != 0 && self.bind.port() == self.backoffice_bind.port() {
            let (own, other) = (self.bind.ip(), self.backoffice_bind.ip());
            if own == other || own.is_unspecified() || other.is_unspecified() {
                problems.push((
                    "server.backoffice_bind",
                    format!(
                        "must have another port than `server.bind`, which is {}",
                        self.bind
                    ),
                ));
            }
        }
        problems.extend(self.tls.problem(["server.tls.certificate", "server.tls.key"]));
        let backoffice = ["server.backoffice_tls.certificate", "server.backoffice_tls.key"];
        problems.extend(self.backoffice_tls.problem(backoffice));
        problems
    }

    /// The public origin of a service that listens at `address`.
    pub fn public_url_at(&self, address: SocketAddr) -> String {
        let scheme = if self.tls.files().is_some() {
            "https"
        } else {
            "http"
        };
        let own = || PublicUrl(format!("{scheme}://{}", reachable(address)));
        self.public_url.clone().unwrap_or_else(own).0
    }
}

/// The address at which a listener is reached from its own machine.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => (Ipv4Addr::LOCALHOST, v4.port()).into(),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => (Ipv4Addr::LOCALHOST, v6.port()).into(),
        other => other,
    }
}

const PRODUCT_RULE: &str =
    "must be 1 to 64 ASCII letters, digits, '.', '_' or '-', the first one a letter or a digit";

/// A product of a `User-Agent` (contract: Request headers).
fn is_product(name: &str) -> bool {
    let part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    name.len() <= 64 && name.bytes().all(part) && name.starts_with(|c: char| c.is_ascii_alphanumeric())
}

/// An absolute `http` or `https` address without query and fragment, kept without a trailing slash.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct PublicUrl(String);

impl PublicUrl {
    /// The address, without a trailing slash.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True for a scheme with a host and a port at most.
    fn is_origin(&self) -> bool {
        let place = self.0.split_once("://").map_or("", |(_, place)| place);
        !place.contains('/')
    }
}

impl TryFrom<String> for PublicUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let ServiceUrl(url) = text.try_into()?;
        Ok(Self(url.as_str().trim_end_matches('/').to_owned()))
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for PublicUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}
