//! `idempotency.*`, `tracking.*`, `retention.*`, `worker.*`: what goes on beside requests, and how long things are kept.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::Period;

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// `idempotency.*`.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IdempotencyConfig {
    /// How long a request holds its key when the process that runs it dies.
    #[schemars(extend("x-range" = "from 100ms to 1h"))]
    pub lease: Period,
}

impl Default for IdempotencyConfig {
    fn default() -> Self {
        Self {
            lease: Period(Duration::from_mins(1)),
        }
    }
}

impl IdempotencyConfig {
    pub(super) fn problems(&self) -> Vec<(&'static str, String)> {
        let bounds = Duration::from_millis(100)..=HOUR;
        let fine = bounds.contains(&self.lease.0);
        problem(fine, "idempotency.lease", "must be from 100ms to 1h")
            .into_iter()
            .collect()
    }
}

/// `tracking.*`.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrackingConfig {
    /// The shortest time between two questions about a parcel: out for delivery it is asked about after this, while it is
    /// young after twice, later after 6 and 24 times as long.
    #[schemars(extend("x-range" = "from 100ms to 1d"))]
    pub poll_interval: Period,
}

impl Default for TrackingConfig {
    fn default() -> Self {
        Self {
            poll_interval: Period(Duration::from_mins(15)),
        }
    }
}

impl TrackingConfig {
    pub(super) fn problems(&self) -> Vec<(&'static str, String)> {
        let bounds = Duration::from_millis(100)..=DAY;
        let fine = bounds.contains(&self.poll_interval.0);
        problem(fine, "tracking.poll_interval", "must be from 100ms to 1d")
            .into_iter()
            .collect()
    }
}

/// `retention.*`.
#[derive(Debug, Clone, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionConfig {
    /// How long after an order was placed its buyer's personal data are kept. Without it: until they are erased.
    #[schemars(extend("x-range" = "from 1d to 36600d"))]
    pub buyer_data: Option<Period>,
}

impl RetentionConfig {
    pub(super) fn problems(&self) -> Vec<(&'static str, String)> {
        let bounds = DAY..=DAY * 36_600;
        let fine = self.buyer_data.is_none_or(|period| bounds.contains(&period.0));
        problem(fine, "retention.buyer_data", "must be from 1d to 36600d")
            .into_iter()
            .collect()
    }
}

fn problem(fine: bool, key: &'static str, reason: &str) -> Option<(&'static str, String)> {
    (!fine).then(|| (key, reason.to_owned()))
}

/// `worker.*`.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkerConfig {
    /// Where `seller-api worker` answers `/healthz`, `/readyz` and `/metrics`; port 0 takes a free one.
    #[schemars(extend("x-kind" = "an address with its port"))]
    pub bind: SocketAddr,
}

impl Default for WorkerConfig {
    fn default() -> Self {
        Self {
            bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 8082)),
        }
    }
}
