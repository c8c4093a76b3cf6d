//! `mail.*`: how mails are sent.

use std::{fs, num::NonZeroU16, path::PathBuf, sync::Arc, time::Duration};

use adapter_mail::{
    Credentials, FolderMailer, Security, SenderSettings, SettingsError, SmtpMailer, SmtpSettings,
};
use adapter_sealing::SystemClock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::{Period, Secret};
use crate::{error_chain, external_services::Mailers};

/// The longest that one sending may take: a worker's lease on a mail lasts five minutes.
const SENDING_MAX: Duration = Duration::from_mins(4);

/// `mail.*`.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
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
    pub max_connections: NonZeroU16,
    /// How long a connection may have been unused and still be taken for the next mail.
    #[schemars(extend("x-range" = "from 1s to 4m"))]
    pub idle_timeout: Period,
    /// How long connecting may take.
    #[schemars(extend("x-range" = "from 100ms to 4m"))]
    pub connect_timeout: Period,
    /// How long one sending may take in all.
    #[schemars(extend("x-range" = "from 1s to 4m"))]
    pub timeout: Period,
    /// A folder to lay mails into, instead of sending them.
    pub folder: Option<PathBuf>,
}

/// `mail.security`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MailSecurity {
    /// TLS after the greeting.
    Starttls,
    /// TLS from the first byte.
    Tls,
    /// None: only to a server on the same machine.
    Plain,
}

impl From<MailSecurity> for Security {
    fn from(security: MailSecurity) -> Self {
        match security {
            MailSecurity::Starttls => Self::StartTls,
            MailSecurity::Tls => Self::Tls,
            MailSecurity::Plain => Self::Plain,
        }
    }
}

impl Default for MailConfig {
    fn default() -> Self {
        let usual = SmtpSettings::new("");
        Self {
            sender_name: None,
            sender_address: None,
            host: None,
            port: None,
            security: MailSecurity::Starttls,
            username: None,
            password: None,
            hello_name: None,
            root_certificates: None,
            max_connections: usual.max_connections,
            idle_timeout: Period(usual.idle_timeout),
            connect_timeout: Period(usual.connect_timeout),
            timeout: Period(usual.timeout),
            folder: None,
        }
    }
}

/// What is wrong: the key, and why.
type Problem = (&'static str, String);

impl MailConfig {
    pub(super) fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let longest = Period(SENDING_MAX);
        for (key, period, at_least) in [
            ("mail.idle_timeout", self.idle_timeout, 1_000),
            ("mail.connect_timeout", self.connect_timeout, 100),
            ("mail.timeout", self.timeout, 1_000),
        ] {
            let at_least = Period(Duration::from_millis(at_least));
            if !(at_least..=longest).contains(&period) {
                problems.push((key, format!("must be from {at_least} to {longest}")));
            }
        }
        match (&self.username, &self.password) {
            (Some(_), None) => {
                problems.push(("mail.password", "must be set where mail.username is".to_owned()));
            }
            (None, Some(_)) => {
                problems.push(("mail.username", "must be set where mail.password is".to_owned()));
            }
            _ => {}
        }
        if problems.is_empty() {
            problems.extend(self.mailer().err());
        }
        problems
    }

    /// Who sends mails; nobody where neither a server nor a folder is configured.
    pub fn mailer(&self) -> Result<Option<Arc<dyn Mailers>>, Problem> {
        Ok(match (&self.host, &self.folder) {
            (None, None) => None,
            (Some(_), Some(_)) => {
                return Err(("mail.folder", "must not be set beside mail.host".to_owned()));
            }
            (Some(host), None) => {
                let mailer = SmtpMailer::new(&self.sender()?, &self.smtp(host)?, Arc::new(SystemClock));
                Some(Arc::new(mailer.map_err(refused)?))
            }
            (None, Some(folder)) => {
                let mailer = FolderMailer::new(&self.sender()?, folder, Arc::new(SystemClock));
                Some(Arc::new(mailer.map_err(refused)?))
            }
        })
    }

    fn sender(&self) -> Result<SenderSettings, Problem> {
        let needed = |key| {
            (
                key,
                "must be set, so that buyers and sellers see who writes to them".to_owned(),
            )
        };
        Ok(SenderSettings {
            name: self
                .sender_name
                .clone()
                .ok_or_else(|| needed("mail.sender_name"))?,
            address: self
                .sender_address
                .clone()
                .ok_or_else(|| needed("mail.sender_address"))?,
        })
    }

    fn smtp(&self, host: &str) -> Result<SmtpSettings, Problem> {
        let read = |path: &PathBuf| {
            fs::read_to_string(path).map_err(|error| {
                let reason = format!("names {}, which cannot be read: {error}", path.display());
                ("mail.root_certificates", reason)
            })
        };
        let credentials = self.username.clone().zip(self.password.as_ref());
        Ok(SmtpSettings {
            port: self.port.map(NonZeroU16::get),
            security: self.security.into(),
            credentials: credentials.map(|(username, password)| Credentials {
                username,
                password: password.0.clone(),
            }),
            hello_name: self.hello_name.clone(),
            extra_roots: self.root_certificates.as_ref().map(read).transpose()?,
            max_connections: self.max_connections,
            idle_timeout: self.idle_timeout.0,
            connect_timeout: self.connect_timeout.0,
            timeout: self.timeout.0,
            ..SmtpSettings::new(host)
        })
    }
}

