//! Compares the configured sealing keys with those that sealed the stored values.
//!
//! A key that is missing, or differs from the one with its id, makes values unreadable but does no damage:
//! processes with the right key still open them, and so does this one once it is configured. But a wrong
//! first key does damage with every value it seals, because the id no longer shows which of the two keys a
//! value needs. The service then does not become ready.

use adapter_postgres::Database;
use adapter_sealing::KeyRing;
use anyhow::ensure;
use kernel::StoreError;

use crate::prometheus::set_missing_keys;

/// The problems of the configured keys, from a sample of values of each key.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Ids whose configured key differs from the one that sealed the stored values.
    pub(crate) mismatched: Vec<String>,
    /// Ids of keys that sealed stored values but are not configured.
    pub(crate) missing: Vec<String>,
}

/// Opens a sample of values of each key.
pub(crate) async fn compare(database: &Database, ring: &KeyRing) -> Result<Comparison, StoreError> {
    let mut comparison = Comparison::default();
    for (id, is_opened) in database.sample_sealed().await? {
        if !ring.ids().any(|configured| *configured == *id) {
            comparison.missing.push(id);
        } else if !is_opened {
            comparison.mismatched.push(id);
        }
    }
    Ok(comparison)
}

impl Comparison {
    /// Fails if the first key, which seals, is mismatched.
    pub(crate) fn refuse_sealing(&self, ring: &KeyRing) -> anyhow::Result<()> {
        let first = ring.first_id();
        ensure!(
            self.mismatched.iter().all(|id| id != first),
            "the first key of `keys.sealing` is not the key that sealed the stored values under its id {first:?}: put that one in its \
             place, or give this one a new id"
        );
        Ok(())
    }

    /// Logs and counts the keys whose values cannot be read.
    pub(crate) fn report(&self) {
        set_missing_keys(self.missing.len() + self.mismatched.len());
        if !self.missing.is_empty() {
            tracing::error!(
                keys = self.missing.join(", "),
                "values are stored under keys that are not in `keys.sealing`, and cannot be read: put these keys there; \
                 `seller-api admin keys status` counts what each key seals"
            );
        }
        if !self.mismatched.is_empty() {
            tracing::error!(
                keys = self.mismatched.join(", "),
                "keys in `keys.sealing` do not open what is stored under their ids: put the right ones in their place"
            );
        }
    }
}
