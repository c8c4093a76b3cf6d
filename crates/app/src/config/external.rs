//! The sections for external services (mail server, carriers, webhook receivers, trace collector), and their
//! conversion into the settings of the adapters.

use std::{fs, num::NonZeroU16, path::PathBuf, sync::Arc, time::Duration};

use adapter_carriers::{Account, CarrierSettings, Carriers, DEADLINE, SetupError};
use adapter_mail::{
    Credentials, FolderMailer, Security, SenderSettings as MailSender, SettingsError, SmtpMailer,
    SmtpSettings,
};
use adapter_sealing::SystemClock;
use adapter_telemetry::Settings as TelemetrySettings;
use adapter_webhook_sender::{HttpSender, SenderSettings, SettingsError as SenderError};
use kernel::error_chain;
use orders::Carrier;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use smart_default::SmartDefault;
use usecases::deliver_webhooks::Slots;
use webhooks::{AddressPolicy, AddressRules, RetrySchedule};

use super::values::{NameServer, Network, Period, Secret, ServiceUrl};
use super::{Fault, fault, missing_half, must_be};
use crate::external_services::Mailers;

#[derive(Debug, Clone, SmartDefault, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MailConfig {
    /// The sender's name that buyers and sellers see.
    #[schemars(extend("x-read-by" = "serve, worker, sandbox"))]
    pub sender_name: Option<String>,
    /// The sender's address.
    #[schemars(extend("x-read-by" = "serve, worker, sandbox"))]
    pub sender_address: Option<String>,
    /// The SMTP server's name or address. Without it and `folder`, mails wait in the queue.
    pub host: Option<String>,
    /// Its port. If unset: 587, 465 or 25, by `security`.
    pub port: Option<NonZeroU16>,
    /// Protection of the connection.
    #[schemars(
        with = "String",
        extend("x-kind" = "`starttls`: TLS after the greeting. `tls`: TLS from the first byte. `plain`: No TLS, only to a server on the same machine.")
    )]
    pub security: Security,
    /// The account at the server. If unset, the program does not authenticate.
    pub username: Option<String>,
    /// Its password.
    pub password: Option<Secret>,
    /// The name in `EHLO`. If unset: the machine's name.
    pub hello_name: Option<String>,
    /// File of trusted root certificates (PEM) beside the machine's own.
    pub root_certificates: Option<PathBuf>,
    /// Concurrent connections. A process takes no more mails from the queue than these can send.
    #[default(SmtpSettings::new("").max_connections)]
    pub max_connections: NonZeroU16,
    /// How long an idle connection is kept for the next mail.
    #[schemars(extend("minimum" = "1s", "maximum" = "4m"))]
    #[default(Period(SmtpSettings::new("").idle_timeout))]
    pub idle_timeout: Period,
    /// Time limit for connecting.
    #[schemars(extend("minimum" = "100ms", "maximum" = "4m"))]
    #[default(Period(SmtpSettings::new("").connect_timeout))]
    pub connect_timeout: Period,
    /// Time limit for opening a connection, and for each mail up to its content, which the server then has
    /// ten minutes to accept.
    #[schemars(extend("minimum" = "1s", "maximum" = "4m"))]
    #[default(Period(SmtpSettings::new("").timeout))]
    pub timeout: Period,
    /// Folder to write mails to instead of sending them.
    pub folder: Option<PathBuf>,
}

impl MailConfig {
    pub(super) fn faults(&self, product: &str) -> Vec<Fault> {
        let set = [self.username.is_some(), self.password.is_some()];
        let half = missing_half("mail", ["username", "password"], set);
        half.or_else(|| self.mailer(product).err()).into_iter().collect()
    }

    /// The configured mailer, for the product of this name; `None` if neither a server nor a folder is
    /// configured.
    pub fn mailer(&self, product: &str) -> Result<Option<Arc<dyn Mailers>>, Fault> {
        let clock = Arc::new(SystemClock);
        Ok(match (&self.host, &self.folder) {
            (None, None) => None,
            (_, Some(folder)) if folder.as_os_str().is_empty() => {
                return Err(must_be("mail.folder", "the path of a folder"));
            }
            (Some(_), Some(_)) => {
                return Err(fault("mail.folder", "must not be set beside mail.host"));
            }
            (Some(host), None) => Some(Arc::new(SmtpMailer::new(
                &self.sender(product)?,
                &self.smtp(host)?,
                clock,
            )?)),
            (None, Some(folder)) => Some(Arc::new(FolderMailer::new(
                &self.sender(product)?,
                folder,
                clock,
            )?)),
        })
    }

