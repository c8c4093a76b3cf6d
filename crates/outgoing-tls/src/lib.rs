//! TLS with webhook receivers, carriers and the mail server.

use std::error::Error;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// The certificates beside a server's own that are considered, in the order in which they came. Most servers send one
/// or two.
const MAX_INTERMEDIATES: usize = 3;

/// TLS 1.2 and 1.3 over `ring`. Trusts the machine's certificates, which its owner can update without a new release, and
/// those of `extra_roots` (PEM). Fails if these are unreadable, or there are none at all.
pub fn client_config(extra_roots: Option<&str>) -> Result<ClientConfig, Box<dyn Error + Send + Sync>> {
    let mut roots = RootCertStore::empty();
    let machine = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(machine.certs);
    if let Some(pem) = extra_roots {
        let before = roots.len();
        for root in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            roots.add(root?)?;
        }
        if roots.len() == before {
            return Err("the additional certificates file contains no certificate".into());
        }
    }
    if roots.is_empty() {
        let why = machine.errors.into_iter().next();
        return Err(why.map_or_else(|| "the machine has no trusted certificates".into(), Into::into));
    }
    let provider = Arc::new(default_provider());
    let webpki =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build()?;
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let builder = builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(ShortChains(webpki)));
    Ok(builder.with_no_client_auth())
}

/// Verifies short chains alone. Hundreds of certificates that fit each other would hold up a thread for many seconds, and
/// with it all other work: no deadline interrupts that. They need not be trusted for it.
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
