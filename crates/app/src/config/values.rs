//! The types of configuration values. Each is parsed from a text and displayed as one.

use std::{
    fmt,
    marker::PhantomData,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use ipnet::IpNet;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, IntoDeserializer, SeqAccess, Visitor, value::SeqAccessDeserializer},
};
use url::Url;
use web::TrustedProxies;

/// A duration, written `500ms`, `1m`, `12h`, `90d`, or several of them in a row (`1h 30m`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("x-kind" = "duration"))]
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
            .map_err(|reason| format!("must be a duration such as 500ms, 1m or 12h ({reason})"))
    }
}

/// The units of a displayed duration, in nanoseconds; humantime's formatter would also use months.
const UNITS: [(&str, u128); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.0.as_nanos();
        let mut parts = Vec::new();
        for (unit, nanoseconds) in UNITS {
            if left >= nanoseconds {
                parts.push(format!("{}{unit}", left / nanoseconds));
            }
            left %= nanoseconds;
        }
        f.write_str(
            if parts.is_empty() {
                "0s".to_owned()
            } else {
                parts.join(" ")
            }
            .as_str(),
        )
    }
}

impl From<Period> for String {
    fn from(period: Period) -> Self {
        period.to_string()
    }
}

/// A text that is never shown.
#[derive(Clone, JsonSchema, Deserialize)]
#[serde(from = "String")]
#[schemars(inline, extend("x-kind" = "secret text"))]
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

/// A network as `10.0.0.0/8`, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("x-kind" = "address or network"))]
pub struct Network(pub IpNet);

impl TryFrom<String> for Network {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let network = TrustedProxies::parse_range(&text);
        network.map(|network| Self(network.trunc())).map_err(|_| {
            format!("`{text}` must be an address such as 10.1.2.3 or a network such as 10.0.0.0/8")
        })
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        network.0.to_string()
    }
}

/// A name server: an address, with a port where it is not 53.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("x-kind" = "address, with a port where it is not 53"))]
pub struct NameServer(pub SocketAddr);

impl TryFrom<String> for NameServer {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let bare = |_| text.parse().map(|address: IpAddr| SocketAddr::new(address, 53));
        let server = text.parse().or_else(bare);
        server
            .map(Self)
            .map_err(|_| format!("`{text}` must be an address such as 10.0.0.2 or 10.0.0.2:5353"))
    }
}

impl From<NameServer> for String {
    fn from(server: NameServer) -> Self {
        server.0.to_string()
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

/// A list: an array in TOML, comma-separated in the environment, where an empty text is an empty list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct List<T>(pub Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor(PhantomData))
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = List<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list (an array in TOML, separated by commas in the environment)")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<List<T>, E> {
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        let items = items.map(|item| T::deserialize(item.to_owned().into_deserializer()));
        items.collect::<Result<_, _>>().map(List)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<List<T>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(items)).map(List)
    }
}

impl<T: JsonSchema> JsonSchema for List<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("List_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let of = generator.subschema_for::<T>();
        let of = of.get("x-kind").and_then(|kind| kind.as_str()).unwrap_or("text");
        json_schema!({ "type": "array", "x-kind": format!("list: {of}") })
    }
}
