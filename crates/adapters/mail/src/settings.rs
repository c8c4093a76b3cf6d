//! What is configured about mail. Plain values, so that a program maps its configuration onto them.

use std::{net::IpAddr, num::NonZeroU16, time::Duration};

use secrecy::SecretString;

/// In whose name mails go out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SenderSettings {
    /// The shop's or the service's name, as buyers know it: beside the address, and under the text. At most 100 characters
    /// are shown.
    pub name: String,
    /// The address in `From` and in the envelope, to which undeliverable mail returns; its domain also ends `Message-ID`.
    /// The part before `@` is ASCII.
    pub address: String,
}

/// Where and how mails are handed over.
#[derive(Debug, Clone)]
pub struct SmtpSettings {
    /// The server's name or address; its certificate has to be valid for it.
    pub host: String,
    /// Without it, the usual one for `security`: 587, 465 or 25.
    pub port: Option<u16>,
    /// How the connection is protected.
    pub security: Security,
    /// Without them, the client does not sign in.
    pub credentials: Option<Credentials>,
    /// What the client calls itself in `EHLO`. Without it, the machine's name.
    pub hello_name: Option<String>,
    /// Certificates (PEM, one or more) that are trusted beside the machine's own store.
    pub extra_roots: Option<String>,
    /// Connections at a time; further sendings wait for one, within `timeout`.
    pub max_connections: NonZeroU16,
    /// How long a connection may have been unused and still be taken for the next mail. Shorter than the server's patience.
    pub idle_timeout: Duration,
    /// How long one address of the server may take to accept a connection.
    pub connect_timeout: Duration,
    /// How long one sending may take in all, the wait for a connection included. A worker's lease on a mail has to be longer.
    pub timeout: Duration,
}

impl SmtpSettings {
    /// The server at `host`, with STARTTLS and without credentials: two connections that are kept for a minute, ten seconds
    /// to connect, one minute for a sending.
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
        }
    }
}

/// How a connection to the server is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// Plain at first, then TLS before anything is said that matters; a server that does not offer it is left (RFC 3207).
    StartTls,
    /// TLS from the first byte, as RFC 8314 recommends.
    Tls,
    /// Not at all: only for a server on this machine.
    Plain,
}

impl Security {
    /// The port that is meant when none is named.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::StartTls => 587,
            Self::Tls => 465,
            Self::Plain => 25,
        }
    }
}

/// Who signs in with the server, by `AUTH PLAIN` or `AUTH LOGIN`.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// The account.
    pub username: String,
    /// Its password.
    pub password: SecretString,
}

/// Why settings are refused.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// Nothing that can be read.
    #[error("the sender's name must hold at least one visible character")]
    SenderName,
    /// Not an address.
    #[error("the sender's address must be one such as shop@example.com")]
    SenderAddress(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// An address that many servers refuse.
    #[error("the sender's address must be ASCII before the @")]
    SenderAddressBeyondAscii,
    /// No server.
    #[error("the server's host must be a name or an address")]
    Host,
    /// What would let everybody on the way read and change mails.
    #[error("without TLS, the server must be on this machine: localhost or a loopback address")]
    PlainBeyondLoopback,
    /// Would break the dialogue.
    #[error("the name given in EHLO must be a host name")]
    HelloName,
    /// Would fail each sending.
    #[error("time limits must be longer than zero")]
    NoTime,
    /// The additional certificates cannot be read, or TLS cannot be set up.
    #[error("TLS cannot be set up with the given certificates")]
    Tls(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl SmtpSettings {
    /// Refuses what can never work, or never safely.
    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        let is_word = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
        if !is_word(&self.host) {
            return Err(SettingsError::Host);
        }
        if self.security == Security::Plain && !is_loopback(&self.host) {
            return Err(SettingsError::PlainBeyondLoopback);
        }
        if !self.hello_name.as_deref().is_none_or(is_word) {
            return Err(SettingsError::HelloName);
        }
        if self.timeout.is_zero() || self.connect_timeout.is_zero() {
            return Err(SettingsError::NoTime);
        }
        Ok(())
    }
}

/// `localhost` is the machine itself (RFC 6761 §6.3), whatever a name server says of other names.
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
    fn only_this_machine_is_spoken_to_in_the_clear() {
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
    fn settings_cannot_break_the_dialogue() {
        for host in ["", "mail example", "mail\r\nDATA"] {
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
        let mut settings = SmtpSettings::new("mail.example.com");
        settings.timeout = Duration::ZERO;
        assert!(matches!(settings.check(), Err(SettingsError::NoTime)));
    }

    #[test]
    fn a_password_is_not_shown() {
        let mut settings = SmtpSettings::new("mail.example.com");
        settings.credentials = Some(Credentials {
            username: "shop".to_owned(),
            password: "correct horse".to_owned().into(),
        });
        assert!(!format!("{settings:?}").contains("correct horse"));
    }
}
