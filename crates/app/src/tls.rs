//! TLS 1.2 and 1.3 on the listeners, by rustls, with certificates that are reloaded while the program runs.
//!
//! The files are read once a minute and on SIGHUP. If they cannot be used, that is logged once and the
//! previous certificate stays in use. Open connections are not affected.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use adapter_sealing::SystemClock;
use anyhow::{Context as _, bail};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use kernel::{Clock, error_chain};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::task::AbortOnDropHandle;
use x509_cert::der::Decode as _;

use crate::config::{ServerConfig as Listeners, TlsConfig};

/// How often the files are read without a signal.
const RELOAD_INTERVAL: Duration = Duration::from_mins(1);
/// How long before its expiry a certificate is warned about, once a day.
const WARNING_PERIOD: TimeDelta = TimeDelta::days(14);
/// The `notAfter` of a certificate without expiry (RFC 5280, section 4.1.2.5), in seconds since 1970.
const NO_END: i64 = 253_402_300_799;

/// The TLS of the public listener and of the back office, if configured.
pub(crate) struct Tls([Option<Certificate>; 2]);

impl Tls {
    /// Reads the configured certificates.
    pub(crate) async fn load(listeners: &Listeners) -> anyhow::Result<Self> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let load = async |section, listener, config: &TlsConfig| match config.files() {
            Some((certificate, key)) => {
                let files = Files {
                    section,
                    certificate: certificate.to_owned(),
                    key: key.to_owned(),
                };
                Certificate::load(listener, files, &clock).await.map(Some)
            }
            None => Ok(None),
        };
        Ok(Self([
            load("server.tls", "api", &listeners.tls).await?,
            load("server.backoffice_tls", "backoffice", &listeners.backoffice_tls).await?,
        ]))
    }

    /// The TLS configurations of the public listener and the back office.
    pub(crate) fn server_configs(&self) -> anyhow::Result<[Option<ServerConfig>; 2]> {
        let [public, backoffice] = &self.0;
        let config = |of: &Option<Certificate>| of.as_ref().map(server_config).transpose();
        Ok([config(public)?, config(backoffice)?])
    }

    /// Reloads the certificates until the handle is dropped. Without any, SIGHUP still ends the process.
    /// Needs a runtime.
    pub(crate) fn keep_current(self) -> io::Result<Option<AbortOnDropHandle<()>>> {
        let mut certificates = self.0.into_iter().flatten().collect::<Vec<_>>();
        if certificates.is_empty() {
            return Ok(None);
        }
        let mut hangup = signal(SignalKind::hangup())?;
        let reading = async move {
            let mut due = interval(RELOAD_INTERVAL);
            due.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                let signalled = tokio::select! {
                    _ = hangup.recv() => true,
                    _ = due.tick() => false,
                };
                for certificate in &mut certificates {
                    certificate.reload(signalled).await;
                }
            }
        };
        Ok(Some(AbortOnDropHandle::new(tokio::spawn(reading))))
    }
}

fn server_config(certificate: &Certificate) -> anyhow::Result<ServerConfig> {
    Ok(
        ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .context("TLS cannot be used")?
            .with_no_client_auth()
            .with_cert_resolver(certificate.served.clone()),
    )
}

/// The files of a listener's certificate.
struct Files {
    /// The configuration section of the files.
    section: &'static str,
    certificate: PathBuf,
    key: PathBuf,
}

impl Files {
    /// Errors name both files but never show their content.
    async fn read(&self) -> anyhow::Result<CertifiedKey> {
        let section = self.section;
        let (certificate, key) = (self.certificate.display(), self.key.display());
        let chain = read(&format!("{section}.certificate"), &self.certificate).await?;
        let chain = CertificateDer::pem_slice_iter(&chain).collect::<Result<Vec<_>, _>>();
        let chain = chain.ok().filter(|chain| !chain.is_empty()).with_context(|| {
            format!(
                "`{section}.certificate` names {certificate}, in which there is no whole certificate in PEM \
                 (`-----BEGIN CERTIFICATE-----`)"
            )
        })?;
        let private = read(&format!("{section}.key"), &self.key).await?;
        // Without the cause, which may quote the file.
        let private = PrivateKeyDer::from_pem_slice(&private).ok().with_context(|| {
            format!("`{section}.key` names {key}, in which there is no whole private key in PEM; an encrypted one cannot be used")
        })?;
        let signing = ring::sign::any_supported_type(&private).with_context(|| {
            format!(
                "`{section}.key` names {key}, whose key cannot be used: it has to be RSA (2048 to 4096 bits), ECDSA (P-256, \
                 P-384) or Ed25519"
            )
        })?;
        let pair = CertifiedKey::new(chain, signing);
        pair.keys_match().map_err(|error| {
            let is_version_1 = error.to_string().contains("UnsupportedCertVersion");
            let reason = if is_version_1 { format!(
                "the first certificate in {certificate} (`{section}`) is of X.509 version 1, which clients refuse: sign it with \
                 extensions, such as its names (`openssl x509 -req -extfile`)"
            ) } else { format!(
                "the key in {key} is not that of the first certificate in {certificate} (`{section}`): the listener's own \
                 certificate comes first, those that lead to its root after it"
            ) };
            anyhow::Error::new(error).context(reason)
        })?;
        Ok(pair)
    }
}

