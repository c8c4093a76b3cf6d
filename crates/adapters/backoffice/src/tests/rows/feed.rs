//! A change feed in memory: a cursor is the number of items before it.

use async_trait::async_trait;
use changes::{ChangeCursor, ChangeItem, ChangePage, ChangeReader, ChangesError};
use tokio::time::Instant;

use super::Store;

impl Store {
    /// Something happens.
    pub(crate) fn happens(&self, item: ChangeItem) {
        self.rows().changes.push(item);
    }

    /// When the feed was looked at.
    pub(crate) fn looks(&self) -> Vec<Instant> {
        self.rows().looks.clone()
    }
}

#[async_trait]
impl ChangeReader for Store {
    async fn changes(&self, after: Option<ChangeCursor>, limit: u16) -> Result<ChangePage, ChangesError> {
        self.check()?;
        let mut rows = self.rows();
        rows.looks.push(Instant::now());
        let from: usize = match after.as_ref().map(|cursor| cursor.0.as_str()) {
            None => 0,
            Some("elsewhere") => return Err(ChangesError::OtherHistory),
            Some(text) => text.parse().map_err(|_| ChangesError::Malformed)?,
        };
        let items: Vec<_> = rows
            .changes
            .iter()
            .skip(from)
            .take(limit.into())
            .copied()
            .collect();
        let next = ChangeCursor((from + items.len()).to_string());
        Ok(ChangePage { items, next })
    }
}
