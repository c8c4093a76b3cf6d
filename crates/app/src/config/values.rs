//! The kinds of value that configuration keys have, each read from a text or from TOML's own types.

use std::{fmt, marker::PhantomData, net::IpAddr, str::FromStr, time::Duration};

use ipnet::IpNet;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, IntoDeserializer, SeqAccess, Visitor},
};
use url::Url;

/// What a secret is shown as.
pub(crate) const HIDDEN: &str = "(hidden)";

/// A duration, written `500ms`, `1m`, `12h`, `90d`, or several of them in a row (`1h 30m`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Period(pub Duration);

impl Period {
    /// The duration as the database and tokens count it; at most about 290 000 years.
    pub fn time_delta(self) -> chrono::TimeDelta {
        chrono::TimeDelta::from_std(self.0).unwrap_or(chrono::TimeDelta::MAX)
    }
}

const DURATION: &str = "a duration such as 500ms, 1m or 12h";

impl TryFrom<&str> for Period {
    type Error = String;

    fn try_from(text: &str) -> Result<Self, String> {
        let read = humantime::parse_duration(text);
        read.map(Self)
            .map_err(|reason| format!("must be {DURATION} ({reason})"))
    }
}

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(PeriodVisitor)
    }
}

/// Says of a number without a unit what it should be.
struct PeriodVisitor;

impl Visitor<'_> for PeriodVisitor {
    type Value = Period;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(DURATION)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Period, E> {
        Period::try_from(text).map_err(E::custom)
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.0.as_nanos();
        let mut separator = "";
        for (unit, nanoseconds) in UNITS {
            if left >= nanoseconds {
                write!(f, "{separator}{}{unit}", left / nanoseconds)?;
                separator = " ";
            }
            left %= nanoseconds;
        }
        if separator.is_empty() {
            f.write_str("0s")
        } else {
            Ok(())
        }
    }
}

/// The units that a duration is shown in, in nanoseconds. Months and years, which have no fixed length, are not among them.
const UNITS: [(&str, u128); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

impl Serialize for Period {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A text that is never shown.
#[derive(Clone, Deserialize)]
#[serde(from = "String")]
pub struct Secret(pub SecretString);

impl Secret {
    /// The secret in clear.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Network(pub IpNet);

impl TryFrom<String> for Network {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let address = IpAddr::from_str(&text).map(IpNet::from);
        let network = address.or_else(|_| IpNet::from_str(&text));
        let refusal =
            |_| format!("`{text}` must be an address such as 10.1.2.3 or a network such as 10.0.0.0/8");
        network.map(|network| Self(network.trunc())).map_err(refusal)
    }
}

impl Serialize for Network {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// The address of a service: absolute, `http` or `https`, without user information, query and fragment.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ServiceUrl(pub Url);

impl TryFrom<String> for ServiceUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let is_service = |url: &Url| {
            let anonymous = url.username().is_empty() && url.password().is_none();
            let bare = url.query().is_none() && url.fragment().is_none();
            matches!(url.scheme(), "http" | "https") && url.has_host() && bare && anonymous
        };
        let url = Url::parse(&text).ok().filter(is_service);
        url.map(Self).ok_or_else(|| {
            "must be an address such as https://api.example.com, without query and fragment".to_owned()
        })
    }
}

impl Serialize for ServiceUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// A list: an array in TOML, separated by commas in the environment, where an empty text is an empty list.
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
        items
            .map(|item| T::deserialize(item.to_owned().into_deserializer()))
            .collect::<Result<_, _>>()
            .map(List)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<List<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(List(list))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_reads_back_as_it_is_shown() {
        for text in [
            "90d",
            "12h",
            "1m 15s",
            "500ms",
            "1s 500ms",
            "1d 1h 1m 1s 1ms 1us 1ns",
            "0s",
        ] {
            let period = Period::try_from(text).unwrap();
            assert_eq!(period.to_string(), text);
        }
    }
}
