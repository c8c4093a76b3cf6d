//! TLS of the listeners' own: TLS 1.2 and 1.3 by rustls, with certificates that are replaced while the program runs.
//!
//! Only HTTP/1.1 is agreed on (ALPN): what limits a connection's requests in time goes by one request after the other, which
//! those of HTTP/2 are not (see `connections`).

mod pair;
mod reloading;
mod validity;

use std::{path::PathBuf, sync::Arc};

use anyhow::Context as _;
use kernel::Clock;
use rustls::{ServerConfig, crypto::ring};
use tokio_rustls::TlsAcceptor;

use self::{
    pair::Pair,
    reloading::{Look, Reloading, Served},
};
use crate::config::{ServerConfig as Listeners, TlsConfig};

/// What clients and server may speak within TLS.
const PROTOCOL: &[u8] = b"http/1.1";

/// The files of a listener's certificate.
#[derive(Debug, Clone)]
struct Files {
    /// The section of the configuration that names them.
    section: &'static str,
    certificate: PathBuf,
    key: PathBuf,
}

impl Files {
    /// The listener's name in metrics.
    fn listener(&self) -> &'static str {
        if self.section == "server.tls" {
            "api"
        } else {
            "backoffice"
        }
    }

    /// Those of a section, where its listener speaks TLS.
    fn named(section: &'static str, config: &TlsConfig) -> Option<Self> {
        let (certificate, key) = config.files()?;
        Some(Self {
            section,
            certificate: certificate.to_owned(),
            key: key.to_owned(),
        })
    }
}

/// The public listener's section and the marketplace's.
fn sections(listeners: &Listeners) -> [(&'static str, &TlsConfig); 2] {
    [
        ("server.tls", &listeners.tls),
        ("server.backoffice_tls", &listeners.backoffice_tls),
    ]
}

/// TLS of one listener.
struct Tls {
    acceptor: TlsAcceptor,
    reloading: Look,
}

/// TLS of both listeners, where they have it.
#[derive(Default)]
pub(crate) struct Secured {
    public: Option<Tls>,
    backoffice: Option<Tls>,
}

impl Secured {
    /// Reads the certificates that the configuration names. Needs a runtime.
    pub(crate) async fn load(listeners: &Listeners, clock: &Arc<dyn Clock>) -> anyhow::Result<Self> {
        let [public, backoffice] = sections(listeners);
        Ok(Self {
            public: Tls::load(public, clock).await?,
            backoffice: Tls::load(backoffice, clock).await?,
        })
    }

    /// Tells what is wrong with the certificates that the configuration names, without serving them.
    pub(crate) async fn check(listeners: &Listeners) -> anyhow::Result<()> {
        for (section, config) in sections(listeners) {
            if let Some(files) = Files::named(section, config) {
                Pair::of(&files, &files.read().await)?;
            }
        }
        Ok(())
    }

    /// What shakes hands with the clients of the public listener, and of the marketplace's.
    pub(crate) fn acceptors(&self) -> [Option<TlsAcceptor>; 2] {
        [&self.public, &self.backoffice].map(|tls| tls.as_ref().map(|tls| tls.acceptor.clone()))
    }

    /// Begins to look after the certificates, where there are any; see [`Reloading`].
    pub(crate) fn keep_current(self) -> std::io::Result<Option<Reloading>> {
        let looks = [self.public, self.backoffice].into_iter().flatten();
        let looks = looks.map(|tls| tls.reloading).collect::<Vec<_>>();
        if looks.is_empty() {
            return Ok(None);
        }
        Reloading::start(looks).map(Some)
    }
}

impl Tls {
    async fn load(
        (section, config): (&'static str, &TlsConfig),
        clock: &Arc<dyn Clock>,
    ) -> anyhow::Result<Option<Self>> {
        let Some(files) = Files::named(section, config) else {
            return Ok(None);
        };
        let read = files.read().await;
        let pair = Pair::of(&files, &read)?;
        let served = Arc::new(Served::new(pair));
        let acceptor = TlsAcceptor::from(Arc::new(server_config(&served)?));
        let reloading = Look::new(files, &read, served, Arc::clone(clock));
        Ok(Some(Self { acceptor, reloading }))
    }
}

fn server_config(served: &Arc<Served>) -> anyhow::Result<ServerConfig> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .context("TLS cannot be used")?
        .with_no_client_auth()
        .with_cert_resolver(served.clone());
    config.alpn_protocols = vec![PROTOCOL.to_owned()];
    Ok(config)
}

#[cfg(test)]
mod tests;
