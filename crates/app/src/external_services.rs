//! The external services: carriers, webhook receivers, the mail server.

use std::{path::PathBuf, sync::Arc};

use accounts::AccountMail;
use adapter_carriers::{Carriers, SimulatedCarriers};
use adapter_mail::FolderMailer;
use adapter_sealing::SystemClock;
use adapter_webhook_sender::HttpSender;
use anyhow::{Context as _, anyhow};
use chrono::TimeDelta;
use kernel::{Clock, Mailer};
use orders::{Carrier, CarrierLookup, ShipmentMail};
use webhooks::{AddressPolicy, HostCheck, WebhookSender};

use crate::config::{Config, Fault, Loaded, fault};
use crate::daily_limits::{DailyQuota, LimitedLookups, least_interval};

/// Sends every kind of mail.
pub trait Mailers: Mailer<ShipmentMail> + Mailer<AccountMail> {}

impl<T: Mailer<ShipmentMail> + Mailer<AccountMail>> Mailers for T {}

/// Sends webhooks to their receivers, and checks the hosts of new subscriptions.
pub(crate) trait Receivers: WebhookSender + HostCheck {}

impl<T: WebhookSender + HostCheck> Receivers for T {}

/// Clients of all external services. Clones share them.
#[derive(Clone)]
pub(crate) struct ExternalServices {
    /// Used in requests.
    pub(crate) carriers: Arc<dyn CarrierLookup>,
    /// The same ones, used by the workers that track parcels.
    pub(crate) tracking: Arc<dyn CarrierLookup>,
    /// Sends mails; if `None`, mails stay queued.
    pub(crate) mailer: Option<Arc<dyn Mailers>>,
    pub(crate) receivers: Arc<dyn Receivers>,
    /// The shortest time between two look-ups of a parcel by workers.
    pub(crate) least: fn(Carrier) -> TimeDelta,
}

/// Fails where the configuration is fit for the sandbox alone.
pub(crate) fn refuse_unfit(loaded: &Loaded) -> anyhow::Result<()> {
    if loaded.config.webhooks.addresses == AddressPolicy::Local {
        let key = "webhooks.addresses";
        return Err(anyhow!(Fault {
            set_in: loaded.source(key),
            ..fault(key, "must be public or any: `local` is for the sandbox alone")
        }));
    }
    Ok(loaded.config.server.require_public_url()?)
}

impl ExternalServices {
    /// The configured carriers and mail server.
    pub(crate) fn real(loaded: &Loaded, public_url: &str) -> anyhow::Result<Self> {
        let config = &loaded.config;
        refuse_unfit(loaded)?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let settings = config.carriers.settings(user_agent(config, public_url));
        let carriers = Carriers::new(&settings, Arc::clone(&clock)).context("the clients of the carriers")?;
        if !settings.accounts.is_empty() {
            let configured = carriers.configured().map(Carrier::as_str).collect::<Vec<_>>();
            tracing::info!(
                carriers = configured.join(", "),
                "carriers are asked about parcels"
            );
        }
        let limit = |carrier| config.carriers.daily_limit(carrier);
        let quota = |carrier| DailyQuota::of_tracking(limit(carrier), least_interval(carrier));
        let tracking = LimitedLookups::new(Arc::new(carriers.patient()), Arc::clone(&clock), quota);
        let quota = |carrier| DailyQuota::of_requests(limit(carrier));
        let carriers = LimitedLookups::new(Arc::new(carriers), clock, quota);
        Ok(Self {
            carriers: Arc::new(carriers),
            tracking: Arc::new(tracking),
            mailer: mailer(config)?,
            receivers: receivers(config, public_url)?,
            least: least_interval,
        })
    }

    /// The sandbox's services: carriers that derive a parcel's status from its number, and a folder for
    /// mails. Webhook receivers are real.
    pub(crate) fn simulated(
        config: &Config,
        public_url: &str,
        folder: PathBuf,
        carriers: Arc<SimulatedCarriers>,
    ) -> anyhow::Result<Self> {
        let mut config = config.clone();
        let mail = &mut config.mail;
        (mail.host, mail.folder) = (None, Some(folder));
        mail.sender_name
            .get_or_insert_with(|| "Sandbox Marketplace".to_owned());
        mail.sender_address
            .get_or_insert_with(|| "orders@marketplace.example".to_owned());
        Ok(Self {
            carriers: carriers.clone(),
            tracking: carriers,
            mailer: mailer(&config)?,
            receivers: receivers(&config, public_url)?,
            least: |_| TimeDelta::zero(),
        })
    }
}

/// Sends mails as configured. Creates `mail.folder`, and fails where it cannot be written.
pub(crate) fn mailer(config: &Config) -> anyhow::Result<Option<Arc<dyn Mailers>>> {
    if let Some(folder) = &config.mail.folder {
        FolderMailer::check(folder).with_context(|| {
            format!(
                "configuration key `mail.folder`: {} cannot be written",
                folder.display()
            )
        })?;
    }
    Ok(config.mail.mailer(&config.server.name)?)
}

/// The sender of webhooks. Logs a warning if any address is allowed.
fn receivers(config: &Config, public_url: &str) -> anyhow::Result<Arc<dyn Receivers>> {
    if config.webhooks.addresses == AddressPolicy::Any {
        tracing::warn!(
            "webhooks may go to ANY address, this machine and its private networks included, and without TLS: \
             `webhooks.addresses` is `any`, which is for local development alone"
        );
    }
    let docs = docs_url(config, public_url);
    let settings = config.webhooks.sender(&config.server.service_name, &docs)?;
    let sender = HttpSender::new(&settings, Arc::new(SystemClock)).context(
        "webhooks cannot be sent: see the configuration keys `webhooks.name_servers` and `webhooks.root_certificates`",
    )?;
    Ok(Arc::new(sender))
}

/// The `User-Agent` of outgoing requests.
fn user_agent(config: &Config, public_url: &str) -> String {
    let (name, docs) = (&config.server.service_name, docs_url(config, public_url));
    format!("{name}/{} (+{docs})", env!("CARGO_PKG_VERSION"))
}

/// The address of the documentation for developers.
pub(crate) fn docs_url(config: &Config, public_url: &str) -> String {
    let configured = config.server.docs_url.as_ref();
    configured.map_or_else(|| format!("{public_url}/docs"), |url| url.base().to_owned())
}
