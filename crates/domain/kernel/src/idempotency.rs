//! Idempotency keys: claims, stored responses, and their port (contract: Idempotency).

use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use crate::{Invalid, SellerId, StoreError};

/// A key chosen by a client: 1 to 128 printable ASCII characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Validates a key as given in the header.
    pub fn new(key: &[u8]) -> Result<Self, Invalid> {
        let printable = key.iter().all(|byte| (0x20..=0x7e).contains(byte));
        let text = std::str::from_utf8(key)
            .ok()
            .filter(|_| printable && (1..=128).contains(&key.len()));
        text.map(|text| Self(text.to_owned()))
            .ok_or_else(|| Invalid::new("must be 1 to 128 printable ASCII characters, such as a UUID"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The scope of a key. Keys of different spaces are independent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeySpace {
    /// One space per seller, for all operations and applications.
    Seller(SellerId),
    /// The back office.
    Operator,
}

impl KeySpace {
    /// The stored form: the seller's id, or the nil UUID for the operator.
    pub const fn uuid(self) -> Uuid {
        match self {
            Self::Seller(seller) => seller.uuid(),
            Self::Operator => Uuid::nil(),
        }
    }
}

/// SHA-256 over everything that must be equal for two requests to be the same: method, raw path with query,
/// raw body, and so on. Each part is prefixed with its length, so that parts cannot run together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Computes the fingerprint of these parts.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut context = ring::digest::Context::new(&ring::digest::SHA256);
        for part in parts {
            context.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            context.update(part);
        }
        let digest = context.finish();
        Self(digest.as_ref().first_chunk().copied().unwrap_or_default())
    }

    /// The stored form.
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// A claim on a key: the right to run the request, for the time of a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub space: KeySpace,
    pub key: IdempotencyKey,
    pub fingerprint: Fingerprint,
    /// A random id of the claimant. Completion and release work only under the current fence.
    pub fence: Uuid,
}

/// The result of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// The claim succeeded: run the request.
    Run,
    /// The same request is still running.
    InProgress,
    /// The key belongs to another request.
    Reused,
    /// The request was completed with this response.
    Completed(StoredResponse),
}

/// The constraint named by the conflict when a completion's claim was taken over by another request.
pub const LOST_CLAIM: &str = "idempotency_fence";

/// A successful response as stored, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResponse {
    /// The status code, 2xx.
    pub status: u16,
    /// The body; empty for 204.
    pub body: Vec<u8>,
    /// The entity tag of what was changed, with its quotes.
    pub etag: Option<String>,
}

/// Claims keys outside of the request's transaction.
///
/// An adapter MUST claim in one statement, MUST treat a claim with an expired lease as absent, including its
/// fingerprint, MUST seal stored bodies, and MUST keep them for 24 hours from completion.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait IdempotencyClaims: Send + Sync {
    /// Claims the key for `lease`, or returns its current state.
    async fn claim(&self, claim: &Claim, lease: Duration) -> Result<Claimed, StoreError>;

    /// Releases an uncompleted claim after a failure that certainly changed nothing, so that the client may
    /// retry. Does nothing if the claim is completed or taken over.
    async fn release(&self, claim: &Claim) -> Result<(), StoreError>;

    /// The state of a claim whose COMMIT got no response. Waits for the transaction that may still hold or
    /// insert the row: the stored response if it was completed, None if not.
    async fn outcome(&self, claim: &Claim) -> Result<Option<StoredResponse>, StoreError>;
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
    fn a_fingerprint_separates_its_parts() {
        let same = || Fingerprint::of(&[b"PATCH", b"/v1"]);
        assert_eq!(same(), same());
        assert_ne!(Fingerprint::of(&[b"ab", b"c"]), Fingerprint::of(&[b"a", b"bc"]));
        assert_ne!(Fingerprint::of(&[b"ab"]), Fingerprint::of(&[b"ab", b""]));
    }
}
