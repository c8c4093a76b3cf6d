//! The configured carriers behind one port.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use kernel::Clock;
use orders::{Carrier, CarrierLookup, Lookup, TrackingNumber};
use reqwest::{
    StatusCode,
    header::{AUTHORIZATION, HeaderName},
};
use url::Url;

use crate::{
    CarrierSettings,
    apis::{
        Api,
        dhl::Dhl,
        dpd::Dpd,
        fedex::Fedex,
        gls::Gls,
        inpost::Inpost,
        poczta_polska::{PocztaLogin, PocztaPolska},
        ups::Ups,
    },
    client::{Auth, RateLimitedClient},
    http::{Http, Response, secret_header},
    oauth::ClientCredentials,
    tokens::{TokenCache, TokenSource},
};

/// Asks the carriers that are configured.
pub struct Carriers {
    clients: BTreeMap<Carrier, RateLimitedClient>,
}

#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// For instance because the machine has no root certificates.
    #[error("the HTTP client for carriers could not be set up")]
    Http(#[source] reqwest::Error),
    #[error("the credentials of {} hold characters that cannot be sent", .0.as_str())]
    Credentials(Carrier),
}

impl Carriers {
    /// Clients of the carriers in `settings`. `clock` is used for pauses and for the age of tokens.
    pub fn new(settings: &CarrierSettings, clock: Arc<dyn Clock>) -> Result<Self, SetupError> {
        let started = clock.now();
        let http = Http::new(settings, clock).map_err(SetupError::Http)?;
        let token = |name, request, source: Box<dyn TokenSource>| {
            Auth::Token(name, TokenCache::new(request, source, http.clone()))
        };
        let mut clients = BTreeMap::new();
        let mut add = |carrier, api: Box<dyn Api>, base_url: &Url, auth| {
            let client = RateLimitedClient::new(carrier, api, base_url.clone(), auth, http.clone());
            clients.insert(carrier, client);
        };
        if let Some(inpost) = &settings.inpost {
            let auth = match &inpost.token {
                Some(token) => Auth::Key(AUTHORIZATION, secret_header(Carrier::Inpost, "Bearer ", token)?),
                None => Auth::None,
            };
            add(Carrier::Inpost, Box::new(Inpost), &inpost.base_url, auth);
        }
        if let Some(dhl) = &settings.dhl {
            let service = dhl.service.clone();
            let key = secret_header(Carrier::Dhl, "", &dhl.api_key)?;
            let auth = Auth::Key(HeaderName::from_static("dhl-api-key"), key);
            add(Carrier::Dhl, Box::new(Dhl { service }), &dhl.base_url, auth);
        }
        if let Some(poczta) = &settings.poczta_polska {
            let header = HeaderName::from_static("api_key");
            let auth = token(header, PocztaLogin::request(poczta), Box::new(PocztaLogin));
            let api = Box::new(PocztaPolska);
            add(Carrier::PocztaPolska, api, &poczta.base_url, auth);
        }
        if let Some(dpd) = &settings.dpd {
            add(Carrier::Dpd, Box::new(Dpd::new(dpd)), &dpd.base_url, Auth::None);
        }
        let bearer = |request| token(AUTHORIZATION, request, Box::new(ClientCredentials));
        if let Some(gls) = &settings.gls {
            let auth = bearer(ClientCredentials::basic(Carrier::Gls, gls)?);
            add(Carrier::Gls, Box::new(Gls), &gls.base_url, auth);
        }
        if let Some(ups) = &settings.ups {
            let auth = bearer(ClientCredentials::basic(Carrier::Ups, ups)?);
            add(Carrier::Ups, Box::new(Ups::new(started)), &ups.base_url, auth);
        }
        if let Some(fedex) = &settings.fedex {
            let auth = bearer(ClientCredentials::form(fedex));
            add(Carrier::Fedex, Box::new(Fedex), &fedex.base_url, auth);
        }
        Ok(Self { clients })
    }

    /// The configured carriers, in the contract's order.
    pub fn asked(&self) -> impl Iterator<Item = Carrier> + '_ {
        self.clients.keys().copied()
    }

    /// Reads an answer without sending a request, for tests of hostile input. None for a carrier that is not configured, or
    /// an impossible status.
    pub fn understand(
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
        Some(self.clients.get(&carrier)?.understand(number, &answer))
    }
}

#[async_trait]
impl CarrierLookup for Carriers {
    async fn look_up(&self, carrier: Carrier, number: &TrackingNumber) -> Lookup {
        match self.clients.get(&carrier) {
            Some(client) => client.look_up(number).await,
            None => Lookup::Unavailable("not asked: the carrier is not configured".to_owned()),
        }
    }
}
