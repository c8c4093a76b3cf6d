//! `webhooks.*`: where deliveries may go, how patiently, and how many at a time.

use std::{
    fs,
    net::{IpAddr, SocketAddr},
    num::NonZeroU16,
    path::PathBuf,
    str::FromStr,
    time::Duration,
};

use adapter_webhook_sender::SenderSettings;
use chrono::TimeDelta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use usecases::deliver_webhooks::Slots;
use webhooks::{AddressPolicy, AddressRules, RetrySchedule};

use super::values::{List, Network, Period};

/// The longest that one attempt may take: a worker's claim on a lane lasts 30 s.
const ATTEMPT_MAX: Duration = Duration::from_secs(20);
/// The longest delay between two attempts.
const DELAY_MAX: Duration = Duration::from_hours(30 * 24);
/// The most attempts at a time: each takes a connection.
const CONCURRENCY_MAX: u16 = 4_096;
/// Where name servers listen (RFC 1035 §4.2).
const DNS_PORT: u16 = 53;

/// `webhooks.*`.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebhooksConfig {
    /// Which receivers deliveries may go to.
    pub addresses: AddressesMode,
    /// Networks that no delivery goes to, whatever `addresses` says.
    pub deny_networks: List<Network>,
    /// How long one attempt may take in all, from the look-up of the name to the status.
    #[schemars(extend("x-range" = "from 100ms to 20s"))]
    pub attempt_timeout: Period,
    /// How long after the end of a failed attempt the next one is due: five of them, so that there are six attempts.
    #[schemars(extend("x-range" = "five, from 1ms to 30d each"))]
    pub retry_delays: List<Period>,
    /// Attempts at a time in one process. Those to receivers that fail take half of them at most.
    #[schemars(extend("x-range" = "from 1 to 4096"))]
    pub concurrency: NonZeroU16,
    /// The servers that receivers' names are asked of: all at once, the first that knows is believed. Without any, the machine's own.
    pub name_servers: List<NameServer>,
    /// A file of certificates (PEM) that are trusted beside the machine's own.
    pub root_certificates: Option<PathBuf>,
}

/// `webhooks.addresses`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AddressesMode {
    /// By https, to the public internet: the contract's rule.
    Public,
    /// By http too, and to private and loopback addresses: for local development alone.
    Any,
}

impl From<AddressesMode> for AddressPolicy {
    fn from(mode: AddressesMode) -> Self {
        match mode {
            AddressesMode::Public => Self::Public,
            AddressesMode::Any => Self::Any,
        }
    }
}

impl Default for WebhooksConfig {
    fn default() -> Self {
        let RetrySchedule(delays) = RetrySchedule::default();
        let period = |delay: TimeDelta| Period(delay.to_std().unwrap_or_default());
        Self {
            addresses: AddressesMode::Public,
            deny_networks: List::default(),
            attempt_timeout: Period(Duration::from_secs(10)),
            retry_delays: List(delays.map(period).into()),
            concurrency: NonZeroU16::MIN.saturating_add(Slots::default().attempts - 1),
            name_servers: List::default(),
            root_certificates: None,
        }
    }
}

impl WebhooksConfig {
    pub(super) fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        let attempt = Duration::from_millis(100)..=ATTEMPT_MAX;
        if !attempt.contains(&self.attempt_timeout.0) {
            problems.push(("webhooks.attempt_timeout", "must be from 100ms to 20s".to_owned()));
        }
        let fits = |delay: &Period| (Duration::from_millis(1)..=DELAY_MAX).contains(&delay.0);
        if self.schedule().is_none() || !self.retry_delays.0.iter().all(fits) {
            let reason = "must be five durations from 1ms to 30d, such as 1m,5m,30m,2h,12h";
            problems.push(("webhooks.retry_delays", reason.to_owned()));
        }
        if self.concurrency.get() > CONCURRENCY_MAX {
            let reason = format!("must be from 1 to {CONCURRENCY_MAX}");
            problems.push(("webhooks.concurrency", reason));
        }
        problems.extend(self.extra_roots().err());
        problems
    }

    /// When failed deliveries are tried again; nothing unless there are five delays.
    fn schedule(&self) -> Option<RetrySchedule> {
        let delays = self.retry_delays.0.iter().copied().map(Period::time_delta);
        let delays: [TimeDelta; 5] = delays.collect::<Vec<_>>().try_into().ok()?;
        Some(RetrySchedule(delays))
    }

    /// When failed deliveries are tried again.
    pub fn retry_schedule(&self) -> RetrySchedule {
        self.schedule().unwrap_or_default()
    }

    /// How much a worker does at once.
    pub fn slots(&self) -> Slots {
        Slots::of(self.concurrency.get())
    }

    /// How deliveries are sent in the name of a service whose documentation is at `docs_url`.
    pub fn sender(
        &self,
        service_name: &str,
        docs_url: &str,
    ) -> Result<SenderSettings, (&'static str, String)> {
        let rules = AddressRules {
            policy: self.addresses.into(),
            deny: self.deny_networks.0.iter().map(|network| network.0).collect(),
        };
        Ok(SenderSettings {
            name_servers: self.name_servers.0.iter().map(|server| server.0).collect(),
            extra_roots: self.extra_roots()?,
            attempt_timeout: self.attempt_timeout.0,
            ..SenderSettings::new(service_name, docs_url, rules)
        })
    }

    fn extra_roots(&self) -> Result<Option<String>, (&'static str, String)> {
        let read = |path: &PathBuf| {
            fs::read_to_string(path).map_err(|error| {
                let reason = format!("names {}, which cannot be read: {error}", path.display());
                ("webhooks.root_certificates", reason)
            })
        };
        self.root_certificates.as_ref().map(read).transpose()
    }
}

