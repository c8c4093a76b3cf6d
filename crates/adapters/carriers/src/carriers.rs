//! The configured carriers behind one port.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use kernel::Clock;
use orders::{Carrier, CarrierLookup, Lookup, TrackingNumber};
use reqwest::StatusCode;

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
    client::RateLimitedClient,
    http::{Http, Response},
    oauth::ClientCredentials,
    tokens::TokenSource,
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
        let mut clients = BTreeMap::new();
        let mut add = |carrier, api: Box<dyn Api>, tokens: Option<Box<dyn TokenSource>>| {
            let client = RateLimitedClient::new(carrier, api, tokens, http.clone());
            clients.insert(carrier, client);
        };
        if let Some(inpost) = &settings.inpost {
            add(Carrier::Inpost, Box::new(Inpost::new(inpost)?), None);
        }
        if let Some(dhl) = &settings.dhl {
            add(Carrier::Dhl, Box::new(Dhl::new(dhl)?), None);
        }
        if let Some(poczta) = &settings.poczta_polska {
            let base_url = poczta.base_url.clone();
            let login = PocztaLogin::new(poczta);
            let api = Box::new(PocztaPolska { base_url });
            add(Carrier::PocztaPolska, api, Some(Box::new(login)));
        }
        if let Some(dpd) = &settings.dpd {
            add(Carrier::Dpd, Box::new(Dpd::new(dpd)), None);
        }
        if let Some(gls) = &settings.gls {
            let base_url = gls.base_url.clone();
            let tokens = ClientCredentials::basic(Carrier::Gls, gls)?;
            add(Carrier::Gls, Box::new(Gls { base_url }), Some(Box::new(tokens)));
        }
        if let Some(ups) = &settings.ups {
            let tokens = ClientCredentials::basic(Carrier::Ups, ups)?;
            let api = Box::new(Ups::new(ups, started));
            add(Carrier::Ups, api, Some(Box::new(tokens)));
        }
        if let Some(fedex) = &settings.fedex {
            let base_url = fedex.base_url.clone();
            let tokens = ClientCredentials::form(fedex);
            add(
                Carrier::Fedex,
                Box::new(Fedex { base_url }),
                Some(Box::new(tokens)),
            );
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
