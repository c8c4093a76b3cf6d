//! What every part of the domain shares: ids, money, time, pages, changes, queued mails, and the ports under them.
//!
//! Pure: nothing here knows a database, a socket or a clock of its own.

mod address;
mod change;
mod idempotency;
mod ids;
mod invalid;
mod mail;
mod money;
mod page;
mod ports;
mod store_error;

pub use address::is_public;
pub use change::{Change, Version};
pub use idempotency::{
    Claim, Claimed, Fingerprint, IdempotencyClaims, IdempotencyKey, KeySpace, LOST_CLAIM, Remembered,
};
pub use ids::{OfferId, SellerId, canonical_uuid};
pub use invalid::{Invalid, Violations};
pub use mail::{DueMail, Mail, MailId, MailQueue, MailStep, Mailer, SendError};
pub use money::{Currency, MAX_AMOUNT, Money, MoneyError};
pub use page::{Keyset, PAGE_DEFAULT, PAGE_MAX, Page, PageSize};
pub use ports::{Clock, Purpose, Randomness, SealError, Sealer};
pub use store_error::{CommitError, Row, StoreError};

#[cfg(any(test, feature = "mocks"))]
pub use idempotency::MockIdempotencyClaims;
#[cfg(any(test, feature = "mocks"))]
pub use mail::{MockMailQueue, MockMailer};
#[cfg(any(test, feature = "mocks"))]
pub use ports::{MockClock, MockRandomness, MockSealer};
