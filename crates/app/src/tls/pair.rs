//! A certificate with its private key, as files have it.

use std::{io, path::PathBuf, sync::Arc};

use rustls::{
    crypto::ring::sign::any_supported_type,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject as _},
    },
    sign::CertifiedKey,
};

use super::Files;

/// Why two files cannot be used. Names both, and never shows what is in them.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PairError {
    /// A file that cannot be read.
    #[error("`{section}.{key}` names {}, which cannot be read", .path.display())]
    Unreadable {
        section: &'static str,
        key: &'static str,
        path: PathBuf,
        #[source]
        source: Arc<io::Error>,
    },
    /// No certificate, or a broken one, in PEM.
    #[error("`{section}.certificate` names {}, in which there is no whole certificate in PEM (`-----BEGIN CERTIFICATE-----`)", .path.display())]
    NoCertificate { section: &'static str, path: PathBuf },
    /// No private key, or a broken one, in PEM.
    #[error("`{section}.key` names {}, in which there is no whole private key in PEM; an encrypted one cannot be used", .path.display())]
    NoKey { section: &'static str, path: PathBuf },
    /// A key of a kind that cannot sign here.
    #[error(
        "`{section}.key` names {}, whose key cannot be used: it has to be RSA (2048 to 4096 bits), ECDSA (P-256, P-384) or Ed25519",
        .path.display()
    )]
    UnusableKey {
        section: &'static str,
        path: PathBuf,
        #[source]
        source: rustls::Error,
    },
    /// The key is another certificate's.
    #[error(
        "the key in {} is not that of the first certificate in {} (`{section}`): the listener's own certificate comes first, \
         those that lead to its root after it",
        .key.display(),
        .certificate.display()
    )]
    Mismatch {
        section: &'static str,
        certificate: PathBuf,
        key: PathBuf,
        #[source]
        source: Box<rustls::Error>,
    },
}

/// What was read: both files' contents, or why one could not be read.
pub(super) type Read = Result<[Vec<u8>; 2], (&'static str, PathBuf, Arc<io::Error>)>;

impl Files {
    /// Reads both.
    pub(super) async fn read(&self) -> Read {
        let file = async |key: &'static str, path: &PathBuf| {
            let read = tokio::fs::read(path).await;
            read.map_err(|error| (key, path.clone(), Arc::new(error)))
        };
        Ok([
            file("certificate", &self.certificate).await?,
            file("key", &self.key).await?,
        ])
    }
}

/// A certificate that can be served.
#[derive(Debug)]
pub(super) struct Pair(pub(super) Arc<CertifiedKey>);

impl Pair {
    /// Makes one of what was read from the files.
    pub(super) fn of(files: &Files, read: &Read) -> Result<Self, PairError> {
        let section = files.section;
        let [certificate, key] = read
            .as_ref()
            .map_err(|(key, path, source)| PairError::Unreadable {
                section,
                key,
                path: path.clone(),
                source: Arc::clone(source),
            })?;
        let chain = certificates(certificate).ok_or_else(|| PairError::NoCertificate {
            section,
            path: files.certificate.clone(),
        })?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| PairError::NoKey {
            section,
            path: files.key.clone(),
        })?;
        let signing = any_supported_type(&key).map_err(|source| PairError::UnusableKey {
            section,
            path: files.key.clone(),
            source,
        })?;
        let pair = CertifiedKey::new(chain, signing);
        pair.keys_match().map_err(|source| PairError::Mismatch {
            section,
            certificate: files.certificate.clone(),
            key: files.key.clone(),
            source: Box::new(source),
        })?;
        Ok(Self(Arc::new(pair)))
    }
}

/// All certificates of a file; nothing where there is none, or one is broken.
fn certificates(file: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let read: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(file).collect();
    read.ok().filter(|chain| !chain.is_empty())
}