async fn read(config_key: &str, path: &Path) -> anyhow::Result<Vec<u8>> {
    let read = tokio::fs::read(path).await;
    read.with_context(|| format!("`{config_key}` names {}, which cannot be read", path.display()))
}

/// The certificate for new connections.
#[derive(Debug)]
struct Served(watch::Sender<Arc<CertifiedKey>>);

impl ResolvesServerCert for Served {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.borrow()))
    }
}

/// A listener's certificate, and the state of its log messages.
struct Certificate {
    /// The listener's name in metrics.
    listener: &'static str,
    files: Files,
    served: Arc<Served>,
    clock: Arc<dyn Clock>,
    /// Why the current files cannot be used.
    refused: Option<String>,
    /// The problem and the day of the last warning.
    warned: Option<(&'static str, NaiveDate)>,
}

const NOT_YET_VALID: &str = "is not valid yet: clients refuse it";
const EXPIRED: &str = "has expired: clients refuse it";
const EXPIRES_SOON: &str = "expires soon: renew it";

impl Certificate {
    async fn load(listener: &'static str, files: Files, clock: &Arc<dyn Clock>) -> anyhow::Result<Self> {
        let pair = files.read().await?;
        Ok(Self {
            listener,
            files,
            served: Arc::new(Served(watch::Sender::new(Arc::new(pair)))),
            clock: Arc::clone(clock),
            refused: None,
            warned: None,
        })
    }

    /// Uses the current files if the certificate changed or a signal requested it.
    async fn reload(&mut self, signalled: bool) {
        let section = self.files.section;
        match self.files.read().await.and_then(|pair| self.no_worse(pair)) {
            Ok(pair) => {
                let was_refused = self.refused.take().is_some();
                if signalled || was_refused || pair.cert != self.served.0.borrow().cert {
                    self.served.0.send_replace(Arc::new(pair));
                    self.warned = None;
                    tracing::info!(section, "the certificate was reloaded");
                }
            }
            Err(error) => {
                metrics::counter!("tls_reload_failures_total", "listener" => self.listener).increment(1);
                let error = error_chain(error.as_ref());
                if signalled || self.refused.as_ref() != Some(&error) {
                    tracing::error!(section, %error, "the new certificate cannot be used: the previous one stays in use");
                }
                self.refused = Some(error);
            }
        }
        self.check_validity();
    }

    /// Refuses a pair that clients refuse now, as long as they take the one in use.
    fn no_worse(&self, pair: CertifiedKey) -> anyhow::Result<CertifiedKey> {
        let now = self.clock.now();
        let is_taken = |chain: &[CertificateDer<'_>]| {
            validity_period(chain).is_none_or(|(from, to)| from <= now && to.is_none_or(|to| now <= to))
        };
        if is_taken(&self.served.0.borrow().cert) && !is_taken(&pair.cert) {
            bail!(
                "the first certificate in {} is expired or not valid yet, by this machine's clock",
                self.files.certificate.display()
            );
        }
        Ok(pair)
    }

    /// Updates the metric of the certificate's expiry, and warns if clients refuse it now or will soon.
    fn check_validity(&mut self) {
        let Some((from, to)) = validity_period(&self.served.0.borrow().cert) else {
            return;
        };
        if let Some(seconds) = to.and_then(|to| u64::try_from(to.timestamp()).ok()) {
            metrics::gauge!("tls_certificate_expiry_time_seconds", "listener" => self.listener)
                .set(Duration::from_secs(seconds).as_secs_f64());
        }
        let Some(problem) = new_problem(from, to, self.clock.now(), &mut self.warned) else {
            return;
        };
        let (section, certificate) = (self.files.section, self.files.certificate.display());
        let end = to.map(tracing::field::display);
        tracing::warn!(section, %certificate, end, "the certificate {problem}");
    }
}

/// The problem with a certificate at this time, once a day.
fn new_problem(
    from: DateTime<Utc>,
    to: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
    warned: &mut Option<(&'static str, NaiveDate)>,
) -> Option<&'static str> {
    let problem = match to {
        _ if now < from => NOT_YET_VALID,
        Some(to) if now > to => EXPIRED,
        Some(to) if to - now <= WARNING_PERIOD => EXPIRES_SOON,
        _ => return None,
    };
    let today = Some((problem, now.date_naive()));
    (std::mem::replace(warned, today) != today).then_some(problem)
}

/// The validity period of a chain's first certificate; the end is `None` for one without expiry.
fn validity_period(chain: &[CertificateDer<'_>]) -> Option<(DateTime<Utc>, Option<DateTime<Utc>>)> {
    let certificate = x509_cert::Certificate::from_der(chain.first()?).ok()?;
    let validity = certificate.tbs_certificate.validity;
    let at = |time: x509_cert::time::Time| {
        let seconds = i64::try_from(time.to_unix_duration().as_secs()).ok()?;
        DateTime::from_timestamp(seconds, 0)
    };
    let end = at(validity.not_after).filter(|end| end.timestamp() < NO_END);
    Some((at(validity.not_before)?, end))
}

#[cfg(test)]
mod tests;
