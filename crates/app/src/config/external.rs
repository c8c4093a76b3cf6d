//! The sections about external services: the mail server, carriers, receivers of webhooks, the collector of traces; and what their
//! adapters make of them.

use std::{fs, num::NonZeroU16, path::PathBuf, sync::Arc, time::Duration};

use adapter_carriers::{Account, CarrierSettings, Carriers, DEADLINE, SetupError};
use adapter_mail::{
    Credentials, FolderMailer, Security, SenderSettings as MailSender, SettingsError, SmtpMailer,
    SmtpSettings,
};
use adapter_sealing::SystemClock;
use adapter_telemetry::{Header, NoHeader, Settings as TelemetrySettings};
use adapter_webhook_sender::SenderSettings;
use chrono::TimeDelta;
use kernel::Clock;
use orders::Carrier;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;
use usecases::deliver_webhooks::Slots;
use webhooks::{AddressPolicy, AddressRules, RetrySchedule};

use super::{
    Fault, fault, missing_half,
    values::{List, NameServer, Network, Period, Secret, ServiceUrl},
};
use crate::{external_services::Mailers, logging::error_chain};

#[derive(Debug, Clone, SmartDefault, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MailConfig {
    /// The shop's or the service's name, as buyers and sellers know it.
    #[schemars(extend("x-read-by" = "serve, worker"))]
    pub sender_name: Option<String>,
    /// The address in whose name mails go out.
    #[schemars(extend("x-read-by" = "serve, worker"))]
    pub sender_address: Option<String>,
    /// The SMTP server's name or address. Without it, and without `folder`, mails are queued and wait.
    pub host: Option<String>,
    /// Its port. Without it, the usual one for `security`: 587, 465 or 25.
    #[schemars(extend("x-range" = "from 1 to 65535"))]
    pub port: Option<NonZeroU16>,
    /// How the connection is protected.
    pub security: MailSecurity,
    /// The account at the server. Without it, the program does not sign in.
    pub username: Option<String>,
    /// Its password.
    pub password: Option<Secret>,
    /// What the program calls itself in `EHLO`. Without it, the machine's name.
    pub hello_name: Option<String>,
    /// A file of certificates (PEM) that are trusted beside the machine's own.
    pub root_certificates: Option<PathBuf>,
    /// Connections at a time.
    #[schemars(extend("x-range" = "from 1 to 65535"))]
    #[default(SmtpSettings::new("").max_connections)]
    pub max_connections: NonZeroU16,
    /// How long a connection may have been unused and still be taken for the next mail.
    #[schemars(extend("x-range" = "from 1s to 4m"))]
    #[default(Period(SmtpSettings::new("").idle_timeout))]
    pub idle_timeout: Period,
    /// How long connecting may take.
    #[schemars(extend("x-range" = "from 100ms to 4m"))]
    #[default(Period(SmtpSettings::new("").connect_timeout))]
    pub connect_timeout: Period,
    /// How long one sending may take in all.
    #[schemars(extend("x-range" = "from 1s to 4m"))]
    #[default(Period(SmtpSettings::new("").timeout))]
    pub timeout: Period,
    /// A folder to lay mails into, instead of sending them.
    pub folder: Option<PathBuf>,
}

/// `mail.security`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MailSecurity {
    /// TLS after the greeting.
    #[default]
    Starttls,
    /// TLS from the first byte.
    Tls,
    /// None: only to a server on the same machine.
    Plain,
}

impl MailConfig {
    pub(super) fn faults(&self) -> Vec<Fault> {
        let set = [self.username.is_some(), self.password.is_some()];
        let half = missing_half("mail", ["username", "password"], set);
        half.or_else(|| self.mailer().err()).into_iter().collect()
    }

