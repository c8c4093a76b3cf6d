//! Opens connections to checked addresses: TCP, and TLS for the host's name.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use webhooks::{AttemptFailure, Host};

use crate::connection::{Connection, Peer, Stream};
use crate::read_limit::{LimitedReader, ReadLimit};
use crate::{SenderSettings, SettingsError, failure};

/// How many of a host's addresses are tried. Each try gets an equal share of the remaining time.
const MAX_ADDRESSES: usize = 4;

/// The certificates beside a receiver's own that are considered, in the order in which they came. Most receivers send one
/// or two.
const MAX_INTERMEDIATES: usize = 3;

pub(crate) struct Dialer {
    tls: TlsConnector,
    timeout: Duration,
}

impl Dialer {
    pub(crate) fn new(settings: &SenderSettings) -> Result<Self, SettingsError> {
        Ok(Self {
            tls: TlsConnector::from(Arc::new(tls(settings.extra_roots.as_deref())?)),
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

/// TLS 1.2 and 1.3 over `ring`, HTTP/1.1 only. Trusts the machine's certificates, which its owner can update
/// without a new release.
fn tls(extra_roots: Option<&str>) -> Result<ClientConfig, SettingsError> {
    let refused = |why: rustls::Error| SettingsError::Tls(why.into());
    let mut roots = RootCertStore::empty();
    let machine = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(machine.certs);
    if let Some(pem) = extra_roots {
        let before = roots.len();
        for root in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let root = root.map_err(|why| SettingsError::Tls(why.into()))?;
            roots.add(root).map_err(refused)?;
        }
        if roots.len() == before {
            return Err(SettingsError::Tls(
                "the additional certificates file contains no certificate".into(),
            ));
        }
    }
    if roots.is_empty() {
        let why = machine.errors.into_iter().next();
        let nothing = || "the machine has no trusted certificates".into();
        return Err(SettingsError::Tls(why.map_or_else(nothing, Into::into)));
    }
    let provider = Arc::new(default_provider());
    let webpki = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let webpki = webpki.build().map_err(|why| SettingsError::Tls(why.into()))?;
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(refused)?.dangerous();
    let builder = builder.with_custom_certificate_verifier(Arc::new(ShortChains(webpki)));
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Verifies short chains alone. Hundreds of certificates that fit each other would hold up a thread for many seconds, and
/// with it all other deliveries: no deadline interrupts that.
#[derive(Debug)]
struct ShortChains(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for ShortChains {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let first = intermediates.get(..MAX_INTERMEDIATES).unwrap_or(intermediates);
        self.0.verify_server_cert(certificate, first, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
