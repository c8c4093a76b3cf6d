//! Reading the feed.

use async_trait::async_trait;
use kernel::StoreError;

use crate::ChangeItem;

/// Items on a page when the reader names no number.
pub const CHANGES_DEFAULT: u16 = 100;
/// The most items a page can hold.
pub const CHANGES_MAX: u16 = 1_000;

/// A place in the feed, opaque to readers. It outlives restarts of the service, not a change of the
/// database cluster, nor the loss of what it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeCursor(pub String);

/// A page of the feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangePage {
    /// The items, in the feed's one order.
    pub items: Vec<ChangeItem>,
    /// Where to read on; there always is one.
    pub next: ChangeCursor,
}

/// Why the feed cannot be read from a place.
#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    /// The cursor was not made here.
    #[error("this is no cursor of the change feed")]
    Malformed,
    /// The cursor belongs to another database cluster, or to what this one has lost since: its reader may have seen what never
    /// was, and what it missed cannot be told.
    #[error(
        "the cursor was made on another database, or on this one before it was set back: read everything anew, then go on without `after`"
    )]
    OtherHistory,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads the feed.
///
/// An adapter MUST return every item exactly once to a reader that follows the cursors, also items whose transactions were
/// long under way when later ones were committed, and MUST keep the order stable.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait ChangeReader: Send + Sync {
    /// Up to `limit` items after a place, or from the oldest that is kept.
    async fn changes(&self, after: Option<ChangeCursor>, limit: u16) -> Result<ChangePage, ChangesError>;
}