    /// What sends mails; `None` where neither a server nor a folder is configured.
    pub fn mailer(&self) -> Result<Option<Arc<dyn Mailers>>, Fault> {
        let clock = Arc::new(SystemClock);
        Ok(match (&self.host, &self.folder) {
            (None, None) => None,
            (Some(_), Some(_)) => {
                return Err(fault("mail.folder", "must not be set beside mail.host"));
            }
            (Some(host), None) => {
                let mailer = SmtpMailer::new(&self.sender()?, &self.smtp(host)?, clock);
                Some(Arc::new(mailer.map_err(|error| mail_fault(&error))?))
            }
            (None, Some(folder)) => {
                let mailer = FolderMailer::new(&self.sender()?, folder, clock);
                Some(Arc::new(mailer.map_err(|error| mail_fault(&error))?))
            }
        })
    }

    fn sender(&self) -> Result<MailSender, Fault> {
        let needed = |key, value: &Option<String>| {
            let reason = "must be set, so that buyers and sellers see who writes to them";
            value.clone().ok_or_else(|| fault(key, reason))
        };
        Ok(MailSender {
            name: needed("mail.sender_name", &self.sender_name)?,
            address: needed("mail.sender_address", &self.sender_address)?,
        })
    }

    fn smtp(&self, host: &str) -> Result<SmtpSettings, Fault> {
        let credentials = self.username.clone().zip(self.password.as_ref());
        Ok(SmtpSettings {
            port: self.port.map(NonZeroU16::get),
            security: match self.security {
                MailSecurity::Starttls => Security::StartTls,
                MailSecurity::Tls => Security::Tls,
                MailSecurity::Plain => Security::Plain,
            },
            credentials: credentials.map(|(username, password)| Credentials {
                username,
                password: password.0.clone(),
            }),
            hello_name: self.hello_name.clone(),
            extra_roots: read_roots("mail.root_certificates", self.root_certificates.as_ref())?,
            max_connections: self.max_connections,
            idle_timeout: self.idle_timeout.0,
            connect_timeout: self.connect_timeout.0,
            timeout: self.timeout.0,
            ..SmtpSettings::new(host)
        })
    }
}

fn mail_fault(error: &SettingsError) -> Fault {
    let key = match error {
        SettingsError::SenderName => "mail.sender_name",
        SettingsError::SenderAddress(_) | SettingsError::SenderAddressBeyondAscii => "mail.sender_address",
        SettingsError::Host => "mail.host",
        SettingsError::PlainBeyondLoopback => "mail.security",
        SettingsError::HelloName => "mail.hello_name",
        SettingsError::NoTime => "mail.timeout",
        SettingsError::Tls(_) => "mail.root_certificates",
    };
    fault(key, format!("cannot be used: {}", error_chain(error)))
}

/// Reads a file of certificates.
fn read_roots(key: &'static str, path: Option<&PathBuf>) -> Result<Option<String>, Fault> {
    let read = |path: &PathBuf| {
        let unread = |error| format!("names {}, which cannot be read: {error}", path.display());
        fs::read_to_string(path).map_err(|error| fault(key, unread(error)))
    };
    path.map(read).transpose()
}

/// `carriers.*`: one without credentials is not asked.
#[derive(Debug, Clone, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CarriersConfig {
    /// `InPost`.
    pub inpost: InpostConfig,
    /// DHL.
    pub dhl: DhlConfig,
    /// Poczta Polska.
    pub poczta_polska: PocztaPolskaConfig,
    /// DPD.
    pub dpd: DpdConfig,
    /// GLS.
    pub gls: ClientConfig,
    /// UPS.
    pub ups: ClientConfig,
    /// `FedEx`.
    pub fedex: ClientConfig,
}

#[derive(Debug, Clone, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InpostConfig {
    /// Whether `InPost` is asked, which it can be without a token. Without it: where there is a token.
    pub enabled: Option<bool>,
    /// The organisation's token.
    pub token: Option<Secret>,
    /// Where the service is. Without it: the production service.
    pub base_url: Option<ServiceUrl>,
    /// Questions a day that the account allows. Without it: no limit is known.
    pub daily_limit: Option<u32>,
}

