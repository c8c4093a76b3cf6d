//! Whether the configured sealing keys are those under which the database's values lie.
//!
//! A key that is not configured, or is another one than its id says, leaves values unreadable and harms nothing: processes that
//! have the right one go on opening them, and so does this one once it has it. But where such a key is the first one, it harms with
//! everything that it seals, since a value no longer shows which of the two it needs: the service does not become ready.

use adapter_postgres::SealedValues;
use adapter_sealing::KeyRing;
use kernel::StoreError;

/// What is wrong with the configured keys, as far as a few values of each key tell.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Ids under which another key is configured than the one that has sealed what is stored.
    pub(crate) mismatched: Vec<String>,
    /// Ids of keys that have sealed what is stored and are not configured.
    pub(crate) missing: Vec<String>,
    /// Whether the key that seals is among the mismatched.
    seals: bool,
}

/// The key that seals has the id of another one that has sealed what is stored.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`keys.sealing` begins with another key than the one that has sealed what is stored under its id {0:?}: put that one in its \
     place, or give this one an id of its own"
)]
pub(crate) struct MismatchedKey(String);

/// Opens a few values of each key.
pub(crate) async fn compare(values: &SealedValues, ring: &KeyRing) -> Result<Comparison, StoreError> {
    let mut comparison = Comparison::default();
    for (id, found) in values.sample().await? {
        if !ring.ids().any(|configured| *configured == *id) {
            comparison.missing.push(id);
        } else if found.opened == 0 {
            comparison.seals |= id == ring.first_id();
            comparison.mismatched.push(id);
        }
    }
    Ok(comparison)
}

impl Comparison {
    /// Fails where the key that seals is another one than its id says.
    pub(crate) fn refuse_sealing(&self, ring: &KeyRing) -> Result<(), MismatchedKey> {
        if self.seals {
            return Err(MismatchedKey(ring.first_id().to_owned()));
        }
        Ok(())
    }

    /// Logs what cannot be read.
    pub(crate) fn log(&self) {
        if !self.missing.is_empty() {
            tracing::error!(
                keys = ?self.missing,
                "values are stored under keys that are not in `keys.sealing`, and cannot be read: put these keys there; \
                 `seller-api admin keys status` counts what each key seals"
            );
        }
        if !self.mismatched.is_empty() {
            tracing::error!(
                keys = ?self.mismatched,
                "keys in `keys.sealing` do not open what is stored under their ids: put the right ones in their place"
            );
        }
    }
}
