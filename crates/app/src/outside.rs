//! Who is spoken to outside of the program: carriers, and whoever takes mails.

use std::{path::PathBuf, sync::Arc};

use adapter_carriers::{Carriers, DEADLINE, SimulatedCarriers};
use adapter_sealing::SystemClock;
use anyhow::{Context as _, anyhow};
use async_trait::async_trait;
use kernel::{Clock, Mailer};
use oauth::AccountMail;
use orders::{Carrier, CarrierLookup, Lookup, ShipmentMail, TrackingNumber};

use crate::config::Config;

/// Who takes mails of every kind.
pub trait Post: Mailer<ShipmentMail> + Mailer<AccountMail> {}

impl<T: Mailer<ShipmentMail> + Mailer<AccountMail>> Post for T {}

/// The ways out. Clones share them.
#[derive(Clone)]
pub(crate) struct Outside {
    /// Asked within a seller's request, and by the worker that follows parcels.
    pub(crate) carriers: Arc<dyn CarrierLookup>,
    /// Takes mails; none where they have to wait.
    pub(crate) mailer: Option<Arc<dyn Post>>,
    /// The time of this process.
    pub(crate) clock: Arc<dyn Clock>,
    /// Whether the carriers are the sandbox's, which need no sparing.
    pub(crate) are_simulated: bool,
}

impl Outside {
    /// The carriers and the mail server that the configuration names.
    pub(crate) fn real(config: &Config, public_url: &str) -> anyhow::Result<Self> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let clients = config
            .carriers
            .clients(user_agent(config, public_url), Arc::clone(&clock))
            .context("the clients of the carriers")?;
        Ok(Self {
            carriers: clients.map_or_else(|| -> Arc<dyn CarrierLookup> { Arc::new(Nobody) }, told),
            mailer: mailer(config)?,
            clock,
            are_simulated: false,
        })
    }

    /// The sandbox's: carriers that read a parcel's fate from its number, and a folder for mails.
    pub(crate) fn simulated(config: &Config, folder: PathBuf) -> anyhow::Result<Self> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let mut config = config.clone();
        let mail = &mut config.mail;
        (mail.host, mail.folder) = (None, Some(folder));
        mail.sender_name
            .get_or_insert_with(|| "Sandbox Marketplace".to_owned());
        mail.sender_address
            .get_or_insert_with(|| "orders@marketplace.example".to_owned());
        Ok(Self {
            carriers: Arc::new(SimulatedCarriers::new(DEADLINE, Arc::clone(&clock))),
            mailer: mailer(&config)?,
            clock,
            are_simulated: true,
        })
    }
}

fn told(clients: Carriers) -> Arc<dyn CarrierLookup> {
    let asked = clients.asked().map(Carrier::as_str).collect::<Vec<_>>();
    tracing::info!(carriers = asked.join(", "), "carriers are asked about parcels");
    Arc::new(clients)
}

/// What is asked where no carrier is configured.
struct Nobody;

#[async_trait]
impl CarrierLookup for Nobody {
    async fn look_up(&self, _: Carrier, _: &TrackingNumber) -> Lookup {
        Lookup::Unavailable("not asked: no carrier is configured".to_owned())
    }
}

fn mailer(config: &Config) -> anyhow::Result<Option<Arc<dyn Post>>> {
    let mailer = config.mail.mailer();
    mailer.map_err(|(key, reason)| anyhow!("configuration key `{key}` {reason}"))
}

/// How the service presents itself to others.
fn user_agent(config: &Config, public_url: &str) -> String {
    let server = &config.server;
    let docs = server.docs_url.as_ref().map(|url| url.as_str().to_owned());
    let docs = docs.unwrap_or_else(|| format!("{public_url}/docs"));
    format!("{}/{} (+{docs})", server.service_name, env!("CARGO_PKG_VERSION"))
}