#[derive(Debug, Clone, SmartDefault, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DhlConfig {
    /// The key of the application at DHL.
    pub api_key: Option<Secret>,
    /// Which of DHL's services is searched, such as `parcel-pl` or `express`; empty for all, where another shipment that
    /// happens to have the same number may be found.
    #[default("parcel-pl")]
    pub service: String,
    /// Where the service is. Without it: the production service.
    pub base_url: Option<ServiceUrl>,
    /// Questions a day that the account allows. Without it: 250, what DHL allows at first.
    pub daily_limit: Option<u32>,
}

#[derive(Debug, Clone, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PocztaPolskaConfig {
    /// The login that Poczta Polska gave.
    pub login: Option<Secret>,
    /// The password, in the form in which the service takes it.
    pub password: Option<Secret>,
    /// Where the service is. Without it: the production service.
    pub base_url: Option<ServiceUrl>,
    /// Where tokens are had. Without it: the production service.
    pub token_url: Option<ServiceUrl>,
    /// Questions a day that the account allows. Without it: no limit is known.
    pub daily_limit: Option<u32>,
}

#[derive(Debug, Clone, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DpdConfig {
    /// The channel that DPD gave; may be empty.
    pub channel: String,
    /// The login that DPD gave.
    pub login: Option<Secret>,
    /// Its password.
    pub password: Option<Secret>,
    /// Where the service is. Without it: the production service.
    pub base_url: Option<ServiceUrl>,
    /// Questions a day that the account allows. Without it: no limit is known.
    pub daily_limit: Option<u32>,
}

/// `carriers.gls.*`, `carriers.ups.*`, `carriers.fedex.*`.
#[derive(Debug, Clone, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClientConfig {
    /// The client's id.
    pub client_id: Option<Secret>,
    /// The client's secret.
    pub client_secret: Option<Secret>,
    /// Where the service is. Without it: the production service.
    pub base_url: Option<ServiceUrl>,
    /// Where tokens are had. Without it: the production service.
    pub token_url: Option<ServiceUrl>,
    /// Questions a day that the account allows. Without it: 500 with GLS, else no limit is known.
    pub daily_limit: Option<u32>,
}

/// One carrier's section, in a form that all of them share.
struct CarrierSection<'a> {
    carrier: Carrier,
    /// The keys of login and secret, which belong together. Where there is one key, it is both.
    names: [&'static str; 2],
    credentials: [Option<&'a Secret>; 2],
    /// Whether the carrier answers without credentials too.
    is_open: bool,
    base_url: Option<&'a ServiceUrl>,
    token_url: Option<&'a ServiceUrl>,
    qualifier: &'a str,
    daily_limit: Option<u32>,
}

impl CarrierSection<'_> {
    fn missing_half(&self) -> Option<Fault> {
        let section = format!("carriers.{}", self.carrier.as_str());
        missing_half(
            &section,
            self.names,
            self.credentials.map(|secret| secret.is_some()),
        )
    }

    /// The account, where the carrier is to be asked.
    fn account(&self) -> Option<Account> {
        let [login, secret] = match self.credentials {
            [Some(login), Some(secret)] => [login.0.clone(), secret.0.clone()],
            _ if self.is_open => ["".into(), "".into()],
            _ => return None,
        };
        let mut account = Account::new(self.carrier, login, secret)?;
        self.qualifier.clone_into(&mut account.qualifier);
        if let Some(url) = self.base_url {
            account.base_url = url.0.clone();
        }
        if let Some(url) = self.token_url {
            account.token_url = url.0.clone();
        }
        Some(account)
    }
}

