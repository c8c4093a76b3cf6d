//! Settings as plain values: the program maps its configuration to them.

use std::{net::IpAddr, num::NonZeroU16, time::Duration};

use secrecy::SecretString;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SenderSettings {
    /// The name of the shop or service, in `From` and below the text; truncated to 100 characters.
    pub name: String,
    /// `From` and the envelope's sender, which receives undeliverable mail. `Message-ID` uses its domain. The
    /// part before the `@` must be ASCII.
    pub address: String,
    /// The product's name, in mails to sellers.
    pub product: String,
}

#[derive(Debug, Clone)]
pub struct SmtpSettings {
    /// A host name or an IP address. The certificate must be valid for it.
    pub host: String,
    /// Default: the port of `security`.
    pub port: Option<u16>,
    pub security: Security,
    pub credentials: Option<Credentials>,
    /// The name in `EHLO`. Default: the machine's host name.
    pub hello_name: Option<String>,
    /// Certificates (PEM) that are trusted besides the machine's.
    pub extra_roots: Option<String>,
    /// Maximum number of concurrent connections. A mail's time does not begin before it has one.
    pub max_connections: NonZeroU16,
    /// How long an idle connection may be reused. Must be shorter than the server's own timeout.
    pub idle_timeout: Duration,
    /// Per address of the server.
    pub connect_timeout: Duration,
    /// For opening a connection that is ready for a mail, and for each mail up to its content. A worker's
    /// lease on a mail must be longer than both and `acceptance_timeout`.
    pub timeout: Duration,
    /// For the server's reply to the content.
    pub acceptance_timeout: Duration,
}

impl SmtpSettings {
    /// STARTTLS, no credentials, two connections.
    pub fn new(host: impl Into<String>) -> Self {
        const CONNECTIONS: NonZeroU16 = NonZeroU16::MIN.saturating_add(1);
        Self {
            host: host.into(),
            port: None,
            security: Security::StartTls,
            credentials: None,
            hello_name: None,
            extra_roots: None,
            max_connections: CONNECTIONS,
            idle_timeout: Duration::from_mins(1),
            connect_timeout: Duration::from_secs(10),
            timeout: Duration::from_mins(1),
            acceptance_timeout: Duration::from_mins(10),
        }
    }
}

/// `mail.security`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Security {
    /// STARTTLS (RFC 3207). If the server does not offer it, nothing is sent.
    #[default]
    StartTls,
    /// TLS from the first byte (RFC 8314).
    Tls,
    /// No TLS: only for a server on this machine.
    Plain,
}

impl Security {
    pub const fn default_port(self) -> u16 {
        match self {
            Self::StartTls => 587,
            Self::Tls => 465,
            Self::Plain => 25,
        }
    }
}

/// Credentials for `AUTH PLAIN` or `AUTH LOGIN`.
#[derive(Debug, Clone)]
pub struct Credentials {
    pub username: String,
    pub password: SecretString,
}

#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("the sender's name must contain at least one visible character")]
    SenderName,
    #[error("the sender's address must be one such as shop@example.com")]
    SenderAddress(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Many servers refuse such addresses.
    #[error("the sender's address must be ASCII before the @")]
    SenderAddressBeyondAscii,
    #[error("the server's host must be a name or an address, without a port")]
    Host,
    #[error("without TLS, the server must be on this machine: localhost or a loopback address")]
    PlainBeyondLoopback,
    #[error("the name given in EHLO must be a host name")]
    HelloName,
    #[error("TLS cannot be set up with the given certificates")]
    Tls(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl SmtpSettings {
    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        let is_word = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
        let is_of_a_name = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
        let is_name = !self.host.is_empty() && self.host.bytes().all(is_of_a_name);
        if !is_name && self.host.parse::<IpAddr>().is_err() {
            return Err(SettingsError::Host);
        }
        if self.security == Security::Plain && !is_loopback(&self.host) {
            return Err(SettingsError::PlainBeyondLoopback);
        }
        if !self.hello_name.as_deref().is_none_or(is_word) {
            return Err(SettingsError::HelloName);
        }
        Ok(())
    }
}

/// `localhost` is always this machine (RFC 6761 §6.3).
fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(host: &str) -> SmtpSettings {
        SmtpSettings {
            security: Security::Plain,
            ..SmtpSettings::new(host)
        }
    }

    #[test]
    fn plain_smtp_is_allowed_on_this_machine_only() {
        for local in ["localhost", "LocalHost", "127.0.0.1", "127.8.8.8", "::1"] {
            assert!(plain(local).check().is_ok(), "{local}");
        }
        for remote in [
            "mail.example.com",
            "10.0.0.1",
            "0.0.0.0",
            "localhost.example.com",
            "::ffff:10.0.0.1",
        ] {
            let refusal = plain(remote).check();
            assert!(
                matches!(refusal, Err(SettingsError::PlainBeyondLoopback)),
                "{remote}"
            );
            assert!(SmtpSettings::new(remote).check().is_ok(), "{remote}");
        }
    }

    #[test]
    fn settings_that_would_break_the_dialogue_are_refused() {
        for host in ["", "mail example", "mail\r\nDATA", "mail.example.com:587"] {
            assert!(
                matches!(SmtpSettings::new(host).check(), Err(SettingsError::Host)),
                "{host:?}"
            );
        }
        for name in ["", "me\r\nMAIL FROM:<eve@example.com>", "a b"] {
            let mut settings = SmtpSettings::new("mail.example.com");
            settings.hello_name = Some(name.to_owned());
            assert!(
                matches!(settings.check(), Err(SettingsError::HelloName)),
                "{name:?}"
            );
        }
    }
}
