//! The basic ports: clock, randomness, and sealing.

use chrono::{DateTime, Utc};
use uuid::Uuid;

/// This process's clock. Only for use within one process (logs, ages of caches): times that two processes
/// compare come from the unit of work, which uses the database's clock.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
pub trait Clock: Send + Sync {
    /// The current time, UTC.
    fn now(&self) -> DateTime<Utc>;
}

/// Random bytes and new ids.
///
/// An adapter MUST take its bytes from the operating system's cryptographically secure generator.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
pub trait Randomness: Send + Sync {
    /// 32 unpredictable bytes.
    fn secret(&self) -> [u8; 32];

    /// A new UUIDv7 (RFC 9562 §5.7). Ids of one process rise in the order of their creation.
    fn uuid(&self) -> Uuid;
}

crate::words! {
    /// The purpose of a sealed value. A value sealed for one purpose never opens for another: the word is an
    /// input of the key derivation.
    pub enum SealPurpose {
        /// A list position that a client carries.
        Cursor = "cursor",
        /// The stored response body of an idempotency key.
        RememberedBody = "remembered-body",
        /// An application's consent request, on its way through the browser to the consent screen.
        ConsentTicket = "consent-ticket",
        /// A secret that the panel shows once.
        Flash = "flash",
        /// The one-time link in a queued mail.
        MailedLink = "mailed-link",
        /// The secret of a webhook's subscription.
        WebhookSecret = "webhook-secret",
        /// The token pair of a refresh that its client may repeat; derived, never sealed.
        RefreshedPair = "refreshed-pair",
        /// What the fingerprints of registrations are bound to; derived, never sealed.
        Registration = "registration",
    }
}

/// Seals small values that leave the service, or are stored where others may read them.
///
/// An adapter MUST encrypt with authentication (AEAD), bind purpose and `bound_to` into the key and as
/// associated data, prefix the result with the id of its key (one length byte, then that many bytes of
/// ASCII), which identifies the key of a stored value, and open values sealed by any key of its ring, so that
/// keys can be rotated.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
pub trait Sealer: Send + Sync {
    /// Encrypts `plain` so that it opens only with the same purpose and binding.
    fn seal(&self, purpose: SealPurpose, bound_to: &[u8], plain: &[u8]) -> Vec<u8>;

    /// The plain value, or an error that does not reveal the cause.
    fn open(&self, purpose: SealPurpose, bound_to: &[u8], sealed: &[u8]) -> Result<Vec<u8>, SealError>;

    /// Derives a secret from this purpose and input with each key of the ring, always the same: that of the
    /// sealing key, and those of the others. Without the key a secret cannot be told from random bytes.
    fn derive(&self, purpose: SealPurpose, input: &[u8]) -> ([u8; 32], Vec<[u8; 32]>);
}

/// The value was not sealed here, or for another purpose or binding, or its key is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not sealed for this row under a key in `keys.sealing`: see `seller-api admin keys status`")]
pub struct SealError;

#[cfg(test)]
mod tests {
    use super::*;

    /// Each key is derived from its purpose's word: under a changed word, existing values no longer open.
    #[test]
    fn the_words_of_purposes_are_pinned() {
        let words = "cursor remembered-body consent-ticket flash mailed-link webhook-secret refreshed-pair registration";
        assert_eq!(SealPurpose::ALL.map(SealPurpose::as_str).join(" "), words);
    }
}