impl CarriersConfig {
    fn sections(&self) -> [CarrierSection<'_>; 7] {
        fn section<'a>(
            carrier: Carrier,
            names: [&'static str; 2],
            credentials: [&'a Option<Secret>; 2],
            base_url: Option<&'a ServiceUrl>,
            daily_limit: Option<u32>,
        ) -> CarrierSection<'a> {
            CarrierSection {
                carrier,
                names,
                credentials: credentials.map(Option::as_ref),
                is_open: false,
                base_url,
                token_url: None,
                qualifier: "",
                daily_limit,
            }
        }
        fn client(carrier: Carrier, keys: &ClientConfig, usual_limit: Option<u32>) -> CarrierSection<'_> {
            let (names, secrets) = (
                ["client_id", "client_secret"],
                [&keys.client_id, &keys.client_secret],
            );
            let limit = keys.daily_limit.or(usual_limit);
            CarrierSection {
                token_url: keys.token_url.as_ref(),
                ..section(carrier, names, secrets, keys.base_url.as_ref(), limit)
            }
        }
        let (inpost, dhl, poczta, dpd) = (&self.inpost, &self.dhl, &self.poczta_polska, &self.dpd);
        let (login, tokens, keys) = (["login", "password"], [&inpost.token; 2], [&dhl.api_key; 2]);
        let dhl_limit = dhl.daily_limit.or(Some(250));
        [
            CarrierSection {
                is_open: inpost.enabled == Some(true),
                ..section(
                    Carrier::Inpost,
                    ["token"; 2],
                    tokens,
                    inpost.base_url.as_ref(),
                    inpost.daily_limit,
                )
            },
            CarrierSection {
                qualifier: &dhl.service,
                ..section(
                    Carrier::Dhl,
                    ["api_key"; 2],
                    keys,
                    dhl.base_url.as_ref(),
                    dhl_limit,
                )
            },
            CarrierSection {
                token_url: poczta.token_url.as_ref(),
                ..section(
                    Carrier::PocztaPolska,
                    login,
                    [&poczta.login, &poczta.password],
                    poczta.base_url.as_ref(),
                    poczta.daily_limit,
                )
            },
            CarrierSection {
                qualifier: &dpd.channel,
                ..section(
                    Carrier::Dpd,
                    login,
                    [&dpd.login, &dpd.password],
                    dpd.base_url.as_ref(),
                    dpd.daily_limit,
                )
            },
            client(Carrier::Gls, &self.gls, Some(500)),
            client(Carrier::Ups, &self.ups, None),
            client(Carrier::Fedex, &self.fedex, None),
        ]
    }

    pub(super) fn faults(&self) -> Vec<Fault> {
        let mut faults = self
            .sections()
            .iter()
            .filter_map(CarrierSection::missing_half)
            .collect::<Vec<_>>();
        if let (Some(false), Some(_)) = (self.inpost.enabled, &self.inpost.token) {
            faults.push(fault(
                "carriers.inpost.enabled",
                "must not be false beside carriers.inpost.token",
            ));
        }
        if faults.is_empty()
            && let Err(error) = self.clients(String::new(), Arc::new(SystemClock))
        {
            let key = match &error {
                SetupError::Credentials(carrier) => format!("carriers.{}", carrier.as_str()),
                SetupError::Http(_) => "carriers".to_owned(),
            };
            faults.push(fault(key, format!("cannot be used: {}", error_chain(&error))));
        }
        faults
    }

    /// Look-ups a day that a carrier allows, by default what it allows an account that has agreed on nothing else; `None` where no
    /// limit is known.
    pub fn daily_limit(&self, carrier: Carrier) -> Option<u32> {
        let sections = self.sections();
        let section = sections.iter().find(|section| section.carrier == carrier);
        section?.daily_limit
    }

    /// The clients of the configured carriers; `None` without any.
    pub fn clients(&self, user_agent: String, clock: Arc<dyn Clock>) -> Result<Option<Carriers>, SetupError> {
        let settings = self.settings(user_agent);
        (!settings.accounts.is_empty())
            .then(|| Carriers::new(&settings, clock))
            .transpose()
    }

    /// What the adapter needs.
    pub fn settings(&self, user_agent: String) -> CarrierSettings {
        CarrierSettings {
            deadline: DEADLINE,
            user_agent,
            accounts: self
                .sections()
                .iter()
                .filter_map(CarrierSection::account)
                .collect(),
        }
    }
}