/// A name server: an address, with a port where it is not the usual one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct NameServer(pub SocketAddr);

impl TryFrom<String> for NameServer {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let bare = || IpAddr::from_str(&text).map(|address| SocketAddr::new(address, DNS_PORT));
        let server = SocketAddr::from_str(&text).or_else(|_| bare());
        let refusal = |_| format!("`{text}` must be an address such as 10.0.0.2 or 10.0.0.2:5353");
        server.map(Self).map_err(refusal)
    }
}

impl Serialize for NameServer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(config: &WebhooksConfig) -> Vec<&'static str> {
        config.problems().into_iter().map(|(key, _)| key).collect()
    }

    fn seconds(delays: &[u64]) -> List<Period> {
        List(delays.iter().map(|s| Period(Duration::from_secs(*s))).collect())
    }

    #[test]
    fn the_defaults_are_the_contracts() {
        let config = WebhooksConfig::default();
        assert_eq!(keys(&config), [""; 0]);
        assert_eq!(config.retry_schedule(), RetrySchedule::default());
        assert_eq!(config.slots(), Slots::default());
        let sender = config.sender("shop", "https://docs.example").unwrap();
        assert_eq!(sender.rules, AddressRules::default());
        assert_eq!(sender.attempt_timeout, Duration::from_secs(10));
        assert!(sender.name_servers.is_empty() && sender.extra_roots.is_none());
    }

    #[test]
    fn what_is_configured_reaches_the_sender() {
        let config = WebhooksConfig {
            addresses: AddressesMode::Any,
            deny_networks: List(vec![Network::try_from("10.0.0.0/8".to_owned()).unwrap()]),
            attempt_timeout: Period(Duration::from_secs(3)),
            retry_delays: seconds(&[1, 2, 3, 4, 5]),
            name_servers: List(vec![
                NameServer::try_from("10.0.0.2".to_owned()).unwrap(),
                NameServer::try_from("[fd00::1]:5353".to_owned()).unwrap(),
            ]),
            ..WebhooksConfig::default()
        };
        assert_eq!(keys(&config), [""; 0]);
        let sender = config.sender("shop", "https://docs.example").unwrap();
        assert!(sender.rules.vet([127, 0, 0, 1].into()) && !sender.rules.vet([10, 1, 2, 3].into()));
        assert_eq!(sender.attempt_timeout, Duration::from_secs(3));
        let servers = sender.name_servers.iter().map(SocketAddr::to_string);
        assert!(servers.eq(["10.0.0.2:53", "[fd00::1]:5353"]));
        assert_eq!(config.retry_schedule().0[4], TimeDelta::seconds(5));
    }

    #[test]
    fn what_cannot_be_is_told_by_its_key() {
        let wrong = [
            (
                "webhooks.attempt_timeout",
                WebhooksConfig {
                    attempt_timeout: Period(Duration::from_secs(21)),
                    ..WebhooksConfig::default()
                },
            ),
            (
                "webhooks.retry_delays",
                WebhooksConfig {
                    retry_delays: seconds(&[1, 1, 1, 1]),
                    ..WebhooksConfig::default()
                },
            ),
            (
                "webhooks.retry_delays",
                WebhooksConfig {
                    retry_delays: seconds(&[1, 1, 1, 1, 0]),
                    ..WebhooksConfig::default()
                },
            ),
            (
                "webhooks.concurrency",
                WebhooksConfig {
                    concurrency: NonZeroU16::MAX,
                    ..WebhooksConfig::default()
                },
            ),
            (
                "webhooks.root_certificates",
                WebhooksConfig {
                    root_certificates: Some("/nowhere/at/all.pem".into()),
                    ..WebhooksConfig::default()
                },
            ),
        ];
        for (key, config) in wrong {
            assert_eq!(keys(&config), [key]);
        }
    }
}