    fn sender(&self, product: &str) -> Result<MailSender, Fault> {
        let needed = |key, value: &Option<String>| {
            let reason = "must be set, so that buyers and sellers see who writes to them";
            value.clone().ok_or_else(|| fault(key, reason))
        };
        Ok(MailSender {
            name: needed("mail.sender_name", &self.sender_name)?,
            address: needed("mail.sender_address", &self.sender_address)?,
            product: product.to_owned(),
        })
    }

    fn smtp(&self, host: &str) -> Result<SmtpSettings, Fault> {
        let credentials = self.username.clone().zip(self.password.as_ref());
        Ok(SmtpSettings {
            port: self.port.map(NonZeroU16::get),
            security: self.security,
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

impl From<SettingsError> for Fault {
    fn from(error: SettingsError) -> Self {
        let key = match error {
            SettingsError::SenderName => "mail.sender_name",
            SettingsError::SenderAddress(_) | SettingsError::SenderAddressBeyondAscii => {
                "mail.sender_address"
            }
            SettingsError::Host => "mail.host",
            SettingsError::PlainBeyondLoopback => "mail.security",
            SettingsError::HelloName => "mail.hello_name",
            SettingsError::Tls(_) => "mail.root_certificates",
        };
        fault(key, format!("cannot be used: {}", error_chain(&error)))
    }
}

/// Reads a file of root certificates.
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
    /// InPost.
    pub inpost: InpostConfig,
    /// DHL.
    pub dhl: DhlConfig,
    /// Poczta Polska.
    pub poczta_polska: PocztaPolskaConfig,
    /// DPD.
    pub dpd: DpdConfig,
    /// GLS. An unset `daily_limit` is 500.
    pub gls: ClientConfig,
    /// UPS. An unset `daily_limit` is unlimited.
    pub ups: ClientConfig,
    /// FedEx. An unset `daily_limit` is unlimited.
    pub fedex: ClientConfig,
}

#[derive(Debug, Clone, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InpostConfig {
    /// Whether InPost is asked, which also works without a token. If unset: only with a token.
    pub enabled: Option<bool>,
    /// The organisation's token.
    pub token: Option<Secret>,
    /// Address of the API. If unset: the production service.
    pub base_url: Option<ServiceUrl>,
    /// Requests a day that the account allows; with 0, the carrier is never asked. If unset: unlimited.
    pub daily_limit: Option<u32>,
}

#[derive(Debug, Clone, SmartDefault, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DhlConfig {
    /// The application's key.
    pub api_key: Option<Secret>,
    /// DHL's service to search, such as `parcel-pl` or `express`; empty for all, which may find another
    /// shipment with the same number.
    #[default("parcel-pl")]
    pub service: String,
    /// Address of the API. If unset: the production service.
    pub base_url: Option<ServiceUrl>,
    /// Requests a day that the account allows; with 0, the carrier is never asked. If unset: 250, DHL's initial limit.
    pub daily_limit: Option<u32>,
}

#[derive(Debug, Clone, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PocztaPolskaConfig {
    /// The account's login.
    pub login: Option<Secret>,
    /// The account's password, encoded as the service expects it.
    pub password: Option<Secret>,
    /// Address of the API. If unset: the production service.
    pub base_url: Option<ServiceUrl>,
    /// Address of the token endpoint. If unset: the production service.
    pub token_url: Option<ServiceUrl>,
    /// Requests a day that the account allows; with 0, the carrier is never asked. If unset: unlimited.
    pub daily_limit: Option<u32>,
}

#[derive(Debug, Clone, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DpdConfig {
    /// The account's channel; may be empty.
    pub channel: String,
    /// The account's login.
    pub login: Option<Secret>,
    /// Its password.
    pub password: Option<Secret>,
    /// Address of the API. If unset: the production service.
    pub base_url: Option<ServiceUrl>,
    /// Requests a day that the account allows; with 0, the carrier is never asked. If unset: unlimited.
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
    /// Address of the API. If unset: the production service.
    pub base_url: Option<ServiceUrl>,
    /// Address of the token endpoint. If unset: the production service.
    pub token_url: Option<ServiceUrl>,
    /// Requests a day that the account allows; with 0, the carrier is never asked.
    pub daily_limit: Option<u32>,
}

