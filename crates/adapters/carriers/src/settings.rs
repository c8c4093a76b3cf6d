//! The URL and the credentials of each carrier.

use std::time::Duration;

use orders::Carrier;
use secrecy::SecretString;
use url::Url;

/// Deadline of one look-up, fetching a token included (contract: Shipments).
pub const DEADLINE: Duration = Duration::from_millis(2_500);

#[derive(Debug, Clone)]
pub struct CarrierSettings {
    /// Deadline of one look-up: [`DEADLINE`], except in tests.
    pub deadline: Duration,
    pub user_agent: String,
    /// Carriers without an account are not queried.
    pub accounts: Vec<Account>,
}

/// An account with a carrier.
#[derive(Debug, Clone)]
pub struct Account {
    pub carrier: Carrier,
    /// Clients append their path. The URL may have a path already, for a proxy.
    pub base_url: Url,
    /// The complete URL of the token endpoint. Only Poczta Polska, GLS, UPS and `FedEx` have one.
    pub token_url: Url,
    /// The login or client id. Not used for `InPost` and DHL.
    pub login: SecretString,
    /// The password, client secret or key. Empty for `InPost` without authentication.
    pub secret: SecretString,
    /// The DHL service to search (`parcel-pl`, `express`): without one, DHL may find another shipment with
    /// the same number. For DPD, the channel. May be empty.
    pub qualifier: String,
}

impl Account {
    /// An account at the carrier's production service; `None` for carriers other than the seven.
    pub fn new(carrier: Carrier, login: SecretString, secret: SecretString) -> Option<Self> {
        let (base_url, token_path) = match carrier {
            Carrier::Inpost => ("https://api-shipx-pl.easypack24.net/", ""),
            Carrier::Dhl => ("https://api-eu.dhl.com/", ""),
            Carrier::PocztaPolska => ("https://uss.poczta-polska.pl/", "uss/v2.0/tracking/login"),
            Carrier::Dpd => ("https://dpdinfoservices.dpd.com.pl/", ""),
            Carrier::Gls => ("https://api.gls-group.net/", "oauth2/v2/token"),
            Carrier::Ups => ("https://onlinetools.ups.com/", "security/v1/oauth/token"),
            Carrier::Fedex => ("https://apis.fedex.com/", "oauth/token"),
            Carrier::Other => return None,
        };
        let base_url = Url::parse(base_url).ok()?;
        Some(Self {
            carrier,
            token_url: base_url.join(token_path).ok()?,
            base_url,
            login,
            secret,
            qualifier: String::new(),
        })
    }
}
