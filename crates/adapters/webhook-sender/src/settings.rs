//! What is configured about sending. Plain values, so that a program maps its configuration onto them.

use std::{net::SocketAddr, num::NonZeroUsize, time::Duration};

use webhooks::AddressRules;

/// The longest that a connection is kept in all, however busy it is: the addresses of a name change, and certificates end.
const LONGEST_KEPT: Duration = Duration::from_mins(1);

/// In whose name, whereto and how patiently deliveries are sent.
#[derive(Debug, Clone)]
pub struct SenderSettings {
    /// The product of `User-Agent`, as in `<service_name>-webhooks/1.0` (RFC 9110 §10.1.5: a token).
    pub service_name: String,
    /// Where an integrator who meets `User-Agent` in a log reads on.
    pub docs_url: String,
    /// Which addresses may be connected to.
    pub rules: AddressRules,
    /// The servers that are asked for names, over UDP and, for long answers, TCP. Without any, those of the machine.
    pub name_servers: Vec<SocketAddr>,
    /// Certificates (PEM, one or more) that are trusted beside the machine's own store: a marketplace's private authority.
    pub extra_roots: Option<String>,
    /// How long one attempt may take in all; a call never takes longer. A worker's claim on a delivery has to be longer.
    pub attempt_timeout: Duration,
    /// How long the look-up of a name may take, all its queries together.
    pub resolve_timeout: Duration,
    /// How long connecting may take, all addresses of the host together; TLS comes after it.
    pub connect_timeout: Duration,
    /// Attempts at a time to one host, whatever its port. Further ones are postponed, and nobody waits. Up to twice as many
    /// there are where applications that have less than an eighth of their share come to a full host.
    pub connections_per_host: NonZeroUsize,
    /// Of these, what one application may have: its share. Applications may have their receivers at the same host, and one
    /// with slow ones leaves places to the others.
    pub connections_per_application: NonZeroUsize,
    /// Connections that are kept for further deliveries, in all; the longest unused goes first. 0 keeps none.
    pub kept_connections: usize,
    /// How long after it was opened a connection may serve another delivery; at most a minute.
    pub kept_for: Duration,
}

impl SenderSettings {
    /// Deliveries of the given service to the addresses that `rules` let pass, with the deadlines of D52: 2 s for the name,
    /// 3 s for the connection, 10 s in all. 256 attempts at a time to one host, 64 of them of one application; 256 kept
    /// connections, kept for a minute.
    pub fn new(service_name: impl Into<String>, docs_url: impl Into<String>, rules: AddressRules) -> Self {
        const PER_HOST: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);
        const PER_APPLICATION: NonZeroUsize = NonZeroUsize::MIN.saturating_add(63);
        Self {
            service_name: service_name.into(),
            docs_url: docs_url.into(),
            rules,
            name_servers: Vec::new(),
            extra_roots: None,
            attempt_timeout: Duration::from_secs(10),
            resolve_timeout: Duration::from_secs(2),
            connect_timeout: Duration::from_secs(3),
            connections_per_host: PER_HOST,
            connections_per_application: PER_APPLICATION,
            kept_connections: 256,
            kept_for: LONGEST_KEPT,
        }
    }

    /// Refuses what can never work.
    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        let is_word = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
        if !is_word(&self.service_name) || !is_word(&self.docs_url) {
            return Err(SettingsError::UserAgent);
        }
        let limits = [self.attempt_timeout, self.resolve_timeout, self.connect_timeout];
        if limits.iter().any(Duration::is_zero) {
            return Err(SettingsError::NoTime);
        }
        if self.kept_for > LONGEST_KEPT {
            return Err(SettingsError::KeptTooLong);
        }
        Ok(())
    }
}

/// Why settings are refused.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// Would break the header.
    #[error("the service's name and the address of its documentation must be visible ASCII without spaces")]
    UserAgent,
    /// Would fail each delivery.
    #[error("time limits must be longer than zero")]
    NoTime,
    /// Longer than what was resolved and trusted then can be relied upon.
    #[error("connections are kept for at most a minute")]
    KeptTooLong,
    /// The machine's name servers cannot be read, or there are none.
    #[error("names cannot be resolved with the machine's settings")]
    NameServers(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The additional certificates cannot be read, nothing is trusted, or TLS cannot be set up.
    #[error("TLS cannot be set up with the given certificates")]
    Tls(#[source] Box<dyn std::error::Error + Send + Sync>),
}