#[derive(Debug, Clone, SmartDefault, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebhooksConfig {
    /// Which receivers deliveries may go to.
    pub addresses: AddressesMode,
    /// Networks that no delivery goes to, whatever `addresses` says.
    pub deny_networks: List<Network>,
    /// How long one attempt may take in all, from the look-up of the name to the status.
    #[schemars(extend("x-range" = "from 100ms to 20s"))]
    #[default(Period(Duration::from_secs(10)))]
    pub attempt_timeout: Period,
    /// How long after the end of a failed attempt the next one is due: five of them, so that there are six attempts.
    #[schemars(extend("x-range" = "five, from 1ms to 30d each"))]
    #[default(List(RetrySchedule::default().0.map(|delay| Period(delay.to_std().unwrap_or_default())).into()))]
    pub retry_delays: List<Period>,
    /// Attempts at a time in one process. Those to receivers that fail take half of them at most.
    #[schemars(extend("x-range" = "from 1 to 4096"))]
    #[default(NonZeroU16::MIN.saturating_add(Slots::default().attempts - 1))]
    pub concurrency: NonZeroU16,
    /// The servers that receivers' names are asked of: all at once, the first that knows is believed. Without any, the machine's own.
    pub name_servers: List<NameServer>,
    /// A file of certificates (PEM) that are trusted beside the machine's own.
    pub root_certificates: Option<PathBuf>,
}

/// `webhooks.addresses`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AddressesMode {
    /// By https, to the public internet: the contract's rule.
    #[default]
    Public,
    /// By http too, and to private and loopback addresses: for local development alone.
    Any,
}

impl From<AddressesMode> for AddressPolicy {
    fn from(mode: AddressesMode) -> Self {
        match mode {
            AddressesMode::Public => Self::Public,
            AddressesMode::Any => Self::Any,
        }
    }
}

impl WebhooksConfig {
    pub(super) fn faults(&self) -> Vec<Fault> {
        let bounds = Duration::from_millis(1)..=Duration::from_hours(30 * 24);
        let mut faults = Vec::new();
        if self.schedule().is_none() || !self.retry_delays.0.iter().all(|delay| bounds.contains(&delay.0)) {
            let rule = "must be five durations from 1ms to 30d, such as 1m,5m,30m,2h,12h";
            faults.push(fault("webhooks.retry_delays", rule));
        }
        faults.extend(read_roots("webhooks.root_certificates", self.root_certificates.as_ref()).err());
        faults
    }

    /// When failed deliveries are tried again; `None` unless there are five delays.
    fn schedule(&self) -> Option<RetrySchedule> {
        let delays = self.retry_delays.0.iter().copied().map(Period::time_delta);
        let delays: [TimeDelta; 5] = delays.collect::<Vec<_>>().try_into().ok()?;
        Some(RetrySchedule(delays))
    }

    /// When failed deliveries are tried again.
    pub fn retry_schedule(&self) -> RetrySchedule {
        self.schedule().unwrap_or_default()
    }

    /// How much a worker does at once.
    pub fn slots(&self) -> Slots {
        Slots::of(self.concurrency.get())
    }

