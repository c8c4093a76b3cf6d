//! TLS to the database, configured by its URL: `sslmode`, `sslrootcert`, `sslcert` and `sslkey` have the same
//! meaning as in libpq (PostgreSQL documentation, "SSL Support").

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::crypto::{
    CryptoProvider, verify_tls12_signature, verify_tls13_signature, verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;
use x509_cert::Certificate;
use x509_cert::der::{Decode as _, Encode as _};

use super::url::{DatabaseUrlError, invalid};

kernel::words! {
    /// `sslmode`.
    #[derive(Default)]
    enum Mode {
        Disable = "disable",
        /// TLS if the server supports it; the server is not verified.
        #[default]
        Prefer = "prefer",
        /// TLS, without verifying the server; with `sslrootcert`, as [`Self::VerifyCa`].
        Require = "require",
        VerifyCa = "verify-ca",
        VerifyFull = "verify-full",
    }
}

/// The URL's TLS parameters.
#[derive(Debug, Default)]
pub(super) struct TlsParameters {
    mode: Mode,
    root_certificates: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl TlsParameters {
    /// Consumes a parameter of the URL; false if it is not about TLS.
    pub(super) fn take(&mut self, parameter: &str, value: &str) -> Result<bool, DatabaseUrlError> {
        let file = || Some(PathBuf::from(value)).filter(|path| !path.as_os_str().is_empty());
        match parameter {
            "sslmode" => {
                self.mode = Mode::parse(value).ok_or_else(|| {
                    invalid(
                        "has an sslmode that is none of disable, prefer, require, verify-ca and verify-full",
                    )
                })?;
            }
            "sslrootcert" => self.root_certificates = file(),
            "sslcert" => self.certificate = file(),
            "sslkey" => self.key = file(),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The driver's SSL mode.
    pub(super) const fn ssl_mode(&self) -> SslMode {
        match self.mode {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        }
    }

    /// The TLS connector; reads the named files.
    pub(super) fn connector(&self) -> Result<MakeRustlsConnect, DatabaseUrlError> {
        // A given root certificate must have an effect.
        if self.root_certificates.is_some() && matches!(self.mode, Mode::Disable | Mode::Prefer) {
            return Err(invalid(
                "names certificates in sslrootcert, but its sslmode checks none: write sslmode=verify-full",
            ));
        }
        let provider = Arc::new(default_provider());
        let verifier = self.verifier(&provider)?;
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| no_tls(&error))?;
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        let mut config = match (&self.certificate, &self.key) {
            (Some(certificate), Some(path)) if self.mode != Mode::Disable => {
                let key = PrivateKeyDer::from_pem_file(path);
                let key = key.map_err(|error| unusable("sslkey", path, &error))?;
                builder
                    .with_client_auth_cert(certificates("sslcert", certificate)?, key)
                    .map_err(|error| unusable("sslkey", path, &error))?
            }
            (Some(_), None) | (None, Some(_)) if self.mode != Mode::Disable => {
                return Err(invalid(
                    "names only one of sslcert and sslkey: a certificate goes with its key",
                ));
            }
            _ => builder.with_no_client_auth(),
        };
        // PostgreSQL 17 requires it for direct TLS (`sslnegotiation=direct`).
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(MakeRustlsConnect::new(config))
    }

    fn verifier(
        &self,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ServerCertVerifier>, DatabaseUrlError> {
        let checked = match self.mode {
            Mode::Disable | Mode::Prefer => false,
            Mode::Require => self.root_certificates.is_some(),
            Mode::VerifyCa | Mode::VerifyFull => true,
        };
        let webpki = if checked {
            let webpki =
                WebPkiServerVerifier::builder_with_provider(Arc::new(self.roots()?), Arc::clone(provider));
            let webpki = webpki.build();
            Some(webpki.map_err(|error| no_tls(&error))?)
        } else {
            None
        };
        Ok(Arc::new(Verifier {
            webpki,
            any_name: self.mode != Mode::VerifyFull,
            provider: Arc::clone(provider),
        }))
    }

    /// The root certificates of the file; without one, those of the machine.
    fn roots(&self) -> Result<RootCertStore, DatabaseUrlError> {
        let mut roots = RootCertStore::empty();
        let named = self
            .root_certificates
            .as_ref()
            .filter(|path| path.as_os_str() != "system");
        if let Some(path) = named {
            for root in certificates("sslrootcert", path)? {
                let added = roots.add(root);
                added.map_err(|error| unusable("sslrootcert", path, &error))?;
            }
        } else {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        if roots.is_empty() {
            return Err(invalid(
                "demands a certificate that is trusted, and this machine trusts none: install its root certificates \
                 (ca-certificates), or name a file of them in sslrootcert",
            ));
        }
        Ok(roots)
    }
}

fn no_tls(reason: &dyn Display) -> DatabaseUrlError {
    invalid(format!("makes TLS impossible: {reason}"))
}

fn unusable(parameter: &str, path: &Path, reason: &dyn Display) -> DatabaseUrlError {
    let path = path.display();
    invalid(format!(
        "names the file {path} in {parameter}, which cannot be used: {reason}"
    ))
}

fn certificates(parameter: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, DatabaseUrlError> {
    let certificates = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = certificates.map_err(|error| unusable(parameter, path, &error))?;
    if certificates.is_empty() {
        return Err(unusable(parameter, path, &"it holds no certificate in PEM"));
    }
    Ok(certificates)
}

/// Advice about a failed handshake, if there is any.
pub(super) fn advice(error: &tokio_postgres::Error) -> Option<&'static str> {
    let io = std::error::Error::source(error)?.downcast_ref::<std::io::Error>()?;
    let rustls::Error::InvalidCertificate(invalid) = io.get_ref()?.downcast_ref()? else {
        return None;
    };
    match invalid {
        // A signer with the same name but another key produces a bad signature.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => Some(
            "no trusted authority has signed the server's certificate: name a file with the authority's in sslrootcert",
        ),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => Some(
            "the server's certificate is made for another name: connect by that name, or turn off the \
             check of names with sslmode=verify-ca",
        ),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => Some(
            "the server's certificate has expired by this machine's clock: renew it on the server, or set the clock right",
        ),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            Some("the server's certificate is not valid yet: compare the clocks of both machines")
        }
        // rustls has no variant of its own for it, and wraps the library's error.
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => Some(
            "the server shows an authority's own certificate (CA:TRUE) as its own, which psql takes and this program does \
             not: give the server a certificate that this authority has signed, or a self-signed one made with `openssl req \
             -x509 -addext basicConstraints=critical,CA:FALSE`, and name the authority's or that one in sslrootcert",
        ),
        CertificateError::Other(other) if other.to_string().contains("UnsupportedCertVersion") => Some(
            "the server's certificate is of X.509 version 1, which this program does not verify: sign it with extensions, such as its \
             names (`openssl x509 -req -extfile`), or check none: sslmode=require without sslrootcert",
        ),
        _ => None,
    }
}

/// The public key in a certificate of any version.
fn public_key(certificate: &CertificateDer<'_>) -> Result<SubjectPublicKeyInfoDer<'static>, rustls::Error> {
    let read = Certificate::from_der(certificate);
    let key = read.and_then(|read| read.tbs_certificate.subject_public_key_info.to_der());
    key.map(SubjectPublicKeyInfoDer::from)
        .map_err(|_| CertificateError::BadEncoding.into())
}

/// Verifies the server's certificate as `sslmode` requires. It always checks that the server holds the
/// certificate's key.
#[derive(Debug)]
struct Verifier {
    /// Verifies the certificate's chain. None accepts every certificate (`prefer` and `require`), which
    /// protects against eavesdropping only.
    webpki: Option<Arc<WebPkiServerVerifier>>,
    /// Whether the host name is ignored (`verify-ca`).
    any_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(webpki) = &self.webpki else {
            return Ok(ServerCertVerified::assertion());
        };
        match webpki.verify_server_cert(certificate, between, name, ocsp, now) {
            // Names are checked last: a certificate with another name has a valid chain.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.any_name => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        match verify_tls13_signature(message, certificate, signature, known) {
            // Citus's nodes make certificates of X.509 version 1, which webpki does not read. Where nothing
            // else of it is verified, the key suffices.
            Err(rustls::Error::InvalidCertificate(_)) if self.webpki.is_none() => {
                let key = public_key(certificate)?;
                verify_tls13_signature_with_raw_key(message, &key, signature, known)
            }
            verified => verified,
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
