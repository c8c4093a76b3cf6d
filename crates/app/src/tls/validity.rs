//! Whether a certificate is within its time.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use rustls::{
    CertificateError, Error, RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier as _},
    crypto::ring,
    pki_types::{CertificateDer, ServerName, UnixTime},
};

/// How a certificate stands to the present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Validity {
    /// Within its time, as far as that can be told.
    Fine,
    /// Its time has not come.
    Early,
    /// Its time is over.
    Over,
}

/// How the first certificate of a chain stands to the present.
///
/// A verifier judges a certificate's time before anything else of it. Whom it is trusted by does not matter for that, nor whom
/// it names.
pub(super) fn validity(chain: &[CertificateDer<'_>], now: DateTime<Utc>) -> Validity {
    let [first, others @ ..] = chain else {
        return Validity::Fine;
    };
    let mut roots = RootCertStore::empty();
    if roots.add(chain.last().unwrap_or(first).clone()).is_err() {
        return Validity::Fine;
    }
    let provider = Arc::new(ring::default_provider());
    let Ok(verifier) = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build() else {
        return Validity::Fine;
    };
    let anybody = ServerName::from(Ipv4Addr::UNSPECIFIED);
    let now = UnixTime::since_unix_epoch(Duration::from_secs(
        now.timestamp().try_into().unwrap_or_default(),
    ));
    match verifier.verify_server_cert(first, others, &anybody, &[], now) {
        Err(Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        )) => Validity::Over,
        Err(Error::InvalidCertificate(
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
        )) => Validity::Early,
        Ok(_) | Err(_) => Validity::Fine,
    }
}
