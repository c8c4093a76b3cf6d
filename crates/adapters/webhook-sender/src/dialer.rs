//! Opens connections to checked addresses: TCP, and TLS for the host's name.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use webhooks::{AttemptFailure, Host};

use crate::connection::{Connection, Peer, Stream};
use crate::read_limit::{LimitedReader, ReadLimit};
use crate::{SenderSettings, SettingsError, failure};

/// How many of a host's addresses are tried. Each try gets an equal share of the remaining time.
const MAX_ADDRESSES: usize = 4;

pub(crate) struct Dialer {
    tls: TlsConnector,
    timeout: Duration,
}

impl Dialer {
    pub(crate) fn new(settings: &SenderSettings) -> Result<Self, SettingsError> {
        let tls = outgoing_tls::client_config(settings.extra_roots.as_deref());
        let mut tls = tls.map_err(SettingsError::Tls)?;
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            tls: TlsConnector::from(Arc::new(tls)),
            timeout: settings.connect_timeout,
        })
    }

    /// Connects to the first address that accepts.
    pub(crate) async fn open(&self, peer: Peer, addresses: &[IpAddr]) -> Result<Connection, AttemptFailure> {
        let (address, stream) = self.connect(peer.port, addresses).await?;
        // Messages are small, and the sender waits for the answer.
        stream.set_nodelay(true).map_err(|_| AttemptFailure::Connect)?;
        let tls_limit = Arc::new(ReadLimit::default());
        let stream: Box<dyn Stream> = if peer.is_tls {
            tls_limit.allow_tls();
            let (reader, writer) = stream.into_split();
            let reader = LimitedReader {
                reader,
                limit: Arc::clone(&tls_limit),
                beyond: "more than 256 KiB of TLS came before the answer",
            };
            let stream = tokio::io::join(reader, writer);
            let connected = self.tls.connect(server_name(&peer.host)?, stream).await;
            Box::new(connected.map_err(|error| failure::of_stream(&error))?)
        } else {
            Box::new(stream)
        };
        Connection::open(peer, address, stream, tls_limit).await
    }

    async fn connect(&self, port: u16, addresses: &[IpAddr]) -> Result<(IpAddr, TcpStream), AttemptFailure> {
        let end = Instant::now() + self.timeout;
        let mut last = AttemptFailure::Connect;
        let tried = addresses.len().min(MAX_ADDRESSES);
        for (address, untried) in addresses.iter().copied().zip((1..=tried).rev()) {
            let now = Instant::now();
            let share = end.saturating_duration_since(now) / u32::try_from(untried).unwrap_or(1);
            match timeout_at(now + share, TcpStream::connect(SocketAddr::new(address, port))).await {
                Ok(Ok(stream)) => return Ok((address, stream)),
                Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    last = AttemptFailure::Refused;
                }
                Ok(Err(_)) => last = AttemptFailure::Connect,
                Err(_) => last = AttemptFailure::TimedOut,
            }
        }
        Err(last)
    }
}

/// The certificate must be valid for the host in the webhook's URL, also if that is an IP address.
fn server_name(host: &Host) -> Result<ServerName<'static>, AttemptFailure> {
    match host {
        Host::Address(address) => Ok(ServerName::from(*address)),
        Host::Name(name) => ServerName::try_from(name.clone())
            .map_err(|_| AttemptFailure::tls("no certificate can be valid for the host's name")),
    }
}