#[expect(clippy::needless_pass_by_value, reason = "called by map_err")]
fn refused(error: SettingsError) -> Problem {
    let key = match error {
        SettingsError::SenderName => "mail.sender_name",
        SettingsError::SenderAddress(_) | SettingsError::SenderAddressBeyondAscii => "mail.sender_address",
        SettingsError::Host => "mail.host",
        SettingsError::PlainBeyondLoopback => "mail.security",
        SettingsError::HelloName => "mail.hello_name",
        SettingsError::NoTime => "mail.timeout",
        SettingsError::Tls(_) => "mail.root_certificates",
    };
    (key, format!("cannot be used: {}", error_chain::describe(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(host: &str) -> MailConfig {
        MailConfig {
            sender_name: Some("Shop".to_owned()),
            sender_address: Some("shop@example.com".to_owned()),
            host: Some(host.to_owned()),
            ..MailConfig::default()
        }
    }

    fn keys(config: &MailConfig) -> Vec<&'static str> {
        config.problems().into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn a_server_or_a_folder_makes_a_mailer_and_neither_makes_none() {
        assert!(MailConfig::default().mailer().unwrap().is_none());
        assert!(to("mail.example.com").mailer().unwrap().is_some());
        let folder = Some(PathBuf::from("mails"));
        let in_folder = MailConfig {
            host: None,
            folder: folder.clone(),
            ..to("")
        };
        assert!(in_folder.mailer().unwrap().is_some());
        assert_eq!(
            keys(&MailConfig {
                folder,
                ..to("mail.example.com")
            }),
            ["mail.folder"]
        );
    }

    #[test]
    fn what_is_wrong_is_named_by_its_key() {
        let fine = || to("mail.example.com");
        let wrong = [
            ("mail.host", to("mail example com")),
            (
                "mail.sender_name",
                MailConfig {
                    sender_name: None,
                    ..fine()
                },
            ),
            (
                "mail.sender_address",
                MailConfig {
                    sender_address: Some("shop".to_owned()),
                    ..fine()
                },
            ),
            (
                "mail.security",
                MailConfig {
                    security: MailSecurity::Plain,
                    ..fine()
                },
            ),
            (
                "mail.password",
                MailConfig {
                    username: Some("shop".to_owned()),
                    ..fine()
                },
            ),
            (
                "mail.username",
                MailConfig {
                    password: Some("x".to_owned().into()),
                    ..fine()
                },
            ),
            (
                "mail.hello_name",
                MailConfig {
                    hello_name: Some("a b".to_owned()),
                    ..fine()
                },
            ),
            (
                "mail.timeout",
                MailConfig {
                    timeout: Period(Duration::from_mins(5)),
                    ..fine()
                },
            ),
            (
                "mail.root_certificates",
                MailConfig {
                    root_certificates: Some("/nowhere/at/all.pem".into()),
                    ..fine()
                },
            ),
        ];
        for (key, config) in wrong {
            assert_eq!(keys(&config), [key]);
        }
    }
}
