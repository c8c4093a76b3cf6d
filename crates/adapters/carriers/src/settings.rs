//! Where each carrier is asked, and with which credentials.

use std::time::Duration;

use secrecy::SecretString;
use url::Url;

/// Deadline of a look-up within a seller's request, fetching a token included (contract: Shipments).
pub const DEADLINE: Duration = Duration::from_millis(2_500);

/// The carriers' production services. Clients append their path to the base URL, which may have one itself, for a proxy. Token
/// URLs are complete.
pub mod urls {
    pub const INPOST: &str = "https://api-shipx-pl.easypack24.net/";
    pub const DHL: &str = "https://api-eu.dhl.com/";
    pub const POCZTA_POLSKA: &str = "https://uss.poczta-polska.pl/";
    pub const POCZTA_POLSKA_TOKEN: &str = "https://uss.poczta-polska.pl/uss/v2.0/tracking/login";
    pub const DPD: &str = "https://dpdinfoservices.dpd.com.pl/";
    pub const GLS: &str = "https://api.gls-group.net/";
    pub const GLS_TOKEN: &str = "https://api.gls-group.net/oauth2/v2/token";
    pub const UPS: &str = "https://onlinetools.ups.com/";
    pub const UPS_TOKEN: &str = "https://onlinetools.ups.com/security/v1/oauth/token";
    pub const FEDEX: &str = "https://apis.fedex.com/";
    pub const FEDEX_TOKEN: &str = "https://apis.fedex.com/oauth/token";
}

/// A carrier without settings is not asked.
#[derive(Debug, Clone)]
pub struct CarrierSettings {
    /// [`DEADLINE`] within a seller's request.
    pub deadline: Duration,
    pub user_agent: String,
    pub inpost: Option<InpostSettings>,
    pub dhl: Option<DhlSettings>,
    pub poczta_polska: Option<PocztaPolskaSettings>,
    pub dpd: Option<DpdSettings>,
    pub gls: Option<OauthSettings>,
    pub ups: Option<OauthSettings>,
    pub fedex: Option<OauthSettings>,
}

impl CarrierSettings {
    pub fn none(user_agent: impl Into<String>) -> Self {
        Self {
            deadline: DEADLINE,
            user_agent: user_agent.into(),
            inpost: None,
            dhl: None,
            poczta_polska: None,
            dpd: None,
            gls: None,
            ups: None,
            fedex: None,
        }
    }
}

#[derive(Debug, Clone)]
pub struct InpostSettings {
    pub base_url: Url,
    /// Optional: the service answers without a token.
    pub token: Option<SecretString>,
}

#[derive(Debug, Clone)]
pub struct DhlSettings {
    pub base_url: Url,
    pub api_key: SecretString,
    /// The DHL service to search: `parcel-pl`, `express`. Without it, another shipment with the same number may be found.
    pub service: Option<String>,
}

#[derive(Debug, Clone)]
pub struct PocztaPolskaSettings {
    pub base_url: Url,
    pub token_url: Url,
    pub login: SecretString,
    /// In the form in which the service takes it.
    pub password: SecretString,
}

#[derive(Debug, Clone)]
pub struct DpdSettings {
    pub base_url: Url,
    /// May be empty.
    pub channel: String,
    pub login: SecretString,
    pub password: SecretString,
}

/// GLS, UPS and `FedEx`, which use OAuth client credentials.
#[derive(Debug, Clone)]
pub struct OauthSettings {
    pub base_url: Url,
    pub token_url: Url,
    pub client_id: SecretString,
    pub client_secret: SecretString,
}