/// A carrier's account, at the configured addresses or else its production service; `None` if the carrier is not
/// asked. `credentials` are login and secret by their keys, which must be set together; a carrier with a single key
/// has it twice.
fn account(
    carrier: Carrier,
    credentials: [(&str, &Option<Secret>); 2],
    urls: [&Option<ServiceUrl>; 2],
    qualifier: &str,
) -> Result<Option<Account>, Fault> {
    let section = format!("carriers.{}", carrier.as_str());
    let are_set = credentials.map(|(_, secret)| secret.is_some());
    if let Some(fault) = missing_half(&section, credentials.map(|(key, _)| key), are_set) {
        return Err(fault);
    }
    let [login, secret] = credentials.map(|(_, secret)| secret.as_ref().map(|secret| secret.0.clone()));
    let account = login
        .zip(secret)
        .and_then(|(login, secret)| Account::new(carrier, login, secret));
    let [base_url, token_url] = urls.map(|url| url.as_ref().map(|url| url.0.clone()));
    Ok(account.map(|account| Account {
        qualifier: qualifier.to_owned(),
        base_url: base_url.unwrap_or(account.base_url),
        token_url: token_url.unwrap_or(account.token_url),
        ..account
    }))
}

impl CarriersConfig {
    /// Each carrier's account, or what is wrong in its section.
    fn accounts(&self) -> [Result<Option<Account>, Fault>; 7] {
        let (inpost, dhl, poczta, dpd) = (&self.inpost, &self.dhl, &self.poczta_polska, &self.dpd);
        // InPost also answers without a token.
        let no_token = (inpost.enabled == Some(true)).then(|| String::new().into());
        let token = inpost.token.clone().or(no_token);
        let client = |carrier, client: &ClientConfig| {
            let id = ("client_id", &client.client_id);
            let credentials = [id, ("client_secret", &client.client_secret)];
            account(carrier, credentials, [&client.base_url, &client.token_url], "")
        };
        [
            account(
                Carrier::Inpost,
                [("token", &token); 2],
                [&inpost.base_url, &None],
                "",
            ),
            account(
                Carrier::Dhl,
                [("api_key", &dhl.api_key); 2],
                [&dhl.base_url, &None],
                &dhl.service,
            ),
            account(
                Carrier::PocztaPolska,
                [("login", &poczta.login), ("password", &poczta.password)],
                [&poczta.base_url, &poczta.token_url],
                "",
            ),
            account(
                Carrier::Dpd,
                [("login", &dpd.login), ("password", &dpd.password)],
                [&dpd.base_url, &None],
                &dpd.channel,
            ),
            client(Carrier::Gls, &self.gls),
            client(Carrier::Ups, &self.ups),
            client(Carrier::Fedex, &self.fedex),
        ]
    }

    pub(super) fn faults(&self) -> Vec<Fault> {
        let halves = self.accounts().into_iter().filter_map(Result::err);
        let mut faults = halves.collect::<Vec<_>>();
        if let (Some(false), Some(_)) = (self.inpost.enabled, &self.inpost.token) {
            faults.push(fault(
                "carriers.inpost.enabled",
                "must not be false beside carriers.inpost.token",
            ));
        }
        if faults.is_empty()
            && let Err(error) = Carriers::new(&self.settings(String::new()), Arc::new(SystemClock))
        {
            let key = match &error {
                SetupError::Credentials(carrier) => format!("carriers.{}", carrier.as_str()),
                SetupError::Http(_) => "carriers".to_owned(),
            };
            faults.push(fault(key, format!("cannot be used: {}", error_chain(&error))));
        }
        faults
    }

    /// Look-ups per day that a carrier allows. `None` if no limit is known, or if the carrier is not asked at all.
    pub fn daily_limit(&self, carrier: Carrier) -> Option<u32> {
        let accounts = self.settings(String::new()).accounts;
        let is_asked = accounts.iter().any(|account| account.carrier == carrier);
        self.allowed(carrier).filter(|_| is_asked)
    }

    /// The default is the limit of an account without a special agreement.
    fn allowed(&self, carrier: Carrier) -> Option<u32> {
        match carrier {
            Carrier::Inpost => self.inpost.daily_limit,
            Carrier::Dhl => self.dhl.daily_limit.or(Some(250)),
            Carrier::PocztaPolska => self.poczta_polska.daily_limit,
            Carrier::Dpd => self.dpd.daily_limit,
            Carrier::Gls => self.gls.daily_limit.or(Some(500)),
            Carrier::Ups => self.ups.daily_limit,
            Carrier::Fedex => self.fedex.daily_limit,
            Carrier::Other => None,
        }
    }

    /// The settings of the adapter. Who allows no look-up has no account.
    pub fn settings(&self, user_agent: String) -> CarrierSettings {
        let accounts = self.accounts().into_iter().flatten().flatten();
        CarrierSettings {
            deadline: DEADLINE,
            user_agent,
            accounts: accounts
                .filter(|account| self.allowed(account.carrier) != Some(0))
                .collect(),
        }
    }
}

