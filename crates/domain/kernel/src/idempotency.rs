//! Idempotency keys: what is claimed, what is remembered, and the ports of both (contract: Idempotency).

use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use crate::{Invalid, SellerId, StoreError};

/// A key that a client chose: 1 to 128 printable ASCII characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Checks a key as it stands in the header.
    pub fn new(key: &[u8]) -> Result<Self, Invalid> {
        let printable = key.iter().all(|byte| (0x20..=0x7e).contains(byte));
        let text = std::str::from_utf8(key)
            .ok()
            .filter(|_| printable && (1..=128).contains(&key.len()));
        text.map(|text| Self(text.to_owned()))
            .ok_or_else(|| Invalid::new("must be 1 to 128 printable ASCII characters, such as a UUID"))
    }

    /// The key.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whose key it is. Keys of different spaces never meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeySpace {
    /// One space per seller, for all operations and applications.
    Seller(SellerId),
    /// The back office's.
    Operator,
}

impl KeySpace {
    /// The stored form: the seller's id, or the nil UUID, which is no seller's.
    pub const fn uuid(self) -> Uuid {
        match self {
            Self::Seller(seller) => seller.uuid(),
            Self::Operator => Uuid::nil(),
        }
    }
}

/// SHA-256 over what makes two requests the same one: method, raw path with query, raw body, and whatever else may not
/// differ. The parts are prefixed with their lengths, so that none runs into the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of these parts.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut context = ring::digest::Context::new(&ring::digest::SHA256);
        for part in parts {
            context.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            context.update(part);
        }
        let mut bytes = [0; 32];
        bytes
            .iter_mut()
            .zip(context.finish().as_ref())
            .for_each(|(to, from)| *to = *from);
        Self(bytes)
    }

    /// The stored form.
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// A claim on a key: the right to run the request, for the time of a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Whose key.
    pub space: KeySpace,
    /// Which key.
    pub key: IdempotencyKey,
    /// Of which request.
    pub fingerprint: Fingerprint,
    /// A random id of the claimer. Completion and release work only for the one who holds the claim still.
    pub fence: Uuid,
}

/// What came of claiming.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// The claim is ours: run the request.
    Run,
    /// The same request is still running.
    InProgress,
    /// The key belongs to another request.
    Reused,
    /// The request was completed: this was the answer.
    Completed(Remembered),
}

/// What the conflict of a completion names when the claim was lost to somebody else meanwhile.
pub const LOST_CLAIM: &str = "idempotency_fence";

/// A good answer, as it is remembered: exactly its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// The status code, 2xx.
    pub status: u16,
    /// The body; empty for 204.
    pub body: Vec<u8>,
}

/// Claims keys, outside of the effect's transaction.
///
/// An adapter MUST claim in one statement, MUST count a claim whose lease has run out as absent, fingerprint included,
/// MUST seal remembered bodies, and MUST keep them for 24 hours from completion.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait IdempotencyClaims: Send + Sync {
    /// Claims the key for `lease`, or says who has it.
    async fn claim(&self, claim: &Claim, lease: Duration) -> Result<Claimed, StoreError>;

    /// Gives an uncompleted claim back, after a failure that surely changed nothing, so that the client may try again.
    /// Does nothing when the claim is completed or somebody else's.
    async fn release(&self, claim: &Claim) -> Result<(), StoreError>;

    /// What stands in the row of a claim whose COMMIT was not answered. It waits for the transaction that may still hold
    /// the row: the remembered answer when it was completed, nothing when it was not.
    async fn outcome(&self, claim: &Claim) -> Result<Option<Remembered>, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys() {
        for fine in [&b"a"[..], b" ", b"a, b", &[b'~'; 128]] {
            assert_eq!(IdempotencyKey::new(fine).unwrap().as_str().as_bytes(), fine);
        }
        for refused in [&b""[..], b"a\tb", "ż".as_bytes(), b"\x7f", &[b'a'; 129]] {
            assert!(IdempotencyKey::new(refused).is_err());
        }
    }

    #[test]
    fn parts_of_a_fingerprint_do_not_run_into_each_other() {
        assert_eq!(
            Fingerprint::of(&[b"PATCH", b"/v1"]),
            Fingerprint::of(&[b"PATCH", b"/v1"])
        );
        assert_ne!(Fingerprint::of(&[b"ab", b"c"]), Fingerprint::of(&[b"a", b"bc"]));
        assert_ne!(Fingerprint::of(&[b"ab"]), Fingerprint::of(&[b"ab", b""]));
    }
}
