//! The configured carriers behind one port.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use kernel::Clock;
use orders::{Carrier, CarrierLookup, Lookup, TrackingNumber};
use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, HeaderName};
use secrecy::ExposeSecret as _;

use crate::CarrierSettings;
use crate::apis::Api;
use crate::apis::dhl::Dhl;
use crate::apis::dpd::Dpd;
use crate::apis::fedex::Fedex;
use crate::apis::gls::Gls;
use crate::apis::inpost::Inpost;
use crate::apis::poczta_polska::{self, PocztaPolska};
use crate::apis::ups::Ups;
use crate::client::{Auth, CarrierClient};
use crate::http::{Http, Response, secret_header};
use crate::oauth;
use crate::tokens::{ReadToken, TokenCache};

/// The clients of the configured carriers.
pub struct Carriers {
    clients: Arc<BTreeMap<Carrier, CarrierClient>>,
    is_patient: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// For example, the machine has no root certificates.
    #[error("the HTTP client for carriers could not be set up")]
    Http(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the credentials of {} contain characters that a header cannot carry", .0.as_str())]
    Credentials(Carrier),
}

impl Carriers {
    /// Creates clients for the carriers that have an account. `clock` is used for pauses and the age of
    /// tokens.
    pub fn new(settings: &CarrierSettings, clock: Arc<dyn Clock>) -> Result<Self, SetupError> {
        let mut clients = BTreeMap::new();
        if settings.accounts.is_empty() {
            return Ok(Self::of(clients));
        }
        let started = clock.now();
        let http = Http::new(settings, clock).map_err(SetupError::Http)?;
        for account in &settings.accounts {
            let carrier = account.carrier;
            let key = |prefix| secret_header(carrier, prefix, &account.secret);
            let token = |name, request, read: ReadToken| {
                Auth::Token(name, TokenCache::new(request, read, http.clone()))
            };
            let bearer = |request| token(AUTHORIZATION, request, oauth::token);
            let (api, auth): (Box<dyn Api>, Auth) = match carrier {
                Carrier::Inpost if account.secret.expose_secret().is_empty() => {
                    (Box::new(Inpost), Auth::None)
                }
                Carrier::Inpost => (Box::new(Inpost), Auth::Key(AUTHORIZATION, key("Bearer ")?)),
                Carrier::Dhl => {
                    let service = Some(account.qualifier.clone()).filter(|service| !service.is_empty());
                    let header = HeaderName::from_static("dhl-api-key");
                    (Box::new(Dhl { service }), Auth::Key(header, key("")?))
                }
                Carrier::PocztaPolska => {
                    let header = HeaderName::from_static("api_key");
                    let auth = token(header, poczta_polska::login(account), poczta_polska::token);
                    (Box::new(PocztaPolska), auth)
                }
                Carrier::Dpd => (Box::new(Dpd::new(account)), Auth::InRequest),
                Carrier::Gls => (Box::new(Gls), bearer(oauth::basic(account)?)),
                Carrier::Ups => (Box::new(Ups::new(started)), bearer(oauth::basic(account)?)),
                Carrier::Fedex => (Box::new(Fedex), bearer(oauth::form(account))),
                Carrier::Other => continue,
            };
            let client = CarrierClient::new(carrier, api, account.base_url.clone(), auth, http.clone());
            clients.insert(carrier, client);
        }
        Ok(Self::of(clients))
    }

    fn of(clients: BTreeMap<Carrier, CarrierClient>) -> Self {
        Self {
            clients: Arc::new(clients),
            is_patient: false,
        }
    }

    /// The same clients for workers: a look-up waits for its turn as long as it takes, and then has the whole deadline.
    /// So sellers' requests do not crowd them out.
    #[must_use]
    pub fn patient(&self) -> Self {
        Self {
            clients: Arc::clone(&self.clients),
            is_patient: true,
        }
    }

    /// The configured carriers, in the contract's order.
    pub fn configured(&self) -> impl Iterator<Item = Carrier> + '_ {
        self.clients.keys().copied()
    }

    /// Parses an answer without sending a request, for tests of hostile input. None if the carrier is not
    /// configured or the status is invalid.
    pub fn parse_answer(
        &self,
        carrier: Carrier,
        number: &TrackingNumber,
        status: u16,
        body: &[u8],
    ) -> Option<Lookup> {
        let answer = Response {
            status: StatusCode::from_u16(status).ok()?,
            body: body.to_vec(),
        };
        Some(self.clients.get(&carrier)?.parse_answer(number, &answer))
    }
}

#[async_trait]
impl CarrierLookup for Carriers {
    async fn look_up(&self, carrier: Carrier, number: &TrackingNumber) -> Lookup {
        match self.clients.get(&carrier) {
            Some(client) => client.look_up(number, self.is_patient).await,
            None => Lookup::NotConfigured,
        }
    }

    fn is_paused(&self, carrier: Carrier) -> bool {
        self.clients.get(&carrier).is_some_and(CarrierClient::is_paused)
    }
}
