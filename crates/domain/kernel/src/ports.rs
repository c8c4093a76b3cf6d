//! The smallest ports: time, chance, and sealing.

use chrono::{DateTime, Utc};
use uuid::Uuid;

/// The time of this process. Only for what stays within one process (logs, ages of caches): what two processes compare
/// takes its time from the unit of work, which is the database's.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
pub trait Clock: Send + Sync {
    /// The present, UTC.
    fn now(&self) -> DateTime<Utc>;
}

/// Chance and new ids.
///
/// An adapter MUST take its bytes from the operating system's cryptographically secure generator.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
pub trait Randomness: Send + Sync {
    /// 32 bytes that nobody can guess.
    fn secret(&self) -> [u8; 32];

    /// A new UUIDv7 (RFC 9562 §5.7). Ids of one process rise in the order in which they are made.
    fn uuid(&self) -> Uuid;
}

/// What a sealed value is for. A value sealed for one purpose never opens for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The position in a list that a client carries.
    Cursor,
    /// The body of an answer that is remembered for an idempotency key.
    RememberedBody,
    /// What an application asks a seller for, on its way through the browser to the consent screen.
    ConsentTicket,
    /// A secret that the panel shows once.
    Flash,
    /// The one-time link in a mail that is yet to be sent.
    MailedLink,
    /// The secret of a webhook's subscription.
    WebhookSecret,
}

impl Purpose {
    /// A stable name that goes into the key's derivation.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cursor => "cursor",
            Self::RememberedBody => "remembered-body",
            Self::ConsentTicket => "consent-ticket",
            Self::Flash => "flash",
            Self::MailedLink => "mailed-link",
            Self::WebhookSecret => "webhook-secret",
        }
    }
}

/// Seals small values that leave our hands, or lie where others may read.
///
/// An adapter MUST encrypt with authentication (AEAD), bind purpose and `bound_to` into the key and as associated data, begin
/// the result with the id of its key (one byte of length, then so many of ASCII), by which what lies in a database is told
/// apart, and open what any key of its ring has sealed, so that keys can be rotated.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
pub trait Sealer: Send + Sync {
    /// Encrypts `plain` so that it opens only for the same purpose and binding.
    fn seal(&self, purpose: Purpose, bound_to: &[u8], plain: &[u8]) -> Vec<u8>;

    /// The plain value, or a refusal that does not tell what was wrong.
    fn open(&self, purpose: Purpose, bound_to: &[u8], sealed: &[u8]) -> Result<Vec<u8>, SealError>;
}

/// The value was not sealed by us, for another purpose or binding, or by a key that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a value that was sealed here for this use")]
pub struct SealError;

#[cfg(test)]
mod tests {
    use super::*;

    /// Every key is derived from its purpose's name: what was sealed under another name opens no more.
    #[test]
    fn the_names_of_purposes_stay_what_they_are() {
        let names = [
            (Purpose::Cursor, "cursor"),
            (Purpose::RememberedBody, "remembered-body"),
            (Purpose::ConsentTicket, "consent-ticket"),
            (Purpose::Flash, "flash"),
            (Purpose::MailedLink, "mailed-link"),
            (Purpose::WebhookSecret, "webhook-secret"),
        ];
        for (purpose, name) in names {
            assert_eq!(purpose.name(), name);
        }
    }
}
