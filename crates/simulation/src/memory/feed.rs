//! Reading the feed: in the order `(transaction, row)`, and only what no open transaction can come before.

use async_trait::async_trait;
use changes::{ChangeCursor, ChangePage, ChangeReader, ChangesError};

use super::{Flaw, Link, Stored};

#[async_trait]
impl ChangeReader for Link {
    async fn changes(&self, after: Option<ChangeCursor>, limit: u16) -> Result<ChangePage, ChangesError> {
        let after = match after {
            None => (0, 0),
            Some(cursor) => parse(&cursor).ok_or(ChangesError::Malformed)?,
        };
        let database = self.database.clone();
        let ahead = database.has(Flaw::ReadsAhead);
        let read = async move { Ok(database.at_once(|stored| page(stored, after, limit, ahead))) };
        Ok(self.ask(read).await?)
    }
}

fn parse(cursor: &ChangeCursor) -> Option<(u64, u64)> {
    let (transaction, row) = cursor.0.split_once('.')?;
    Some((transaction.parse().ok()?, row.parse().ok()?))
}

fn page(stored: &Stored, after: (u64, u64), limit: u16, ahead: bool) -> ChangePage {
    let horizon = if ahead { u64::MAX } else { stored.horizon() };
    let rows = stored.tables.feed.committed();
    let rows = rows.iter().filter(|(key, _)| **key > after && key.0 < horizon);
    let (mut items, mut next) = (Vec::new(), after);
    for (key, item) in rows.take(limit.into()) {
        items.push(*item);
        next = *key;
    }
    ChangePage {
        items,
        next: ChangeCursor(format!("{}.{}", next.0, next.1)),
    }
}