#[derive(Debug, Clone, SmartDefault, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebhooksConfig {
    /// Which receivers are allowed.
    #[schemars(
        with = "String",
        extend("x-kind" = "`public`: HTTPS to the public internet: the contract's rule. `local`: Also this machine's loopback addresses, by HTTP too: the sandbox's default, refused by `serve` and `worker`. `any`: Also plain HTTP, and private and loopback addresses: for local development alone.")
    )]
    pub addresses: AddressPolicy,
    /// Networks that never get a delivery, whatever `addresses` says.
    pub deny_networks: Vec<Network>,
    /// Time limit for one attempt, from the name's look-up to the status.
    #[schemars(extend("minimum" = "100ms", "maximum" = "20s"))]
    #[default(Period(Duration::from_secs(10)))]
    pub attempt_timeout: Period,
    /// The delays after the end of each failed attempt: five, so that there are six attempts.
    #[schemars(extend("minimum" = "1ms", "maximum" = "30d"))]
    #[default(RetrySchedule::default().0.map(|delay| Period(delay.to_std().unwrap_or_default())))]
    #[serde(deserialize_with = "five")]
    pub retry_delays: [Period; 5],
    /// Concurrent attempts of one process. Failing receivers get half of them at most.
    #[schemars(range(min = 1, max = 4096))]
    #[default(NonZeroU16::MIN.saturating_add(Slots::DEFAULT_ATTEMPTS - 1))]
    pub concurrency: NonZeroU16,
    /// Name servers for receivers' names, all asked at once; the first answer counts. If empty: the machine's
    /// own.
    pub name_servers: Vec<NameServer>,
    /// File of trusted root certificates (PEM) beside the machine's own.
    pub root_certificates: Option<PathBuf>,
}

/// serde would take the beginning of a longer list.
fn five<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[Period; 5], D::Error> {
    let all = Vec::deserialize(deserializer)?;
    let length = all.len();
    all.try_into()
        .map_err(|_: Vec<_>| D::Error::invalid_length(length, &"5 durations"))
}

impl WebhooksConfig {
    pub(super) fn faults(&self) -> Vec<Fault> {
        // The machine's own certificates are no matter of the configuration.
        let made = self.root_certificates.as_ref().map(|_| {
            let settings = self.sender("service", "https://docs.example")?;
            let sender = HttpSender::new(&settings, Arc::new(SystemClock));
            sender.map(drop).or_else(|error| match error {
                SenderError::Tls(_) => Err(fault(
                    "webhooks.root_certificates",
                    format!("cannot be used: {}", error_chain(&error)),
                )),
                _ => Ok(()),
            })
        });
        made.and_then(Result::err).into_iter().collect()
    }

    /// The delays between the attempts of a delivery.
    pub fn retry_schedule(&self) -> RetrySchedule {
        RetrySchedule(self.retry_delays.map(Period::time_delta))
    }

    /// The concurrency of a worker.
    pub fn slots(&self) -> Slots {
        Slots::of(self.concurrency.get())
    }

    /// The settings of the webhook sender, which presents itself by the service's name and `docs_url`.
    pub fn sender(&self, service_name: &str, docs_url: &str) -> Result<SenderSettings, Fault> {
        let rules = AddressRules {
            policy: self.addresses,
            deny: self.deny_networks.iter().map(|network| network.0).collect(),
        };
        Ok(SenderSettings {
            name_servers: self.name_servers.iter().map(|server| server.0).collect(),
            extra_roots: read_roots("webhooks.root_certificates", self.root_certificates.as_ref())?,
            attempt_timeout: self.attempt_timeout.0,
            ..SenderSettings::new(service_name, docs_url, rules)
        })
    }
}

#[derive(Debug, Clone, SmartDefault, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TracingConfig {
    /// Address of the collector (OTLP over HTTP, protobuf), such as `http://collector:4318`; the default path
    /// is `/v1/traces`. If unset, tracing is off.
    pub otlp_endpoint: Option<ServiceUrl>,
    /// The recorded share of the traces that begin here.
    #[schemars(range(min = 0.0, max = 1.0))]
    #[default(0.1)]
    pub sample_ratio: f64,
}

impl TracingConfig {
    /// The settings of the span exporter; `None` without a collector.
    pub fn settings(&self, service_name: &str) -> Option<TelemetrySettings> {
        let ServiceUrl(mut endpoint) = self.otlp_endpoint.clone()?;
        if endpoint.path() == "/" {
            endpoint.set_path("/v1/traces");
        }
        Some(TelemetrySettings {
            endpoint,
            sample_ratio: self.sample_ratio,
            service_name: service_name.to_owned(),
            service_version: env!("CARGO_PKG_VERSION"),
        })
    }
}
