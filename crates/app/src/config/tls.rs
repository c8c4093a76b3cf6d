//! `server.tls.*` and `server.backoffice_tls.*`: TLS of a listener's own.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `server.tls.*` and `server.backoffice_tls.*`.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsConfig {
    /// A file with the listener's certificate and, after it, the intermediate ones (PEM). With it the listener speaks TLS (1.2
    /// and 1.3) and nothing else.
    #[schemars(extend("x-read-by" = "serve"))]
    pub certificate: Option<PathBuf>,
    /// The file with the private key of that certificate (PEM, not encrypted).
    #[schemars(extend("x-read-by" = "serve"))]
    pub key: Option<PathBuf>,
}

impl TlsConfig {
    /// Certificate and key, where the listener speaks TLS.
    pub fn files(&self) -> Option<(&Path, &Path)> {
        self.certificate.as_deref().zip(self.key.as_deref())
    }

    /// What is wrong where one of the two names nothing, or is not set: `certificate` and `key` are the whole names of both.
    pub(super) fn problem(&self, [certificate, key]: [&'static str; 2]) -> Option<(&'static str, String)> {
        // An empty variable must not take TLS away.
        for (name, file) in [(certificate, &self.certificate), (key, &self.key)] {
            if file.as_ref().is_some_and(|file| file.as_os_str().is_empty()) {
                return Some((name, "must be the path of a file".to_owned()));
            }
        }
        let (missing, given) = match (&self.certificate, &self.key) {
            (Some(_), None) => (key, certificate),
            (None, Some(_)) => (certificate, key),
            (Some(_), Some(_)) | (None, None) => return None,
        };
        Some((missing, format!("must be set where {given} is")))
    }
}