    /// How deliveries are sent in the name of a service whose documentation is at `docs_url`.
    pub fn sender(&self, service_name: &str, docs_url: &str) -> Result<SenderSettings, Fault> {
        let rules = AddressRules {
            policy: self.addresses.into(),
            deny: self.deny_networks.0.iter().map(|network| network.0).collect(),
        };
        Ok(SenderSettings {
            name_servers: self.name_servers.0.iter().map(|server| server.0).collect(),
            extra_roots: read_roots("webhooks.root_certificates", self.root_certificates.as_ref())?,
            attempt_timeout: self.attempt_timeout.0,
            ..SenderSettings::new(service_name, docs_url, rules)
        })
    }
}

#[derive(Debug, Clone, SmartDefault, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TracingConfig {
    /// Where spans are posted as OTLP over HTTP (protobuf), such as `http://collector:4318`; without a path, `/v1/traces` is meant.
    /// Without this key nobody traces.
    pub otlp_endpoint: Option<ServiceUrl>,
    /// What each request to the collector carries, such as `authorization=Bearer …`.
    pub headers: List<Secret>,
    /// The share of traces that are recorded, of those that begin here or with somebody who is not trusted.
    #[schemars(extend("x-kind" = "number", "x-range" = "from 0 to 1"))]
    #[default(0.1)]
    pub sample_ratio: f64,
    /// What the collector knows the program by (`service.name`). Without it: `server.service_name`.
    pub service_name: Option<String>,
    /// Further attributes of the program, each `<name>=<value>`, such as `deployment.environment.name=production`.
    pub attributes: List<String>,
}

impl TracingConfig {
    pub(super) fn faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        if self.sample_ratio.is_nan() {
            faults.push(fault("tracing.sample_ratio", "must be from 0 to 1"));
        }
        if let Err(error) = self.headers() {
            faults.push(fault("tracing.headers", format!("cannot be used: {error}")));
        }
        if self
            .service_name
            .as_ref()
            .is_some_and(|name| name.trim().is_empty())
        {
            faults.push(fault("tracing.service_name", "must not be empty"));
        }
        if self.attributes().is_none() {
            let rule = "must be attributes such as deployment.environment.name=production";
            faults.push(fault("tracing.attributes", rule));
        }
        faults
    }

    /// Refuses the variables of OpenTelemetry beside an endpoint: this program reads none of them, and nobody is to believe otherwise.
    pub(super) fn foreign_variables<'a>(&self, names: impl Iterator<Item = &'a str>) -> Option<Fault> {
        self.otlp_endpoint.as_ref()?;
        let foreign = names.filter(|name| name.starts_with("OTEL_")).collect::<Vec<_>>();
        if foreign.is_empty() {
            return None;
        }
        let reason = format!(
            "cannot stand beside {} in the environment, which this program does not read: unset that, and use the keys of `tracing`",
            foreign.join(", ")
        );
        Some(fault("tracing.otlp_endpoint", reason))
    }

    /// How spans are sent; `None` where nobody traces.
    pub fn settings(&self, service_name: &str) -> Option<TelemetrySettings> {
        let ServiceUrl(mut endpoint) = self.otlp_endpoint.clone()?;
        if endpoint.path() == "/" {
            endpoint.set_path("/v1/traces");
        }
        Some(TelemetrySettings {
            endpoint,
            headers: self.headers().unwrap_or_default(),
            sample_ratio: self.sample_ratio,
            service_name: self.service_name.as_deref().unwrap_or(service_name).to_owned(),
            service_version: env!("CARGO_PKG_VERSION"),
            attributes: self.attributes().unwrap_or_default(),
        })
    }

    fn headers(&self) -> Result<Vec<Header>, NoHeader> {
        self.headers
            .0
            .iter()
            .map(|header| Header::parse(&header.0))
            .collect()
    }

    fn attributes(&self) -> Option<Vec<(String, String)>> {
        let pair = |text: &String| {
            let (name, value) = text.split_once('=')?;
            let (name, value) = (name.trim(), value.trim());
            (!name.is_empty() && !value.is_empty()).then(|| (name.to_owned(), value.to_owned()))
        };
        self.attributes.0.iter().map(pair).collect()
    }
}
