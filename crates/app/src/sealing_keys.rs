//! Whether the configured sealing keys are those under which the database's values lie.
//!
//! A key that is not configured, or is another one than its id says, leaves values unreadable and harms nothing: processes that
//! have the right one go on opening them, and so does this one once it has it. But where such a key is the first one, it harms with
//! everything that it seals, since nobody can tell any more which of the two a value needs: nothing is begun with it.

use std::collections::BTreeMap;

use adapter_postgres::{SealedSample, SealedValues};
use adapter_sealing::KeyRing;
use kernel::StoreError;

/// What is wrong with the configured keys, as far as a few values of each key tell.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Ids under which another key is configured than the one that has sealed what is stored.
    pub(crate) others: Vec<String>,
    /// Ids of keys that have sealed what is stored and are not configured.
    pub(crate) missing: Vec<String>,
    /// Whether the key that seals is among the others.
    seals: bool,
}

/// The key that seals has the id of another one that has sealed what is stored.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`keys.sealing` begins with another key than the one that has sealed what is stored under its id {0:?}: put that one in its \
     place, or give this one an id of its own"
)]
pub(crate) struct OtherKey(String);

/// Opens a few values of each key.
pub(crate) async fn compare(values: &SealedValues, ring: &KeyRing) -> Result<Comparison, StoreError> {
    Ok(judge(ring, &values.sample().await?))
}

fn judge(ring: &KeyRing, sample: &BTreeMap<String, SealedSample>) -> Comparison {
    let mut comparison = Comparison::default();
    for (id, found) in sample {
        if !ring.ids().any(|configured| configured == id) {
            comparison.missing.push(id.clone());
        } else if found.opened == 0 {
            comparison.seals |= id == ring.first_id();
            comparison.others.push(id.clone());
        }
    }
    comparison
}

impl Comparison {
    /// Fails where the key that seals is another one than its id says.
    pub(crate) fn refuse_sealing(&self, ring: &KeyRing) -> Result<(), OtherKey> {
        if self.seals {
            return Err(OtherKey(ring.first_id().to_owned()));
        }
        Ok(())
    }

    /// Tells the log what cannot be read.
    pub(crate) fn tell(&self) {
        if !self.missing.is_empty() {
            tracing::error!(
                keys = ?self.missing,
                "values are stored under keys that are not in `keys.sealing`, and cannot be read: put these keys there; \
                 `seller-api admin keys status` counts what each key seals"
            );
        }
        if !self.others.is_empty() {
            tracing::error!(
                keys = ?self.others,
                "keys in `keys.sealing` do not open what is stored under their ids: put the right ones in their place"
            );
        }
    }
}
