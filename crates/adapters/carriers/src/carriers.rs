//! The seven carriers behind the one port.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use kernel::Clock;
use orders::{Carrier, CarrierLookup, Lookup, TrackingNumber};
use reqwest::StatusCode;

use crate::{
    CarrierSettings,
    api::Api,
    apis::{Dhl, Dpd, Fedex, Gls, Inpost, PocztaLogin, PocztaPolska, Ups},
    runtime::{ClientCredentials, Http, Line, Shared, TokenSource},
};

/// Asks the carriers that are set up.
#[derive(Debug)]
pub struct Carriers {
    lines: BTreeMap<Carrier, Line>,
}

/// The settings cannot work.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The HTTP client does not come to be, for instance because the machine has no root certificates.
    #[error("the HTTP client for carriers could not be set up")]
    Http(#[source] reqwest::Error),
    /// An address is not one of HTTP.
    #[error("the address of {} must begin with http:// or https://", .0.as_str())]
    Address(Carrier),
    /// A credential holds what no HTTP header can carry.
    #[error("the credentials of {} hold characters that cannot be sent", .0.as_str())]
    Credentials(Carrier),
}

impl Carriers {
    /// Clients of the carriers that `settings` name. `clock` serves pauses and the ages of tokens, all within this process.
    pub fn new(settings: &CarrierSettings, clock: Arc<dyn Clock>) -> Result<Self, SetupError> {
        let http = Http::new(&settings.user_agent, settings.deadline).map_err(SetupError::Http)?;
        let started = clock.now();
        let shared = Shared {
            http,
            clock,
            deadline: settings.deadline,
        };
        let mut lines = Lines {
            shared,
            lines: BTreeMap::new(),
        };

        if let Some(inpost) = &settings.inpost {
            lines.add(Carrier::Inpost, Inpost::new(inpost)?, None);
        }
        if let Some(dhl) = &settings.dhl {
            lines.add(Carrier::Dhl, Dhl::new(dhl)?, None);
        }
        if let Some(poczta) = &settings.poczta_polska {
            let login = PocztaLogin::new(poczta)?;
            lines.add(
                Carrier::PocztaPolska,
                PocztaPolska::new(poczta)?,
                Some(Box::new(login)),
            );
        }
        if let Some(dpd) = &settings.dpd {
            lines.add(Carrier::Dpd, Dpd::new(dpd)?, None);
        }
        if let Some(gls) = &settings.gls {
            let tokens = ClientCredentials::basic(Carrier::Gls, gls)?;
            lines.add(Carrier::Gls, Gls::new(gls)?, Some(Box::new(tokens)));
        }
        if let Some(ups) = &settings.ups {
            let tokens = ClientCredentials::basic(Carrier::Ups, ups)?;
            lines.add(Carrier::Ups, Ups::new(ups, started)?, Some(Box::new(tokens)));
        }
        if let Some(fedex) = &settings.fedex {
            let tokens = ClientCredentials::form(Carrier::Fedex, fedex)?;
            lines.add(Carrier::Fedex, Fedex::new(fedex)?, Some(Box::new(tokens)));
        }
        Ok(Self { lines: lines.lines })
    }

    /// The carriers that are asked, in the contract's order.
    pub fn asked(&self) -> impl Iterator<Item = Carrier> + '_ {
        self.lines.keys().copied()
    }

    /// What an answer of a carrier says, as a look-up would tell it, without anybody being asked; nothing where the carrier is
    /// not set up, or there is no such status. Answers are strangers' bytes: this is what they are tried with.
    pub fn understand(
        &self,
        carrier: Carrier,
        number: &TrackingNumber,
        status: u16,
        body: &[u8],
    ) -> Option<Lookup> {
        let status = StatusCode::from_u16(status).ok()?;
        Some(self.lines.get(&carrier)?.understand(number, status, body))
    }
}

struct Lines {
    shared: Shared,
    lines: BTreeMap<Carrier, Line>,
}

impl Lines {
    fn add(&mut self, carrier: Carrier, api: impl Api + 'static, tokens: Option<Box<dyn TokenSource>>) {
        self.lines.insert(
            carrier,
            Line::new(carrier, Box::new(api), tokens, self.shared.clone()),
        );
    }
}

#[async_trait]
impl CarrierLookup for Carriers {
    async fn look_up(&self, carrier: Carrier, number: &TrackingNumber) -> Lookup {
        match self.lines.get(&carrier) {
            Some(line) => line.look_up(number).await,
            None => Lookup::Unavailable("not asked: the carrier is not configured".to_owned()),
        }
    }
}
