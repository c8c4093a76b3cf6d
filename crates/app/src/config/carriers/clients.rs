//! From configuration to clients: who can be asked, and where.

use std::sync::Arc;

use adapter_carriers::{
    CarrierSettings, Carriers, DhlSettings, DpdSettings, InpostSettings, OauthSettings, PocztaPolskaSettings,
    SetupError, urls,
};
use kernel::Clock;
use secrecy::SecretString;
use url::Url;

use super::{CarriersConfig, ClientConfig};
use crate::config::values::{Secret, ServiceUrl};

impl CarriersConfig {
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
}

impl ClientConfig {
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
