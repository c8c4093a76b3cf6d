//! Whether a certificate is within its time, and when that ends.

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

/// The last second that a certificate can name; it stands for no end (RFC 5280, section 4.1.2.5).
const END_OF_TIME: UnixTime = UnixTime::since_unix_epoch(Duration::from_secs(253_402_300_799));

/// How the first certificate of a chain stands to the present.
pub(super) fn validity(chain: &[CertificateDer<'_>], now: DateTime<Utc>) -> Validity {
    let now = UnixTime::since_unix_epoch(Duration::from_secs(
        now.timestamp().try_into().unwrap_or_default(),
    ));
    match fault(chain, now) {
        Some(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => Validity::Over,
        Some(CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. }) => Validity::Early,
        Some(_) | None => Validity::Fine,
    }
}

/// Until when the first certificate of a chain is valid; nothing where it has no end, or that cannot be told.
pub(super) fn expiry(chain: &[CertificateDer<'_>]) -> Option<DateTime<Utc>> {
    match fault(chain, END_OF_TIME)? {
        CertificateError::ExpiredContext { not_after, .. } => {
            DateTime::from_timestamp(not_after.as_secs().try_into().ok()?, 0)
        }
        _ => None,
    }
}

/// What a verifier finds wrong with the first certificate of a chain at a time.
///
/// It judges a certificate's time before anything else of it. Whom it is trusted by does not matter for that, nor whom it
/// names.
fn fault(chain: &[CertificateDer<'_>], now: UnixTime) -> Option<CertificateError> {
    let [first, others @ ..] = chain else {
        return None;
    };
    let mut roots = RootCertStore::empty();
    roots.add(chain.last().unwrap_or(first).clone()).ok()?;
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
    let anybody = ServerName::from(Ipv4Addr::UNSPECIFIED);
    let judged = verifier.build().ok()?;
    match judged.verify_server_cert(first, others, &anybody, &[], now) {
        Err(Error::InvalidCertificate(fault)) => Some(fault),
        Ok(_) | Err(_) => None,
    }
}
