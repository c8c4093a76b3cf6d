//! The change feed: what the marketplace hears of what sellers and carriers did.

mod item;
mod ports;

pub use item::{ChangeItem, ChangeKind, Detail, Topic};
pub use ports::{CHANGES_DEFAULT, CHANGES_MAX, ChangeCursor, ChangePage, ChangeReader, ChangesError};

#[cfg(any(test, feature = "mocks"))]
pub use ports::MockChangeReader;
