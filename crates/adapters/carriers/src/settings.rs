//! What the clients need to know: where each carrier is asked, and with which credentials.

use std::time::Duration;

use secrecy::SecretString;
use url::Url;

/// How long a look-up within a seller's request may take in all, getting a token included (contract: Shipments).
pub const DEADLINE: Duration = Duration::from_millis(2_500);

/// Where the carriers' production services are. The address of a service is scheme and host; the rest of the path belongs
/// to the client, which keeps a path that a proxy in front of the carrier may need. The address of a token is whole.
pub mod urls {
    /// `ShipX` of `InPost`.
    pub const INPOST: &str = "https://api-shipx-pl.easypack24.net/";
    /// DHL Shipment Tracking – Unified.
    pub const DHL: &str = "https://api-eu.dhl.com/";
    /// Poczta Polska USS.
    pub const POCZTA_POLSKA: &str = "https://uss.poczta-polska.pl/";
    /// Where Poczta Polska gives tokens.
    pub const POCZTA_POLSKA_TOKEN: &str = "https://uss.poczta-polska.pl/uss/v2.0/tracking/login";
    /// DPD Polska `InfoServices`.
    pub const DPD: &str = "https://dpdinfoservices.dpd.com.pl/";
    /// GLS Track & Trace.
    pub const GLS: &str = "https://api.gls-group.net/";
    /// Where GLS gives tokens.
    pub const GLS_TOKEN: &str = "https://api.gls-group.net/oauth2/v2/token";
    /// UPS Tracking.
    pub const UPS: &str = "https://onlinetools.ups.com/";
    /// Where UPS gives tokens.
    pub const UPS_TOKEN: &str = "https://onlinetools.ups.com/security/v1/oauth/token";
    /// `FedEx` Track.
    pub const FEDEX: &str = "https://apis.fedex.com/";
    /// Where `FedEx` gives tokens.
    pub const FEDEX_TOKEN: &str = "https://apis.fedex.com/oauth/token";
}

/// Which carriers are asked, and how. A carrier without settings is not asked.
#[derive(Debug, Clone)]
pub struct CarrierSettings {
    /// How long one look-up may take in all; [`DEADLINE`] within a seller's request.
    pub deadline: Duration,
    /// The `User-Agent` that carriers see.
    pub user_agent: String,
    /// `InPost`.
    pub inpost: Option<InpostSettings>,
    /// DHL.
    pub dhl: Option<DhlSettings>,
    /// Poczta Polska.
    pub poczta_polska: Option<PocztaPolskaSettings>,
    /// DPD.
    pub dpd: Option<DpdSettings>,
    /// GLS.
    pub gls: Option<OauthSettings>,
    /// UPS.
    pub ups: Option<OauthSettings>,
    /// `FedEx`.
    pub fedex: Option<OauthSettings>,
}

impl CarrierSettings {
    /// Settings with which no carrier is asked.
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

/// How `InPost` is asked.
#[derive(Debug, Clone)]
pub struct InpostSettings {
    /// Where; [`urls::INPOST`] in production.
    pub base_url: Url,
    /// The organisation's token. Tracking answers without one.
    pub token: Option<SecretString>,
}

/// How DHL is asked.
#[derive(Debug, Clone)]
pub struct DhlSettings {
    /// Where; [`urls::DHL`] in production.
    pub base_url: Url,
    /// The key of the application at DHL.
    pub api_key: SecretString,
    /// Which of DHL's services is searched: `parcel-pl`, `express`. Without one, another shipment that happens to have the
    /// same number may be found.
    pub service: Option<String>,
}

/// How Poczta Polska is asked.
#[derive(Debug, Clone)]
pub struct PocztaPolskaSettings {
    /// Where; [`urls::POCZTA_POLSKA`] in production.
    pub base_url: Url,
    /// Where tokens are had; [`urls::POCZTA_POLSKA_TOKEN`] in production.
    pub token_url: Url,
    /// The login that Poczta Polska gave.
    pub login: SecretString,
    /// The password, in the form in which the service takes it.
    pub password: SecretString,
}

/// How DPD is asked.
#[derive(Debug, Clone)]
pub struct DpdSettings {
    /// Where; [`urls::DPD`] in production.
    pub base_url: Url,
    /// The channel that DPD gave; may be empty.
    pub channel: String,
    /// The login that DPD gave.
    pub login: SecretString,
    /// Its password.
    pub password: SecretString,
}

/// How a carrier with OAuth client credentials is asked: GLS, UPS, `FedEx`.
#[derive(Debug, Clone)]
pub struct OauthSettings {
    /// Where; [`urls::GLS`], [`urls::UPS`], [`urls::FEDEX`] in production.
    pub base_url: Url,
    /// Where tokens are had; [`urls::GLS_TOKEN`], [`urls::UPS_TOKEN`], [`urls::FEDEX_TOKEN`] in production.
    pub token_url: Url,
    /// The client's id.
    pub client_id: SecretString,
    /// The client's secret.
    pub client_secret: SecretString,
}
