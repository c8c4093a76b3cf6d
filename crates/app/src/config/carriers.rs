//! `carriers.*`: the carriers that are asked about parcels. One without credentials is not asked.

mod clients;

use std::sync::Arc;

use adapter_carriers::SetupError;
use adapter_sealing::SystemClock;
use orders::Carrier;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::{Secret, ServiceUrl};
use crate::error_chain;

/// `carriers.*`.
#[derive(Debug, Clone, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CarriersConfig {
    /// `InPost`.
    pub inpost: InpostConfig,
    /// DHL.
    pub dhl: DhlConfig,
    /// Poczta Polska.
    pub poczta_polska: PocztaPolskaConfig,
    /// DPD.
    pub dpd: DpdConfig,
    /// GLS.
    pub gls: ClientConfig,
    /// UPS.
    pub ups: ClientConfig,
    /// `FedEx`.
    pub fedex: ClientConfig,
}

/// `carriers.inpost.*`.
#[derive(Debug, Clone, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InpostConfig {
    /// Whether `InPost` is asked, which it can be without a token. Without it: where there is a token.
    pub enabled: Option<bool>,
    /// The organisation's token.
    pub token: Option<Secret>,
    /// Where the service is. Without it: the production service.
    pub base_url: Option<ServiceUrl>,
    /// Questions a day that the account allows. Without it: no limit is known.
    pub daily_limit: Option<u32>,
}

/// `carriers.dhl.*`.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DhlConfig {
    /// The key of the application at DHL.
    pub api_key: Option<Secret>,
    /// Which of DHL's services is searched, such as `parcel-pl` or `express`; empty for all, where another shipment that
    /// happens to have the same number may be found.
    pub service: String,
    /// Where the service is. Without it: the production service.
    pub base_url: Option<ServiceUrl>,
    /// Questions a day that the account allows. Without it: 250, what DHL allows at first.
    pub daily_limit: Option<u32>,
}

impl Default for DhlConfig {
    fn default() -> Self {
        Self {
            api_key: None,
            service: "parcel-pl".to_owned(),
            base_url: None,
            daily_limit: None,
        }
    }
}

/// `carriers.poczta_polska.*`.
#[derive(Debug, Clone, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PocztaPolskaConfig {
    /// The login that Poczta Polska gave.
    pub login: Option<Secret>,
    /// The password, in the form in which the service takes it.
    pub password: Option<Secret>,
    /// Where the service is. Without it: the production service.
    pub base_url: Option<ServiceUrl>,
    /// Where tokens are had. Without it: the production service.
    pub token_url: Option<ServiceUrl>,
    /// Questions a day that the account allows. Without it: no limit is known.
    pub daily_limit: Option<u32>,
}

/// `carriers.dpd.*`.
#[derive(Debug, Clone, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DpdConfig {
    /// The channel that DPD gave; may be empty.
    pub channel: String,
    /// The login that DPD gave.
    pub login: Option<Secret>,
    /// Its password.
    pub password: Option<Secret>,
    /// Where the service is. Without it: the production service.
    pub base_url: Option<ServiceUrl>,
    /// Questions a day that the account allows. Without it: no limit is known.
    pub daily_limit: Option<u32>,
}

/// `carriers.gls.*`, `carriers.ups.*`, `carriers.fedex.*`.
#[derive(Debug, Clone, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClientConfig {
    /// The client's id.
    pub client_id: Option<Secret>,
    /// The client's secret.
    pub client_secret: Option<Secret>,
    /// Where the service is. Without it: the production service.
    pub base_url: Option<ServiceUrl>,
    /// Where tokens are had. Without it: the production service.
    pub token_url: Option<ServiceUrl>,
    /// Questions a day that the account allows. Without it: 500 with GLS, else no limit is known.
    pub daily_limit: Option<u32>,
}

/// What carriers allow an account that has agreed on nothing else, in questions a day.
const fn usual_limit(carrier: Carrier) -> Option<u32> {
    match carrier {
        Carrier::Dhl => Some(250),
        Carrier::Gls => Some(500),
        _ => None,
    }
}

impl CarriersConfig {
    pub(super) fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        let (poczta, dpd) = (&self.poczta_polska, &self.dpd);
        let pairs = [
            (
                ["carriers.poczta_polska.login", "carriers.poczta_polska.password"],
                [&poczta.login, &poczta.password],
            ),
            (
                ["carriers.dpd.login", "carriers.dpd.password"],
                [&dpd.login, &dpd.password],
            ),
            (
                ["carriers.gls.client_id", "carriers.gls.client_secret"],
                self.gls.pair(),
            ),
            (
                ["carriers.ups.client_id", "carriers.ups.client_secret"],
                self.ups.pair(),
            ),
            (
                ["carriers.fedex.client_id", "carriers.fedex.client_secret"],
                self.fedex.pair(),
            ),
        ];
        for ([one, other], values) in pairs {
            match values {
                [Some(_), None] => problems.push((other, format!("must be set where {one} is"))),
                [None, Some(_)] => problems.push((one, format!("must be set where {other} is"))),
                _ => {}
            }
        }
        if let (Some(false), Some(_)) = (self.inpost.enabled, &self.inpost.token) {
            problems.push((
                "carriers.inpost.enabled",
                "must not be false beside carriers.inpost.token".to_owned(),
            ));
        }
        if problems.is_empty() {
            let clients = self.clients(String::new(), Arc::new(SystemClock));
            problems.extend(clients.err().map(|error| refused(&error)));
        }
        problems
    }

    /// Questions a day that a carrier allows; none where no limit is known.
    pub fn daily_limit(&self, carrier: Carrier) -> Option<u32> {
        let configured = match carrier {
            Carrier::Inpost => self.inpost.daily_limit,
            Carrier::Dhl => self.dhl.daily_limit,
            Carrier::PocztaPolska => self.poczta_polska.daily_limit,
            Carrier::Dpd => self.dpd.daily_limit,
            Carrier::Gls => self.gls.daily_limit,
            Carrier::Ups => self.ups.daily_limit,
            Carrier::Fedex => self.fedex.daily_limit,
            Carrier::Other => None,
        };
        configured.or(usual_limit(carrier))
    }
}

impl ClientConfig {
    const fn pair(&self) -> [&Option<Secret>; 2] {
        [&self.client_id, &self.client_secret]
    }
}

fn refused(error: &SetupError) -> (&'static str, String) {
    let key = match error {
        SetupError::Credentials(carrier) => match carrier {
            Carrier::Inpost => "carriers.inpost",
            Carrier::Dhl => "carriers.dhl",
            Carrier::PocztaPolska => "carriers.poczta_polska",
            Carrier::Dpd => "carriers.dpd",
            Carrier::Gls => "carriers.gls",
            Carrier::Ups => "carriers.ups",
            Carrier::Fedex => "carriers.fedex",
            Carrier::Other => "carriers",
        },
        SetupError::Http(_) => "carriers",
    };
    (key, format!("cannot be used: {}", error_chain::describe(error)))
}

#[cfg(test)]
mod tests;
