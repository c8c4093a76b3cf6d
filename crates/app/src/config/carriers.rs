//! `carriers.*`: the carriers that are asked about parcels. One without credentials is not asked.

use std::sync::Arc;

use adapter_carriers::{
    CarrierSettings, Carriers, DhlSettings, DpdSettings, InpostSettings, OauthSettings, PocztaPolskaSettings,
    SetupError, urls,
};
use adapter_sealing::SystemClock;
use kernel::Clock;
use orders::Carrier;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use url::Url;

use super::values::{Secret, ServiceUrl};
use crate::causes;

/// `carriers.*`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
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

    /// The clients of the carriers that can be asked; none where nobody can.
    pub fn clients(&self, user_agent: String, clock: Arc<dyn Clock>) -> Result<Option<Carriers>, SetupError> {
        let settings = self.settings(user_agent);
        let clients = asks_anybody(&settings).then(|| Carriers::new(&settings, clock));
        clients.transpose()
    }

    /// What the adapter needs to know.
    pub fn settings(&self, user_agent: String) -> CarrierSettings {
        let Self {
            inpost,
            dhl,
            poczta_polska,
            dpd,
            gls,
            ups,
            fedex,
        } = self;
        let asks_inpost = inpost.enabled.unwrap_or(inpost.token.is_some());
        CarrierSettings {
            inpost: asks_inpost.then(|| InpostSettings {
                base_url: url(inpost.base_url.as_ref(), urls::INPOST),
                token: inpost.token.as_ref().map(secret),
            }),
            dhl: dhl.api_key.as_ref().map(|key| DhlSettings {
                base_url: url(dhl.base_url.as_ref(), urls::DHL),
                api_key: secret(key),
                service: Some(dhl.service.clone()).filter(|service| !service.is_empty()),
            }),
            poczta_polska: both(poczta_polska.login.as_ref(), poczta_polska.password.as_ref()).map(
                |(login, password)| PocztaPolskaSettings {
                    base_url: url(poczta_polska.base_url.as_ref(), urls::POCZTA_POLSKA),
                    token_url: url(poczta_polska.token_url.as_ref(), urls::POCZTA_POLSKA_TOKEN),
                    login,
                    password,
                },
            ),
            dpd: both(dpd.login.as_ref(), dpd.password.as_ref()).map(|(login, password)| DpdSettings {
                base_url: url(dpd.base_url.as_ref(), urls::DPD),
                channel: dpd.channel.clone(),
                login,
                password,
            }),
            gls: gls.settings(urls::GLS, urls::GLS_TOKEN),
            ups: ups.settings(urls::UPS, urls::UPS_TOKEN),
            fedex: fedex.settings(urls::FEDEX, urls::FEDEX_TOKEN),
            ..CarrierSettings::none(user_agent)
        }
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

    fn settings(&self, base: &str, token: &str) -> Option<OauthSettings> {
        let (client_id, client_secret) = both(self.client_id.as_ref(), self.client_secret.as_ref())?;
        Some(OauthSettings {
            base_url: url(self.base_url.as_ref(), base),
            token_url: url(self.token_url.as_ref(), token),
            client_id,
            client_secret,
        })
    }
}

fn asks_anybody(settings: &CarrierSettings) -> bool {
    let CarrierSettings {
        inpost,
        dhl,
        poczta_polska,
        dpd,
        gls,
        ups,
        fedex,
        ..
    } = settings;
    inpost.is_some()
        || dhl.is_some()
        || poczta_polska.is_some()
        || dpd.is_some()
        || [gls, ups, fedex].into_iter().any(Option::is_some)
}

/// The address that is configured, else the production service's.
#[expect(
    clippy::expect_used,
    reason = "the production addresses are constants, which a test parses"
)]
fn url(configured: Option<&ServiceUrl>, production: &str) -> Url {
    let production = || Url::parse(production).expect("an address");
    configured.map_or_else(production, |url| url.0.clone())
}

fn secret(secret: &Secret) -> SecretString {
    secret.0.clone()
}

fn both(one: Option<&Secret>, other: Option<&Secret>) -> Option<(SecretString, SecretString)> {
    Some((secret(one?), secret(other?)))
}

fn refused(error: &SetupError) -> (&'static str, String) {
    let key = match error {
        SetupError::Address(carrier) | SetupError::Credentials(carrier) => match carrier {
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
    (key, format!("cannot be used: {}", causes::told(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Secret {
        "k".to_owned().into()
    }

    fn asked(config: &CarriersConfig) -> Vec<Carrier> {
        let clients = config
            .clients("test/1.0".to_owned(), Arc::new(SystemClock))
            .unwrap();
        clients.iter().flat_map(Carriers::asked).collect()
    }

    #[test]
    fn only_carriers_with_credentials_are_asked() {
        let mut config = CarriersConfig::default();
        assert_eq!(asked(&config), []);
        config.inpost.enabled = Some(true);
        config.dhl.api_key = Some(key());
        config.ups.client_id = Some(key());
        assert_eq!(asked(&config), [Carrier::Inpost, Carrier::Dhl]);
        config.inpost = InpostConfig {
            token: Some(key()),
            ..InpostConfig::default()
        };
        assert_eq!(asked(&config), [Carrier::Inpost, Carrier::Dhl]);
    }

    #[test]
    fn every_carrier_can_be_asked_where_it_is_in_production() {
        let client = || ClientConfig {
            client_id: Some(key()),
            client_secret: Some(key()),
            ..ClientConfig::default()
        };
        let mut config = CarriersConfig {
            gls: client(),
            ups: client(),
            fedex: client(),
            ..CarriersConfig::default()
        };
        config.inpost.token = Some(key());
        config.dhl.api_key = Some(key());
        (config.dpd.login, config.dpd.password) = (Some(key()), Some(key()));
        (config.poczta_polska.login, config.poczta_polska.password) = (Some(key()), Some(key()));
        assert_eq!(asked(&config).len(), Carrier::ALL.len() - 1);
        assert_eq!(config.problems(), []);
    }

    #[test]
    fn half_of_a_pair_is_named() {
        let mut config = CarriersConfig::default();
        config.dpd.password = Some(key());
        config.fedex.client_id = Some(key());
        let keys = config
            .problems()
            .into_iter()
            .map(|(key, _)| key)
            .collect::<Vec<_>>();
        assert_eq!(keys, ["carriers.dpd.login", "carriers.fedex.client_secret"]);
    }

    #[test]
    fn a_configured_limit_goes_before_the_usual_one() {
        let mut config = CarriersConfig::default();
        assert_eq!(config.daily_limit(Carrier::Dhl), Some(250));
        assert_eq!(config.daily_limit(Carrier::Gls), Some(500));
        assert_eq!(config.daily_limit(Carrier::Ups), None);
        config.dhl.daily_limit = Some(5_000);
        assert_eq!(config.daily_limit(Carrier::Dhl), Some(5_000));
    }
}
