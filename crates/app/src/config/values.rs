//! The types of configuration values. Each is parsed from a text and displayed as one.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ipnet::IpNet;
use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use url::Url;
use web::TrustedProxies;

const PERIOD: &str = "a duration such as 500ms, 1m or 12h";

/// A duration, written `500ms`, `1m`, `12h`, `90d`, or several of them in a row (`1h 30m`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("x-kind" = "duration", "x-expected" = PERIOD))]
pub struct Period(pub Duration);

impl Period {
    /// Clamped to about 290 000 years.
    pub fn time_delta(self) -> chrono::TimeDelta {
        chrono::TimeDelta::from_std(self.0).unwrap_or(chrono::TimeDelta::MAX)
    }
}

impl TryFrom<String> for Period {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let read = humantime::parse_duration(&text);
        read.map(Self)
            .map_err(|reason| format!("must be {PERIOD} ({reason})"))
    }
}

impl fmt::Display for Period {
    /// Days at most: humantime would also use months.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let days = self.0.as_secs() / 86_400;
        let rest = self.0.saturating_sub(Duration::from_hours(24 * days));
        match (days, rest) {
            (0, _) => humantime::format_duration(rest).fmt(f),
            (_, Duration::ZERO) => write!(f, "{days}d"),
            _ => write!(f, "{days}d {}", humantime::format_duration(rest)),
        }
    }
}

impl From<Period> for String {
    fn from(period: Period) -> Self {
        period.to_string()
    }
}

/// A text that is never shown.
#[derive(Clone, JsonSchema)]
#[schemars(inline, extend("x-kind" = "secret text", "writeOnly" = true))]
pub struct Secret(#[schemars(with = "String")] pub SecretString);

impl Secret {
    /// The secret in clear text.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl<'de> Deserialize<'de> for Secret {
    /// An empty variable is no secret.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.is_empty() {
            return Err(D::Error::custom("must not be empty: leave it out"));
        }
        Ok(text.into())
    }
}

const HIDDEN: &str = "(hidden)";

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(HIDDEN)
    }
}

const LISTEN_ADDRESS: &str = "an address with a port such as 127.0.0.1:8080";

/// An address at which a listener is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(try_from = "String")]
#[schemars(inline, extend("x-kind" = "an address with its port", "x-expected" = LISTEN_ADDRESS))]
pub struct ListenAddress(pub SocketAddr);

impl TryFrom<String> for ListenAddress {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let address = text.parse();
        address.map(Self).map_err(|_| format!("must be {LISTEN_ADDRESS}"))
    }
}

/// A network as `10.0.0.0/8`, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(try_from = "String")]
#[schemars(inline, extend("x-kind" = "address or network"))]
pub struct Network(#[schemars(with = "String")] pub IpNet);

impl TryFrom<String> for Network {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let network = TrustedProxies::parse_range(&text);
        network.map(|network| Self(network.trunc())).map_err(|_| {
            format!("`{text}` must be an address such as 10.1.2.3 or a network such as 10.0.0.0/8")
        })
    }
}

/// A name server: an address, with a port where it is not 53.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(try_from = "String")]
#[schemars(inline, extend("x-kind" = "address, with a port where it is not 53"))]
pub struct NameServer(#[schemars(with = "String")] pub SocketAddr);

impl TryFrom<String> for NameServer {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let bare = |_| text.parse().map(|address: IpAddr| SocketAddr::new(address, 53));
        let server = text.parse().or_else(bare).ok();
        let server = server.filter(|server: &SocketAddr| server.port() != 0);
        server
            .map(Self)
            .ok_or_else(|| format!("`{text}` must be an address such as 10.0.0.2 or 10.0.0.2:5353"))
    }
}

/// The URL of a service: absolute, `http` or `https`, without user information, query and fragment.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("x-kind" = "URL"))]
pub struct ServiceUrl(pub Url);

impl ServiceUrl {
    /// The URL without trailing slashes.
    pub fn base(&self) -> &str {
        self.0.as_str().trim_end_matches('/')
    }

    /// True for a scheme and a host with an optional port.
    pub(super) fn is_origin(&self) -> bool {
        self.0.path().trim_end_matches('/').is_empty()
    }
}

impl TryFrom<String> for ServiceUrl {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let is_service = |url: &Url| {
            let anonymous = url.username().is_empty() && url.password().is_none();
            let bare = url.query().is_none() && url.fragment().is_none();
            matches!(url.scheme(), "http" | "https") && url.has_host() && bare && anonymous
        };
        let url = Url::parse(&text).ok().filter(is_service);
        url.map(Self)
            .ok_or("must be an address such as https://api.example.com, without query and fragment")
    }
}

impl From<ServiceUrl> for String {
    fn from(url: ServiceUrl) -> Self {
        if url.is_origin() {
            url.base().to_owned()
        } else {
            url.0.into()
        }
    }
}
