//! `keys.*`: keys of the service's own.

use adapter_sealing::{KeyError, KeyRing};
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::values::{List, Secret};

/// `keys.*`.
#[derive(Debug, Clone, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeysConfig {
    /// What seals values that leave the service's hands, each written `<id>:<base64 of 32 bytes>`. The first one seals, all
    /// of them open, so that keys can be replaced.
    pub sealing: List<Secret>,
}

impl KeysConfig {
    pub(super) fn problems(&self) -> Vec<(&'static str, String)> {
        match self.ring() {
            // Not every command needs keys: those that do say so.
            Ok(_) | Err(KeyError::None) => Vec::new(),
            Err(error) => vec![("keys.sealing", format!("cannot be used: {error}"))],
        }
    }

    /// The ring of these keys.
    pub fn ring(&self) -> Result<KeyRing, KeyError> {
        let keys = self
            .sealing
            .0
            .iter()
            .map(|key| key.0.clone())
            .collect::<Vec<SecretString>>();
        KeyRing::parse(&keys)
    }
}
