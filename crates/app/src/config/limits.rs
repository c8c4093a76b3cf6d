//! `oauth.*` and `rate_limit.*`: lifetimes and limits, the contract's by default.

use std::{num::NonZeroU32, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use super::values::Period;

/// The highest limit that an application can have, in requests a minute.
const RATE_LIMIT_MAX: u32 = 10_000_000;

/// `oauth.*`.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OauthConfig {
    /// How long an access token lives.
    #[schemars(extend("x-range" = "from 1s to 366d"))]
    pub access_token_ttl: Period,
    /// How long a refresh token lives.
    #[schemars(extend("x-range" = "from 1s to 366d"))]
    pub refresh_token_ttl: Period,
    /// How long an authorization code lives.
    #[schemars(extend("x-range" = "from 1s to 366d"))]
    pub code_ttl: Period,
    /// Calls a minute of `/oauth/token` and `/oauth/revoke` from one address.
    #[schemars(extend("x-range" = "from 1 to 10000000"))]
    pub token_limit_per_ip: u32,
    /// Authenticated calls a minute of `/oauth/token` and `/oauth/revoke` by one client.
    #[schemars(extend("x-range" = "from 1 to 10000000"))]
    pub token_limit_per_client: u32,
    /// Calls a minute of `/oauth/authorize` from one address.
    #[schemars(extend("x-range" = "from 1 to 10000000"))]
    pub authorize_limit_per_ip: u32,
}

impl Default for OauthConfig {
    fn default() -> Self {
        Self {
            access_token_ttl: Period(Duration::from_hours(12)),
            refresh_token_ttl: Period(Duration::from_hours(90 * 24)),
            code_ttl: Period(Duration::from_mins(10)),
            token_limit_per_ip: 30,
            token_limit_per_client: 60,
            authorize_limit_per_ip: 60,
        }
    }
}

impl OauthConfig {
    pub(super) fn problems(&self) -> Vec<(&'static str, String)> {
        let lifetimes = [
            ("oauth.access_token_ttl", self.access_token_ttl),
            ("oauth.refresh_token_ttl", self.refresh_token_ttl),
            ("oauth.code_ttl", self.code_ttl),
        ];
        let limits = [
            ("oauth.token_limit_per_ip", self.token_limit_per_ip),
            ("oauth.token_limit_per_client", self.token_limit_per_client),
            ("oauth.authorize_limit_per_ip", self.authorize_limit_per_ip),
        ];
        let longest = Duration::from_hours(366 * 24);
        let lifetimes = lifetimes
            .into_iter()
            .filter(|(_, period)| !(Duration::from_secs(1)..=longest).contains(&period.0))
            .map(|(key, _)| (key, "must be from 1s to 366d".to_owned()));
        let limits = limits
            .into_iter()
            .filter(|(_, limit)| !(1..=RATE_LIMIT_MAX).contains(limit))
            .map(|(key, _)| (key, format!("must be from 1 to {RATE_LIMIT_MAX}")));
        lifetimes.chain(limits).collect()
    }
}

/// `rate_limit.*`.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RateLimitConfig {
    /// Requests a minute on `/v1` of an application that has no limit of its own.
    #[schemars(extend("x-range" = "from 1 to 10000000"))]
    #[serde(deserialize_with = "limit")]
    pub default: NonZeroU32,
}

impl Default for RateLimitConfig {
    fn default() -> Self {
        Self {
            default: NonZeroU32::MIN.saturating_add(599),
        }
    }
}

impl RateLimitConfig {
    pub(super) fn problems(&self) -> Vec<(&'static str, String)> {
        if self.default.get() <= RATE_LIMIT_MAX {
            return Vec::new();
        }
        vec![("rate_limit.default", limit_rule())]
    }
}

fn limit_rule() -> String {
    format!("must be from 1 to {RATE_LIMIT_MAX}")
}

/// A number from 1 on; the type's own complaint would name the type instead of the rule.
fn limit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<NonZeroU32, D::Error> {
    let given = NonZeroU32::deserialize(deserializer);
    given.map_err(|_| D::Error::custom(limit_rule()))
}
